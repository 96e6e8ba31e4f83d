"""Approximations are distributions; their formula is checked in tests/oracles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.lm.approximate import ApproximationConfig, approximate, expected, probs_of_text
from privasr_k2.lm.arpa import read_arpa, write_arpa
from privasr_k2.lm.distributions import ArpaDistributions
from privasr_k2.lm.marginals import history_sums
from privasr_k2.lm.ngram import count_ngrams, estimate, perplexity
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


def settings(*values: str) -> ApproximationConfig:
    """Those of ``conf/`` with other values."""
    return config.load(ApproximationConfig, [CONF], list(values))


def teacher(vocabulary: list[str], discounting: str = "modified_kneser_ney") -> ArpaDistributions:
    """A trigram model."""
    return ArpaDistributions(estimate(count_ngrams(sentences(2, 90), vocabulary, order=3),
                                      discounting))  # fmt: skip


@pytest.mark.parametrize("unigrams", ["average", "counts"])
@pytest.mark.parametrize("order", [1, 3])
def test_every_history_of_what_is_expected_sums_to_one(unigrams: str, order: int) -> None:
    # Words that the model lacks, that the vocabulary lacks, and that both lack.
    text = [*sentences(1, 60), ["w1", "zzz", "w2"], ["w3", "own", "w3"]]
    values = settings(f"order={order}", f"unigrams={unigrams}", "priors=[2]")
    for vocabulary in (VOCABULARY, [*VOCABULARY, "own"], VOCABULARY[:15]):
        found = expected(teacher(VOCABULARY), text, vocabulary, values)
        assert found.order == order and set(found.words[3:]) == set(vocabulary)
        assert np.abs(history_sums(found) - 1).max() < 1e-9
        names = [found.words[word] for word in found.last_words[len(found.words) :]]
        assert "<unk>" not in names


def test_some_occurrences_stand_for_all() -> None:
    text, lm = sentences(1, 200), teacher(VOCABULARY)
    models = {
        number: expected(lm, text, VOCABULARY, settings("priors=[2]", f"occurrences={number}"))
        for number in (0, 10**6, 2)
    }
    np.testing.assert_array_equal(models[0].log10_probs, models[10**6].log10_probs)
    # A trigram model says the same at each occurrence of two words, so nothing is lost.
    np.testing.assert_array_equal(models[0].keys, models[2].keys)
    np.testing.assert_allclose(models[0].log10_probs, models[2].log10_probs, atol=1e-5)


def test_probabilities_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    text, lm = sentences(1, 60), teacher(VOCABULARY)
    whole = expected(lm, text, VOCABULARY, settings("priors=[2]"))
    monkeypatch.setattr("privasr_k2.lm.soft_counts.MAX_PROBS", 1)
    single = expected(lm, text, VOCABULARY, settings("priors=[2]"))
    np.testing.assert_array_equal(whole.keys, single.keys)
    np.testing.assert_allclose(whole.log10_probs, single.log10_probs, atol=1e-5)


def test_the_prior_is_the_best_on_dev() -> None:
    text, dev, lm = sentences(1, 60), sentences(3, 60), teacher(VOCABULARY, "witten_bell")
    priors = (0.01, 2.0, 50.0)
    found = [
        perplexity(expected(lm, text, VOCABULARY, settings(f"priors=[{prior}]")), dev)
        for prior in priors
    ]
    chosen = expected(lm, text, VOCABULARY, settings(f"priors={[*priors]}".replace(" ", "")), dev)
    assert perplexity(chosen, dev) == min(found) < max(found)
    with pytest.raises(DataError, match="dev text"):
        expected(lm, text, VOCABULARY, settings("priors=[1,2]"))


def test_a_model_of_other_words() -> None:
    with pytest.raises(DataError, match=r"words of words\.txt"):
        expected(teacher(VOCABULARY), [["a"]], ["a"], settings("priors=[2]"))


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


@pytest.mark.parametrize(
    "value",
    [
        "order=0",
        "unigrams=none",
        "block_words=0",
        "max_ngrams=-1",
        "estimate=none",
        "priors=[]",
        "priors=[0]",
        "priors=[1,1]",
        "least=0",
        "occurrences=-1",
    ],
)
def test_values_out_of_range(value: str) -> None:
    with pytest.raises(ConfigError):
        config.load(ApproximationConfig, [CONF], [value])
