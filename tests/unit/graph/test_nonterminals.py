"""What is put into a grammar for classes, and what is refused."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import GraphError
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.class_pieces import compile_class_graph, read_pieces, replace_names
from privasr_k2.graph.grammar import grammar
from privasr_k2.graph.hlg import load_graph, save_graph
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.graph.nonterminals import (
    ClassGraphConfig,
    check_classes,
    delimited_words,
    names_grammar,
    with_calls,
)
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.sub_lm import SubLm, make_sub_lm
from tests.support.small_graphs import make_class_graph, make_lang

WORDS = ["a", "ann", "bob", "lee"]
TEXT = [["a", "<PER>"], ["<PER>", "a", "<PER>"], ["a", "<LOC>", "a"], ["a", "a", "<PER>", "lee"]]
PER = {("ann",): 2.0, ("ann", "lee"): 1.0, ("bob",): 1.0}


@pytest.fixture
def lang(tmp_path: Path) -> Lang:
    return make_lang(tmp_path / "lang", "a A\nann A N\nbob B A B\nlee L\n")


def a_root(tags: tuple[str, ...] = ("<PER>", "<LOC>"), order: int = 3) -> Arpa:
    return estimate(count_ngrams(TEXT, [*WORDS, *tags], order=order), "witten_bell")


def a_lm(**more: SubLm) -> ClassLm:
    subs = {"PER": make_sub_lm(PER, "tree"), "LOC": make_sub_lm({("lee",): 1.0}, "tree"), **more}
    return ClassLm(a_root(), subs, cut_history=True)


def a_config(**values: object) -> ClassGraphConfig:
    limits = {"max_states": 1000, "max_class_states": 1000, "unknown_min_tokens": 2}
    usual = {"ctc_topology": "standard", "cut_history": True, "unknown_names": "none", **limits}
    return ClassGraphConfig(**{**usual, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("cut_history", [True, False])
def test_calls_and_returns(lang: Lang, order: int, cut_history: bool) -> None:
    delimiters, backoff, root = ClassDelimiters(6, ("PER", "LOC")), 5, a_root(order=order)
    plain = grammar(
        root, delimited_words(lang.word_ids, delimiters), backoff_label=backoff, place="lm"
    )
    G = with_calls(plain, delimiters, backoff_label=backoff, cut_history=cut_history)
    calls, returns = (np.flatnonzero(np.isin(G.labels, marks)) for marks in ((6, 8), (7, 9)))
    old = np.flatnonzero(plain.labels >= 6)
    assert len(calls) == len(old) and G.num_words == 4
    np.testing.assert_array_equal(G.costs[calls], plain.costs[old])
    assert (G.costs[returns] == 0).all() and np.isinf(G.finals[len(plain.finals) :]).all()
    # Each return is the only arc of a state, which its own class's calls lead to.
    assert len(set(G.sources[returns])) == len(returns)
    columns = (column[returns].tolist() for column in (G.sources, G.labels, G.targets))
    back = {source: (label, target) for source, label, target in zip(*columns)}
    for call, before in zip(calls, old):
        label, target = back[int(G.targets[call])]
        assert label == G.labels[call] + 1
        if not cut_history:
            assert target == plain.targets[before]
    if cut_history:
        assert len(returns) == 2
        # The state that a tag alone leads to from the empty history, which backs off no further.
        empty = set(range(len(plain.finals))) - set(plain.sources[plain.labels == backoff].tolist())
        first = [n for n in old if int(plain.sources[n]) in empty]
        wanted = {int(plain.labels[n]): int(plain.targets[n]) for n in first}
        assert {label - 1: target for label, target in back.values()} == wanted


def test_names_end_with_their_mark(lang: Lang) -> None:
    sub = make_sub_lm(PER, "tree")
    G = names_grammar(sub, "PER", lang.word_ids, leave=7)
    ending = G.labels == 7
    assert ending.sum() == 3 and set(G.targets[ending].tolist()) == {len(sub.finals)}
    assert math.exp(-G.costs[ending].max()) == pytest.approx(2 / 3)
    assert np.flatnonzero(np.isfinite(G.finals)).tolist() == [len(sub.finals)]


def test_names_that_nobody_can_say_are_left_out(
    lang: Lang, caplog: pytest.LogCaptureFixture
) -> None:
    names = {("ann",): 2.0, ("ann", "smith"): 1.0, ("jones",): 1.0}
    with caplog.at_level(logging.WARNING):
        sub = make_sub_lm(names, "tree", unknown_mass=0.2)
        G = names_grammar(sub, "PER", lang.word_ids, leave=7)
    assert set(G.labels.tolist()) == {lang.word_ids["ann"], 7}
    text = caplog.text
    assert "class PER: 2 words of names are not in the lexicon" in text and "jones smith" in text
    assert "unlisted names (<unk>)" in text and "60.00 % of its probability" in text


def test_classes_that_cannot_be(lang: Lang) -> None:
    with pytest.raises(GraphError, match=r"class PER: expected names of words .*, found .*smith"):
        names_grammar(make_sub_lm({("smith",): 1.0}, "tree"), "PER", lang.word_ids, leave=7)
    with pytest.raises(GraphError, match=r"not nested.*<LOC>"):
        names_grammar(make_sub_lm({("ann", "<LOC>"): 1.0}, "tree"), "PER", lang.word_ids, leave=7)
    lm = ClassLm(a_root(), {"PER": make_sub_lm(PER, "tree")})
    with pytest.raises(GraphError, match=r"names for every class .*, found none for <LOC>"):
        compile_class_graph(lang, lm, a_config(), place="lm")


def test_a_tag_without_a_probability(lang: Lang) -> None:
    root = a_root(order=1)
    root.log10_probs[root.word_ids["<LOC>"]] = -99.0
    delimiters = ClassDelimiters(6, ("PER", "LOC"))
    G = grammar(root, delimited_words(lang.word_ids, delimiters), backoff_label=5, place="lm")
    with pytest.raises(GraphError, match="a probability of <LOC>"):
        with_calls(G, delimiters, backoff_label=5, cut_history=True)


@pytest.mark.k2
def test_limits(lang: Lang) -> None:
    with pytest.raises(GraphError, match="at most 3 states in LG"):
        compile_class_graph(lang, a_lm(), a_config(max_states=3), place="lm")
    _, info = compile_class_graph(lang, a_lm(), a_config(cut_history=False), place="lm")
    made = info["classes"]["pieces"]
    states = sum(piece["copies"] * piece["states"] for piece in made.values())
    assert made["PER"]["copies"] > 1
    few = a_config(cut_history=False, max_class_states=states - 1)
    with pytest.raises(GraphError, match=r"(?s)at most \d+ states for the names.*cut_history=true"):
        compile_class_graph(lang, a_lm(), few, place="lm")


@pytest.mark.k2
def test_a_folder_and_other_names(tmp_path: Path, lang: Lang) -> None:
    graphs, _ = compile_class_graph(lang, a_lm(), a_config(), place="lm")
    graph = load_graph(make_class_graph(tmp_path / "graph", lang, a_lm(), a_config()))
    info = graph.info
    assert graph.delimiters == ClassDelimiters(6, ("PER", "LOC"))
    assert int(graph.HLG.aux_labels.values.max()) < 5 <= 9 == int(graph.HLG.symbols.values.max())
    said = [row.tolist() for row in np.split(graphs.HLG.words, graphs.HLG.splits[1:-1])]
    assert graph.HLG.symbols.tolist() == said
    assert info["num_words"] == 4 and info["classes"]["cut_history"] is True

    names = {"LOC": make_sub_lm({("bob", "bob"): 1.0}, "tree")}
    changed, told = replace_names(tmp_path / "graph", lang, names, with_tlg=False)
    assert changed.TLG is None and "TLG" not in told["num_states"]
    save_graph(changed, lang, told, tmp_path / "other")
    assert load_graph(tmp_path / "other").info == told
    pieces, _ = read_pieces(tmp_path / "other")
    before, _ = read_pieces(tmp_path / "graph")
    assert pieces.root.olabels.tolist() == before.root.olabels.tolist()
    assert pieces.names["LOC"].num_arcs > before.names["LOC"].num_arcs

    with pytest.raises(GraphError, match="one of the classes PER LOC, found ORG"):
        replace_names(tmp_path / "graph", lang, {"ORG": names["LOC"]}, with_tlg=False)
    (lang.folder / "lexicon.txt").write_text("a A\nann A N\nbob B A B\nlee L A\n")
    with pytest.raises(GraphError, match="another one"):
        replace_names(tmp_path / "graph", load_lang(lang.folder), names, with_tlg=False)
    (tmp_path / "graph/class_pieces/PER.fst").unlink()
    with pytest.raises(GraphError, match=r"PER\.fst: expected a piece"):
        read_pieces(tmp_path / "graph")


def test_an_unknown_word_in_capitals_is_no_class() -> None:
    check_classes(["<s>", "<UNK>", "<PER>"], ["PER"], "lm")
    with pytest.raises(GraphError, match="<LOC>"):
        check_classes(["<LOC>", "<UNK>"], ["PER"], "lm")
