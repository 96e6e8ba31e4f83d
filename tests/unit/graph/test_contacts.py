"""A user's names in an open graph: kept, exchanged, refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import DataError, GraphError
from privasr_k2.graph.contacts import ContactGraph, hash_of
from privasr_k2.graph.hlg import GraphConfig
from privasr_k2.graph.name_trees import name_arcs, spoken_words
from privasr_k2.graph.splice import splice_names
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.sub_lm import make_sub_lm
from privasr_k2.text.hotwords import Hotwords, read_hotwords
from tests.support.hotwords import write_list
from tests.support.small_graphs import make_lang
from tests.support.tiny_lm import sentences

WORDS = ["ab", "n", "ba"]
LEXICON = "ab ▁ a b\nn ▁ n\nba ▁ b a\n"
CONFIG = GraphConfig("standard", 10_000)


def opened(folder: Path) -> ContactGraph:
    lang = make_lang(folder / "lang", LEXICON)
    model = estimate(count_ngrams(sentences(3, 40, words=WORDS), WORDS, order=2), "witten_bell")
    return ContactGraph.compile(lang, model, CONFIG, model_path=Path("a.arpa"))


def names_of(folder: Path, *lines: str) -> Hotwords:
    return read_hotwords(write_list(folder / "names.txt", *lines))


def test_what_is_kept_takes_the_same_names(tmp_path: Path) -> None:
    made, path = opened(tmp_path), tmp_path / "contacts.safetensors"
    assert ContactGraph.load(path, made.lang, "x") is None
    made.save(path, "x")
    assert ContactGraph.load(path, made.lang, "y") is None
    kept = ContactGraph.load(path, made.lang, "x")
    assert kept is not None
    names = names_of(tmp_path, "Ban ab", "nab")
    (ours, words), (theirs, same) = (of.with_names(names, log_prob=-4) for of in (made, kept))
    assert words == same == (*made.lang.words[:-1], "ban", "nab", "#0", "#bNAME", "#xNAME")
    for name, values in vars(ours).items():
        np.testing.assert_array_equal(values, getattr(theirs, name))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(GraphError, match="whole safetensors file"):
        ContactGraph.load(path, made.lang, "x")


def test_arcs_are_sorted_and_lead_on(tmp_path: Path) -> None:
    """As k2 needs them: by source, the end last; and every state but the end has an arc."""
    names = names_of(tmp_path, "ban ab", "n", "nab")
    HLG, words = opened(tmp_path).with_names(names, log_prob=-4)
    keys = HLG.sources.astype(np.int64) << 32 | HLG.labels.view(np.uint32)
    assert (np.diff(keys) >= 0).all()
    assert (HLG.labels[HLG.targets == HLG.num_states - 1] == -1).all()
    assert set(HLG.sources.tolist()) == set(range(HLG.num_states - 1))
    assert set(HLG.words.tolist()) >= {words.index(word) for word in ("ban", "nab", "#bNAME")}


def test_entering_costs_the_log_prob(tmp_path: Path) -> None:
    """The oracle holds bonuses equal."""
    made = opened(tmp_path)
    scores = [made.with_names(names_of(tmp_path, "nab"), log_prob=x)[0].scores for x in (-1, -3)]
    assert set(np.round(scores[0] - scores[1], 4)) == {0.0, 2.0}


def test_names_that_cannot_be_spelled_and_too_many_states(tmp_path: Path) -> None:
    made = opened(tmp_path)
    with pytest.raises(DataError, match=r"names.txt:2: .*'zed' in 'n zed'"):
        made.with_names(names_of(tmp_path, "ab", "n zed"), log_prob=-4)
    sub = make_sub_lm({("ab",): 1.0}, "tree")
    arcs = name_arcs(sub, spoken_words(["ab"], {"ab": [[1, 2, 3]]}), np.array([1]))
    with pytest.raises(GraphError, match="at most 2 states"):
        splice_names(made.opened, {0: arcs}, max_states=2)
    with pytest.raises(GraphError, match="none of class 0"):
        splice_names(made.opened, {}, max_states=2)


def test_other_sources_or_settings_have_another_hash(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("a")
    first = hash_of([file], CONFIG)
    assert hash_of([file], GraphConfig("modified", 10_000)) != first
    file.write_text("b")
    assert hash_of([file], CONFIG) != first
