"""Lattices of k2, all of their paths, and a small decoder."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from privasr_k2.decoding.first_pass import Decoder, SearchConfig
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.randomness import stream
from privasr_k2.scoring.hypotheses import Weights
from tests.support.small_graphs import make_graph, make_lang

if TYPE_CHECKING:
    import k2

WEIGHTS = Weights(0.7, 0.3)


class Best(NamedTuple):
    """The best path of one word sequence."""

    total: float
    words: tuple[int, ...]
    am: float
    lm: float
    labels: tuple[int, ...]


def enumerated(lattice: k2.Fsa, weights: Weights) -> list[Best]:
    """Every path of the first lattice; of those with the same words the best; the best first."""
    one = lattice[0]
    leaving: dict[int, list[tuple[int, int, list[int], float, float]]] = defaultdict(list)
    arcs = one.arcs.values()[:, :3].tolist()
    words = one.aux_labels.tolist()
    columns = zip(arcs, words, one.am_scores.tolist(), one.lm_scores.tolist(), strict=True)
    for (source, target, label), said, am, lm in columns:
        leaving[source].append((target, label, [w for w in said if w > 0], am, lm))
    final, best = one.shape[0] - 1, {}
    start: tuple[int, tuple[int, ...], float, float, tuple[int, ...]] = (0, (), 0.0, 0.0, ())
    stack = [start]
    while stack:
        state, spoken, am, lm, labels = stack.pop()
        if state == final:
            total = am + weights.lm_weight * lm - weights.insertion_penalty * len(spoken)
            if spoken not in best or total > best[spoken].total:
                best[spoken] = Best(total, spoken, am, lm, labels)
        for target, label, said, arc_am, arc_lm in leaving[state]:
            seen = labels if label < 0 else (*labels, label)
            stack.append((target, (*spoken, *said), am + arc_am, lm + arc_lm, seen))
    return sorted(best.values(), reverse=True)


def total(path: object, weights: Weights) -> float:
    words, am, lm = path.words, path.am_score, path.lm_score  # type: ignore[attr-defined]
    return am + weights.lm_weight * lm - weights.insertion_penalty * len(words)


def random_lattice(seed: int, *, levels: int, width: int, spread: float) -> k2.Fsa:
    """Arcs from level to level with up to two words; some states are dead ends."""
    import k2
    import torch

    generator = stream(seed, "lattice")
    states = [[0]]
    for _ in range(levels):
        states.append([states[-1][-1] + 1 + n for n in range(width)])
    final = states[-1][-1] + 1
    rows, said = [], []
    for here, there in itertools.pairwise(states):
        for source in here:
            dead = source != here[0] and generator.random() < 0.1
            for target in () if dead else there:
                if target == there[0] or generator.random() < 0.7:
                    rows.append([source, target, int(generator.integers(0, 4)), 0])
                    number = generator.choice([0, 1, 2], p=[0.3, 0.6, 0.1])
                    said.append(generator.integers(1, 6, size=number).tolist())
    for source in states[-1]:
        rows.append([source, final, -1, 0])
        said.append([-1] if generator.random() < 0.7 else [int(generator.integers(1, 4)), -1])
    order = sorted(range(len(rows)), key=lambda n: rows[n][0])
    lattice = k2.Fsa(
        torch.tensor([rows[n] for n in order], dtype=torch.int32),
        aux_labels=k2.RaggedTensor([said[n] for n in order]),
    )
    lattice.am_scores = torch.from_numpy(generator.normal(-5, spread, len(rows)).astype(np.float32))
    lattice.lm_scores = torch.from_numpy(generator.normal(-3, spread, len(rows)).astype(np.float32))
    lattice = k2.create_fsa_vec([lattice])
    lattice.num_words = torch.tensor([float(sum(word > 0 for word in said[n])) for n in order])
    return lattice


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    root = tmp_path_factory.mktemp("graph")
    words = ["ab", "ba", "bab", "c", "see"]
    lang = make_lang(root / "lang", "ab A B\nba B A\nbab B A B\nc C\nsee C\nsee C A\n")
    generator = stream(1, "text")
    text = [list(generator.choice(words, size=generator.integers(1, 5))) for _ in range(25)]
    model = estimate(count_ngrams(text, words, order=2), "witten_bell")
    search = SearchConfig("k2", 100.0, 12.0, 30, 10000, 1.0, [1.0], [0.0])
    return Decoder.from_folder(make_graph(root / "graph", lang, model), search)


def noise(seed: int, lengths: list[int]) -> tuple[np.ndarray, list[int]]:
    """(N, T, 4) log-probabilities of nothing in particular."""
    import torch

    drawn = stream(seed, "noise").normal(0.0, 1.5, size=(len(lengths), max(lengths), 4))
    return torch.from_numpy(drawn.astype(np.float32)).log_softmax(dim=2), torch.tensor(lengths)  # type: ignore[return-value]
