"""Models of numbers of speakers."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.mixtures import open_lm
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.voted import VotedLmConfig, train_on_votes

CONFIG = VotedLmConfig(sentence_words=2.0, unreleased=True)


def test_votes_that_are_the_counts_of_a_text_give_its_model() -> None:
    text = [["a", "b"], ["a", "c"], ["b", "b"]]
    words = {"a": 2, "b": 3, "c": 1}
    bigrams = {
        ("<s>", "a"): 2, ("<s>", "b"): 1, ("a", "b"): 1, ("a", "c"): 1, ("b", "b"): 1,
        ("b", "</s>"): 2, ("c", "</s>"): 1,
    }  # fmt: skip
    model = train_on_votes(words, bigrams, ["c", "a", "b", "d"], CONFIG)
    same = estimate(count_ngrams(text, ["c", "a", "b", "d"], order=2), "witten_bell")
    assert (model.words, model.counts) == (same.words, same.counts)
    assert model.log10_probs == pytest.approx(same.log10_probs)
    assert model.log10_backoffs == pytest.approx(same.log10_backoffs)


def test_the_vocabulary_is_that_of_the_release_or_of_the_folder() -> None:
    votes = {"a": 9, "not in the folder": 9}
    closed = dataclasses.replace(CONFIG, unreleased=False)
    assert train_on_votes(votes, {}, ["a", "d"], closed).words[3:] == ("a",)
    whole = train_on_votes(votes, {("a", "gone"): 3}, ["a", "d"], CONFIG)
    assert whole.words[3:] == ("a", "d") and whole.log10_probs[4] > -2
    with pytest.raises(DataError, match="epsilon"):
        train_on_votes({"b": 2}, {}, ["a"], closed)
    nothing = train_on_votes({}, {}, ["a", "d"], CONFIG)  # a release without a word is a result
    assert len(set(nothing.log10_probs[3:5].tolist())) == 1


def test_without_bigrams_words_are_independent_and_libraries_read_the_model(tmp_path: Path) -> None:
    model = train_on_votes({"a": 9, "b": 3}, {}, ["a", "b"], CONFIG)
    ps = dict(zip(model.words, model.log10_probs.tolist(), strict=False))
    write_arpa(model, tmp_path / "lm.arpa.gz")
    read = open_lm(tmp_path / "lm.arpa.gz")
    for sentence in ([], ["a"], ["b", "a", "b"]):
        expected = sum(ps[word] for word in sentence) + ps["</s>"]
        found = read.token_log_probs([sentence]).sum() / math.log(10)
        assert found == pytest.approx(expected, abs=1e-5)
