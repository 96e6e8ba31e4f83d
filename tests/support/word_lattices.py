"""Random compact lattices, all of their paths, and a closed LM, for the tests of rescoring."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from privasr_k2.decoding.lattices import END, Lattice
from privasr_k2.fileio import write_text
from privasr_k2.randomness import stream


class Spoken(NamedTuple):
    """A path: its words, and its arcs."""

    words: tuple[int, ...]
    arcs: tuple[int, ...]


def random_lattice(seed: int, *, num_words: int, states: int = 10, branch: int = 3) -> Lattice:
    """A deterministic lattice of some hundreds of paths; arcs go at most four states on."""
    generator = stream(seed, "word lattice")
    rows: list[tuple[int, int, int]] = []
    final = states - 1
    for source in range(final):
        said = generator.choice(np.arange(1, num_words), size=branch, replace=False)
        reached: list[int] = []
        if source < final - 1:
            targets = generator.integers(source + 1, min(source + 5, final), size=branch)
            reached = [source + 1, *targets][:branch]
        rows += [(source, int(target), int(word)) for target, word in zip(reached, said)]
        if source == final - 1 or generator.random() < 0.2:
            rows.append((source, final, END))
    sources, targets_of, words = (np.array(column, dtype=np.int32) for column in zip(*sorted(rows)))
    am, lm = (generator.normal(mean, 1.5, len(rows)) for mean in (-6.0, -3.0))
    seconds = np.arange(states) * 0.3
    arcs = sources, targets_of, words, am, lm
    return Lattice(f"u{seed}", "test", "s1", "a b", 9.0, seconds, *arcs)


def no_path(name: str) -> Lattice:
    """An empty lattice."""
    return Lattice.without_path((name, "test", "s2", "ref"), 8.0)


def paths(lattice: Lattice) -> list[Spoken]:
    """All paths of a lattice."""
    leaving: dict[int, list[int]] = defaultdict(list)
    for arc, source in enumerate(lattice.sources.tolist()):
        leaving[source].append(arc)
    found, stack = [], [(0, Spoken((), ()))]
    while stack:
        state, path = stack.pop()
        if state == lattice.num_states - 1:
            found.append(path)
        for arc in leaving[state]:
            word = int(lattice.words[arc])
            words = path.words if word == END else (*path.words, word)
            stack.append((int(lattice.targets[arc]), Spoken(words, (*path.arcs, arc))))
    return found


def write_closed_arpa(path: Path, words: Sequence[str]) -> Path:
    """A bigram model of these words, without ``<unk>``."""
    unigrams = [
        "-99\t<s>\t-0.5",
        *(f"-{1 + n / 50}\t{word}\t-0.3" for n, word in enumerate(words)),
        "-1.2\t</s>",
    ]
    bigrams = [f"-0.4\t{word} {after}" for word, after in itertools.pairwise(words)]
    counts = f"\\data\\\nngram 1={len(unigrams)}\nngram 2={len(bigrams)}\n"
    sections = (["\\1-grams:", *unigrams, ""], ["\\2-grams:", *bigrams, ""], ["\\end\\", ""])
    write_text(path, counts + "\n" + "\n".join(line for section in sections for line in section))
    return path
