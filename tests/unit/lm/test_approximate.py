"""Approximations are distributions; their formula is checked in tests/oracles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.lm.approximate import ApproximationConfig, approximate, probs_of_text
from privasr_k2.lm.arpa import read_arpa, write_arpa
from privasr_k2.lm.marginals import history_sums
from tests.support.conf import section
from tests.support.tiny_lm import VOCABULARY, sentences

CONF = section("approximate")


class Lengths:
    """Says of every word how many words its sentence has, as a probability; remembers its calls."""

    name, words, scores_unknown = "lengths", VOCABULARY, True

    def __init__(self) -> None:
        self.calls: list[int] = []

    def token_log_probs(self, text: list[list[str]]) -> np.ndarray:
        self.calls.append(len(text))
        return np.log([1.0 / (1 + len(s)) for s in text for _ in range(len(s) + 1)])

    nbest_token_log_probs = token_log_probs


@pytest.mark.parametrize("unigrams", ["average", "counts"])
@pytest.mark.parametrize("order", [1, 3])
def test_every_history_sums_to_one(tmp_path: Path, unigrams: str, order: int) -> None:
    text = [*sentences(1, 60), ["w1", "zzz", "w2"]]
    probs = probs_of_text(Lengths(), text, 50)
    found = approximate(text, probs, VOCABULARY, order=order, unigrams=unigrams)
    assert found.order == order
    assert np.abs(history_sums(found) - 1).max() < 1e-12
    write_arpa(found, tmp_path / "a.arpa")
    assert np.abs(history_sums(read_arpa(tmp_path / "a.arpa")) - 1).max() < 1e-5


def test_the_text_is_read_in_blocks() -> None:
    text, lm = sentences(1, 60), Lengths()
    found = probs_of_text(lm, text, 40)
    assert len(lm.calls) > 3 and sum(lm.calls) == 60
    np.testing.assert_array_equal(found, probs_of_text(Lengths(), text, 10**9))
    assert len(probs_of_text(Lengths(), [], 10)) == 0


def test_a_probability_of_zero_leaves_the_mass_to_shorter_n_grams() -> None:
    text = [["w1", "w2"], ["w1"]]
    found = approximate(text, np.zeros(5), VOCABULARY, order=2, unigrams="counts")
    assert np.abs(history_sums(found) - 1).max() < 1e-12


def test_another_text() -> None:
    with pytest.raises(DataError, match="expected 3 words and sentence ends, found 2"):
        approximate([["w1", "w2"]], np.ones(2), VOCABULARY, order=2, unigrams="counts")


def test_what_is_no_probability() -> None:
    class Broken(Lengths):
        def token_log_probs(self, text: list[list[str]]) -> np.ndarray:
            return super().token_log_probs(text) + np.nan

    with pytest.raises(DataError, match="lengths: expected probabilities"):
        probs_of_text(Broken(), [["w1"]], 10)


@pytest.mark.parametrize("value", ["order=0", "unigrams=none", "block_words=0", "max_ngrams=-1"])
def test_values_out_of_range(value: str) -> None:
    with pytest.raises(ConfigError):
        config.load(ApproximationConfig, [CONF], [value])
