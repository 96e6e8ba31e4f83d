"""HLG with spliced names against one that was compiled from scratch, input by input."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.name_graphs import composed_piece, recompiled
from benchmarks.name_graphs import make_lang as a_lang
from privasr_k2.fileio import write_text
from privasr_k2.graph.class_pieces import Pieces, compile_class_graph, joined
from privasr_k2.graph.contacts import ContactGraph
from privasr_k2.graph.ctc_compose import compose_ctc
from privasr_k2.graph.epsilons import WordArcs, remove_epsilons
from privasr_k2.graph.hotwords import HotwordGraphConfig, with_words
from privasr_k2.graph.lang import Lang, Silence
from privasr_k2.graph.name_trees import name_arcs, spoken_words
from privasr_k2.graph.splice import open_graph, splice_names
from privasr_k2.graph.tlg import silenced
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.sub_lm import KINDS
from privasr_k2.randomness import stream
from privasr_k2.text.hotwords import read_hotwords
from tests.support.class_lm import class_lm
from tests.support.small_graphs import make_lang
from tests.support.tiny_lm import sentences

# rose and c sound alike, "a new" and ann too; york begins a name and ends one; york has a variant.
PHONES = "a A\nann A N\nb B\nc R O\nnew N\nnew N O\nrose R O\nyork Y A\nyork A A\n"
CHARACTERS = "".join(
    f"{w} _ {' '.join(w)}\n" for w in ["a", "ann", "b", "c", "new", "rose", "york"]
)
PIECES = "a _a\nann _a n n\nb _b\nc _c\nnew _n ew\nrose _r ose\nyork _york\n"

Found = Mapping[tuple[Any, ...], float]


class Twin:
    """Reads labels of frames in an HLG: the best score of each sequence of words."""

    def __init__(self, graph: WordArcs, symbols: Sequence[str] = ()) -> None:
        self.arcs = defaultdict(list)
        self._symbols = symbols
        words = np.split(graph.words, graph.splits[1:-1])
        columns = (graph.sources, graph.labels, graph.targets, graph.scores)
        for (source, label, target, score), said in zip(zip(*(c.tolist() for c in columns)), words):
            self.arcs[source, label].append((target, score, tuple(said.tolist())))
        assert not {source for source, _ in self.arcs} - set(range(graph.num_states - 1))

    def step(self, at: dict[int, Found], label: int) -> dict[int, Found]:
        """The states after a label, each with its sequences of words."""
        after: dict[int, dict[tuple[int, ...], float]] = defaultdict(dict)
        for state, found in at.items():
            for target, score, said in self.arcs.get((state, label), ()):
                best = after[target]
                for words, before in found.items():
                    longer = words + said
                    best[longer] = max(best.get(longer, -np.inf), before + score)
        return after

    def ends(self, at: dict[int, Found]) -> Found:
        """The sequences of words of an end here."""
        [found] = self.step(at, -1).values() or [{}]
        if not self._symbols:
            return found
        return {tuple(self._symbols[word] for word in said): s for said, s in found.items()}


def equal(twins: list[Twin], labels: Sequence[int]) -> int:
    """Hold all sequences of words of an input equal, with their scores; how many there are."""
    at = [{0: {(): 0.0}} for _ in twins]
    for label in labels:
        at = [twin.step(one, label) for twin, one in zip(twins, at)]
    *ours, theirs = (twin.ends(one) for twin, one in zip(twins, at))
    for found in ours:
        assert found.keys() == theirs.keys()
        for words, score in found.items():
            assert score == pytest.approx(theirs[words], abs=2e-4)
    return len(theirs)


def inputs(
    tokens: Mapping[str, Sequence[Sequence[int]]], num_tokens: int, topology: str, length: int
) -> Iterator[list[int]]:
    """All of up to ``length`` frames, and random words with blanks and repeated tokens."""
    for frames in range(length + 1):
        yield from map(list, itertools.product(range(num_tokens), repeat=frames))
    generator, words = stream(7, "sentences to splice"), sorted(tokens)
    for _ in range(200):
        said: list[int] = []
        for number in generator.integers(0, len(words), size=generator.integers(1, 5)):
            variants = tokens[words[number]]
            for token in variants[generator.integers(0, len(variants))]:
                if (topology == "standard" and said[-1:] == [token]) or generator.random() < 0.2:
                    said.append(0)
                said += [token] * int(generator.integers(1, 3) if topology == "standard" else 1)
        yield said


def a_config(topology: str, cut_history: bool) -> HotwordGraphConfig:
    return HotwordGraphConfig(
        ctc_topology=topology, max_states=100_000, max_class_states=100_000,
        cut_history=cut_history, unknown_names="none", unknown_min_tokens=2,
        hotword_bonus=0.0, hotword_log_prob=-3.0,
    )  # fmt: skip


def variants_of(lang: Lang) -> dict[str, list[list[int]]]:
    variants = defaultdict(list)
    for word, tokens in lang.pronunciations:
        variants[word].append([lang.token_ids[token] for token in tokens])
    return variants


def graphs_of(lang: Lang, lm: ClassLm, topology: str, cut_history: bool) -> list[WordArcs]:
    """Of a class LM: names spliced, as it is compiled, and with names composed and determinized."""
    graphs, info = compile_class_graph(lang, lm, a_config(topology, cut_history), place="lm")
    first = info["classes"]["first_label"]
    composed = {
        kind: composed_piece(lang, sub, len(lang.words) + 2 * n + 1)
        for n, (kind, sub) in enumerate(lm.sub_lms.items())
    }
    LG = joined(Pieces(graphs.pieces["root.fst"], composed, first))
    silent = silenced(LG, num_tokens=lang.num_tokens, backoff_word=len(lang.words) - 1)
    anew = compose_ctc(remove_epsilons(silent), lang.num_tokens, topology)
    opened = open_graph(
        graphs.pieces["root.fst"], num_tokens=lang.num_tokens, backoff_word=len(lang.words) - 1,
        marks=range(first, first + 2 * len(lm.sub_lms)), topology=topology,
    )  # fmt: skip
    names = {}
    for number, sub in enumerate(lm.sub_lms.values()):
        ids = np.array([lang.word_ids[word] for word in sub.words])
        spoken = spoken_words(sub.words, variants_of(lang))
        pause = lang.token_ids[lang.silence.token] if lang.silence else 0
        names[number] = name_arcs(sub, spoken, ids, lang.silence, pause)
    return [splice_names(opened, names, max_states=100_000), graphs.HLG, anew]


@pytest.mark.parametrize("topology", ["standard", "modified"])
@pytest.mark.parametrize("lexicon", [PHONES, CHARACTERS, PIECES], ids=["phone", "char", "bpe"])
@pytest.mark.parametrize("cut_history", [True, False])
def test_names_of_a_class_lm(
    tmp_path: Path, lexicon: str, topology: str, cut_history: bool
) -> None:
    lang = make_lang(tmp_path, lexicon)
    graphs = graphs_of(lang, class_lm("tree", cut_history, 0.0), topology, cut_history)
    twins, given = [*map(Twin, graphs)], (variants_of(lang), lang.num_tokens, topology)
    assert sum(equal(twins, labels) for labels in inputs(*given, 3)) > 200


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_other_orders_and_silence_behind_words(tmp_path: Path, kind: str) -> None:
    lang = replace(make_lang(tmp_path, PHONES), silence=Silence("B", 0.3))
    graphs = graphs_of(lang, class_lm(kind, True, 0.0), "standard", True)
    twins, given = [*map(Twin, graphs)], (variants_of(lang), lang.num_tokens, "standard")
    assert sum(equal(twins, labels) for labels in inputs(*given, 3)) > 200


WORDS = ["ask", "call", "ann", "anna", "the", "them", "quiz", "zoom"]
LISTS = ["ann\nanna quin\nquin\ncall quinn zamo\nzamo\t1.5\n", "the zamo\nzamo the zamo\n"]


@pytest.mark.parametrize("topology", ["standard", "modified"])
@pytest.mark.parametrize("units", ["phone", "char", "bpe_30"])
def test_contacts_outside_the_lexicon(tmp_path: Path, units: str, topology: str) -> None:
    """One list after the other in one open graph, which each leaves as it was."""
    for package in ("pocketsphinx", "espeakng_loader", "sentencepiece"):
        pytest.importorskip(package)
    lang = a_lang(tmp_path, WORDS, units)
    said = sentences(3, 60, words=WORDS)
    model = estimate(count_ngrams(said, WORDS, order=3), "witten_bell")
    config = a_config(topology, True)
    opened = ContactGraph.compile(lang, model, config, model_path=Path("a.arpa"))
    for number, lines in enumerate([*LISTS, LISTS[0]]):
        write_text(tmp_path / "names.txt", lines)
        names = read_hotwords(tmp_path / "names.txt")
        ours, words = opened.with_names(names, log_prob=-1.0)
        weights = {one.words: float(np.exp(one.bonus or 0.0)) for one in names.entries}
        theirs, other_words = recompiled(lang, model, names, config, -1.0, weights)
        twins = [Twin(ours, words), Twin(theirs, other_words)]
        tokens = variants_of(with_words(lang, names))
        given = (tokens, lang.num_tokens, topology)
        found = sum(equal(twins, labels) for labels in inputs(*given, 1 + (number == 0)))
        assert found > 100
        new = {word for one in names.entries for word in one.words} - set(WORDS)
        assert set(words[len(lang.words) - 1 :]) == {*new, "#0", "#bNAME", "#xNAME"}
