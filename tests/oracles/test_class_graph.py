"""The graph of a class model against enumerated readings and one determinized as a whole."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.decoding.first_pass import Decoder, SearchConfig
from privasr_k2.decoding.hyps import Record
from privasr_k2.decoding.kaldi_backend import open_decoder
from privasr_k2.decoding.lattices import LatticeConfig, LatticeSearch
from privasr_k2.decoding.nbest import NbestSearch, NbestSearchConfig
from privasr_k2.fileio import write_jsonl
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.class_pieces import Pieces, compile_class_graph, joined, replace_names, splice
from privasr_k2.graph.grammar import Grammar, grammar
from privasr_k2.graph.hlg import compose_lexicon_and_grammar
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.nonterminals import (
    ClassGraphConfig,
    delimited_words,
    names_grammar,
    with_calls,
)
from privasr_k2.graph.openfst import Fst
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.sub_lm import KINDS, make_sub_lm
from privasr_k2.randomness import stream
from privasr_k2.scoring.hypotheses import Weights, read_decoded
from tests.support.class_lm import LOC, PLAIN, class_lm, reading_probs
from tests.support.small_graphs import heard, make_class_graph, make_lang

pytestmark = pytest.mark.k2

WORDS = [*PLAIN, "ann"]
# rose and c sound alike, "a new" and ann too; york begins a name and ends one.
LEXICON = "a A\nann A N\nb B\nc R O\nnew N\nnew N O\nrose R O\nyork Y A\n"


@pytest.fixture(scope="module")
def lang(tmp_path_factory: pytest.TempPathFactory) -> Lang:
    return make_lang(tmp_path_factory.mktemp("lang"), LEXICON)


def a_config(cut_history: bool, **limits: int) -> ClassGraphConfig:
    numbers = {"max_states": 100_000, "max_class_states": 100_000, **limits}
    return ClassGraphConfig(
        "standard", cut_history=cut_history, unknown_names="none", unknown_min_tokens=2, **numbers
    )


def pieces_of(lang: Lang, lm: ClassLm, cut_history: bool) -> Pieces:
    graphs, info = compile_class_graph(lang, lm, a_config(cut_history), place="lm")
    names = {kind: graphs.pieces[f"{kind}.fst"] for kind in info["classes"]["names"]}
    return Pieces(graphs.pieces["root.fst"], names, info["classes"]["first_label"])


def whole(lang: Lang, lm: ClassLm, cut_history: bool) -> Fst:
    """LG of the grammar with all names in it, determinized at once."""
    delimiters, backoff = ClassDelimiters(len(lang.words), tuple(lm.sub_lms)), len(lang.words) - 1
    G = grammar(
        lm.root, delimited_words(lang.word_ids, delimiters), backoff_label=backoff, place="lm"
    )
    fst = _as_fst(with_calls(G, delimiters, backoff_label=backoff, cut_history=cut_history))
    for n, (kind, sub) in enumerate(lm.sub_lms.items()):
        leave = delimiters.first + 2 * n + 1
        fst = splice(fst, {leave: _as_fst(names_grammar(sub, kind, lang.word_ids, leave=leave))})
    G = Grammar(fst.sources, fst.targets, fst.ilabels, fst.costs, fst.finals, 0)
    LG = compose_lexicon_and_grammar(lang, G, 100_000, symbols=delimiters.numbers)
    return Fst.from_kaldifst(LG)


def _as_fst(G: Grammar) -> Fst:
    return Fst.from_arcs(G.sources, G.targets, G.labels, G.labels, G.costs, G.finals)


def graph_costs(LG: Fst, lang: Lang, sentences: list[list[str]]) -> np.ndarray:
    """The cheapest path of each sentence; inf without a path."""
    import kaldifst

    graph = kaldifst.StdVectorFst(LG.to_kaldifst())
    kaldifst.arcsort(graph, "olabel")
    passed = range(len(lang.words) - 1, int(LG.olabels.max()) + 1)
    costs = []
    for sentence in sentences:
        ids = [lang.word_ids[word] for word in sentence]
        lines = [f"{n} {n + 1} {word} {word}\n" for n, word in enumerate(ids)]
        lines += [f"{n} {n} {symbol} 0\n" for n in range(len(sentence) + 1) for symbol in passed]
        acceptor = kaldifst.compile("".join(lines) + f"{len(sentence)}\n")
        kaldifst.arcsort(acceptor, "ilabel")
        found = kaldifst.compose(graph, acceptor)
        if not found.num_states:
            costs.append(math.inf)
            continue
        total = kaldifst.get_linear_symbol_sequence(kaldifst.shortest_path(found))[3]
        costs.append(total.value)
    return np.array(costs)


def viterbi(lm: ClassLm, sentence: list[str]) -> float:
    """-ln P of the best reading."""
    best = max(prob for _, prob in reading_probs(lm, sentence))
    return -math.log(best) if best else math.inf


def sampled(count: int) -> list[list[str]]:
    generator = stream(5, "sentences of a class graph")
    return [[WORDS[i] for i in generator.integers(0, len(WORDS), size=n % 7)] for n in range(count)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut_history", [True, False])
def test_costs_are_those_of_the_best_reading(lang: Lang, kind: str, cut_history: bool) -> None:
    """Never dearer; cheaper only where a graph backs off though it need not."""
    lm = class_lm(kind, cut_history)
    sentences = sampled(1000 if kind == "tree" else 200)
    found = graph_costs(joined(pieces_of(lang, lm, cut_history)), lang, sentences)
    with np.errstate(invalid="ignore"):
        excess = found - np.array([viterbi(lm, sentence) for sentence in sentences])
    possible = np.isfinite(found)
    assert possible.sum() > len(sentences) / 2
    assert np.isnan(excess[~possible]).all()  # what the graph lacks has no probability
    assert excess[possible].max() < 1e-3
    assert (np.abs(excess[possible]) < 1e-3).mean() > 0.5


def test_the_sum_over_readings_is_no_dearer_than_the_best() -> None:
    lm = class_lm("tree", True)
    sentences = sampled(50)
    sums = lm.token_log_probs(sentences)
    owners = np.repeat(np.arange(len(sentences)), [len(s) + 1 for s in sentences])
    assert (-np.bincount(owners, sums) <= [viterbi(lm, s) + 1e-9 for s in sentences]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut_history", [True, False])
def test_from_parts_and_whole_are_the_same(lang: Lang, kind: str, cut_history: bool) -> None:
    lm = class_lm(kind, cut_history)
    pieces, one = pieces_of(lang, lm, cut_history), whole(lang, lm, cut_history)
    sentences = [list(words) for n in range(4) for words in itertools.product(WORDS, repeat=n)]
    parts = graph_costs(joined(pieces), lang, sentences)
    np.testing.assert_allclose(parts, graph_costs(one, lang, sentences), atol=1e-4)
    assert np.isfinite(parts).sum() > 50
    assert set(one.olabels.tolist()) == set(joined(pieces).olabels.tolist())


def search(backend: str = "k2") -> SearchConfig:
    return SearchConfig(backend, 200.0, 30.0, 1000, 1_000_000, 1.0, [1.0], [0.0, 0.5, 2.0])


@pytest.fixture(scope="module")
def folder(lang: Lang, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("graph") / "graph"
    return make_class_graph(made, lang, class_lm("tree", True), a_config(True))


SAID = ["b ann rose a", "new york", "b b", "ann rose new b york york"]


@pytest.mark.parametrize("backend", ["k2", "kaldi"])
def test_words_and_spans_of_what_is_said(lang: Lang, folder: Path, backend: str) -> None:
    if backend == "kaldi":
        pytest.importorskip("kaldi_decoder")
    lm = class_lm("tree", True)
    decoder = open_decoder(folder, search(backend))
    for sentence in SAID:
        hyps = heard(decoder, lang.num_tokens, lang.encode(sentence))
        assert hyps is not None
        for hyp in hyps:
            assert not any("#" in word for word in hyp.words.split())
            assert hyp.classes is not None
            for first, end, kind in hyp.classes:
                assert math.isfinite(lm.sub_lms[kind].log_prob(tuple(hyp.words.split()[first:end])))
            assert -hyp.lm_score <= viterbi(lm, hyp.words.split()) + 1e-3
        if "ann" in sentence.split():
            assert any(kind == "PER" for _, _, kind in hyps[0].classes or ())


def test_marks_cost_no_insertion_penalty(folder: Path) -> None:
    """Both back ends find the same words at the same costs, also where words are dear."""
    import torch

    pytest.importorskip("kaldi_decoder")
    logits = stream(3, "logits").normal(size=(30, 14, 7)) * 3
    log_probs = torch.from_numpy(logits.astype(np.float32)).log_softmax(2)
    lengths = torch.full((30,), 14)
    decoders = [open_decoder(folder, search(backend)) for backend in ("k2", "kaldi")]
    both = [decoder.decode(log_probs, lengths) for decoder in decoders]
    named = 0
    for ours, theirs in zip(*both):
        assert ours is not None and theirs is not None
        for one, other in zip(ours, theirs):
            assert one.words == other.words and one.classes == other.classes
            assert other.am_score == pytest.approx(one.am_score, abs=1e-3)
            assert other.lm_score == pytest.approx(one.lm_score, abs=1e-3)
            named += len(one.classes or ())
    assert named > 10


def test_lists_have_different_words_and_spans(lang: Lang, folder: Path) -> None:
    """Of several readings of a word sequence the best one is listed, with its own score."""
    decoder = Decoder.from_folder(folder, search())
    config = NbestSearchConfig(60, 5.0, 100_000, 1.0, "exact")
    found = NbestSearch(decoder, Weights(1.0, 0.0), config)
    lm, marked = class_lm("tree", True), 0
    for sentence in SAID:
        one = heard(found, lang.num_tokens, lang.encode(sentence))
        assert one is not None
        words = [tuple(lang.words[word] for word in path.words) for path in one.paths]
        assert len(set(words)) == len(words) > 3
        for path, text in zip(one.paths, words):
            assert path.classes is not None and path.posteriors is not None
            assert len(path.posteriors) == len(text)
            assert -path.lm_score <= viterbi(lm, list(text)) + 1e-2
            for first, end, kind in path.classes:
                assert math.isfinite(lm.sub_lms[kind].log_prob(text[first:end]))
            marked += len(path.classes)
    assert marked > 10


def test_lattices_hold_words(lang: Lang, folder: Path) -> None:
    decoder = Decoder.from_folder(folder, search())
    lattices = LatticeSearch(decoder, Weights(1.0, 0.0), LatticeConfig(10.0, 1000))
    found = heard(lattices, lang.num_tokens, lang.encode(SAID[0]))
    assert found is not None and 0 < found.arrays.words.max() < len(lang.words) - 1


def test_decoded_names_reach_the_score_without_marks(
    lang: Lang, folder: Path, tmp_path: Path
) -> None:
    decoder = Decoder.from_folder(folder, search())
    records = []
    for n, sentence in enumerate(SAID):
        hyps = heard(decoder, lang.num_tokens, lang.encode(sentence))
        assert hyps is not None
        records.append(Record(f"u{n}", "dev", "s", sentence, False, hyps).to_dict())
    (tmp_path / "decode_dev").mkdir()
    write_jsonl(tmp_path / "decode_dev/1.jsonl", records)
    assert records[0]["hyps"][0]["classes"]
    for utterance in read_decoded(tmp_path / "decode_dev").utterances:
        words = utterance.hyp(Weights(1.0, 0.0))
        assert set(words) <= set(WORDS) and len(words) >= len(utterance.ref) - 1


def test_other_names_are_as_if_compiled_anew(lang: Lang, folder: Path) -> None:
    lm = class_lm("tree", True)
    other = make_sub_lm({("b", "b"): 1.0, ("york",): 2.0}, "tree")
    graphs, info = replace_names(folder, lang, {"LOC": other}, with_tlg=True)
    anew = ClassLm(lm.root, {**lm.sub_lms, "LOC": other})
    expected, described = compile_class_graph(lang, anew, a_config(True), place="lm")
    assert graphs.words == expected.words == (*lang.words, "#bPER", "#xPER", "#bLOC", "#xLOC")
    for key in ("num_states", "num_arcs", "classes", "num_words"):
        assert info[key] == described[key], key
    assert graphs.HLG.scores.tolist() == expected.HLG.scores.tolist()
    assert set(LOC) != {("b", "b"), ("york",)}
