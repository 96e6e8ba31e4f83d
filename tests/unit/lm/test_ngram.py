"""Estimated and pruned models are probability distributions, and say what was asked of them."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.lm.arpa import BOS, UNK, Arpa
from privasr_k2.lm.ngram import (
    DISCOUNTINGS,
    count_ngrams,
    estimate,
    history_frequencies,
    kneser_ney_discounts,
    perplexity,
)
from privasr_k2.lm.pruning import prune_to, with_fitting_backoffs
from privasr_k2.randomness import stream

VOCABULARY = list("abcdefgh")


def sentences(count: int = 60) -> list[list[str]]:
    generator = stream(1, "sentences")
    weights = np.arange(1, 7) / 21.0
    return [
        [VOCABULARY[i] for i in generator.choice(6, size=generator.integers(1, 7), p=weights)]
        for _ in range(count)
    ]


def sums(model: Arpa) -> np.ndarray:
    """The sum of P(w | h) over all words, for every history."""
    histories = np.concatenate([[0], np.unique(model.parents[model.counts[0] :])])
    words = np.arange(len(model.words))
    words = words[words != model.word_ids[BOS]]
    probs = [10 ** model.log10_conditional(np.full(len(words), h), words) for h in histories]
    return np.array([p.sum() for p in probs])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("discounting", DISCOUNTINGS)
def test_sums_to_one(discounting: str, order: int) -> None:
    model = estimate(count_ngrams(sentences(), VOCABULARY, order=order), discounting)
    np.testing.assert_allclose(sums(model), 1.0, atol=1e-9)


@pytest.mark.parametrize("discounting", DISCOUNTINGS)
def test_words_never_seen_can_be_recognized(discounting: str) -> None:
    model = estimate(count_ngrams(sentences(), VOCABULARY, order=3), discounting)
    assert model.log10_probs[model.word_ids["h"]] > -6


@pytest.mark.parametrize("discounting", DISCOUNTINGS)
def test_unknown_words_leave_no_long_ngrams(discounting: str) -> None:
    counts = count_ngrams(sentences(), VOCABULARY[:3], order=3)
    model = estimate(counts, discounting)
    unknown = model.word_ids[UNK]
    assert model.log10_probs[unknown] > -2
    assert not (model.last_words[len(model.words) :] == unknown).any()
    np.testing.assert_allclose(sums(model), 1.0, atol=1e-9)
    assert len(history_frequencies(counts)) == len(model.keys) + 1


@pytest.mark.parametrize("discounting", DISCOUNTINGS)
def test_pruned_to_a_number_and_still_sums_to_one(discounting: str) -> None:
    counts = count_ngrams(sentences(), VOCABULARY, order=3)
    model = estimate(counts, discounting)
    for limit in (len(model.keys), 80, 40, 11, 1):
        pruned, _ = prune_to(model, limit, history_frequencies(counts))
        assert len(pruned.keys) <= max(limit, pruned.counts[0])
        assert pruned.counts[0] == len(model.words)
        np.testing.assert_allclose(sums(pruned), 1.0, atol=1e-9)


def test_unigrams_stay_whatever_is_asked_for() -> None:
    unigrams = estimate(count_ngrams(sentences(), VOCABULARY, order=1), "witten_bell")
    assert prune_to(unigrams, 1)[0].counts == unigrams.counts
    # Someone's unigrams sum to 1.5: no back-off weight fits after a, and its bigrams are worth
    # infinity.
    words, keys = (BOS, "</s>", UNK, "a"), np.array([0, 1, 2, 3, 17, 18, 19])
    probs = np.log10([1e-99, 0.5, 0.5, 0.5, 0.5, 0.25, 0.125])
    full = Arpa(words, (4, 3), keys, probs, np.zeros(7))
    pruned, threshold = prune_to(full, 1)
    assert (threshold, pruned.counts) == (np.inf, (4,))


def test_no_mass_is_given_away_after_words_that_hold_all_of_it() -> None:
    # P(a | a) = 1: nothing is left for the end and the unknown word, which can follow by back-off
    # only.
    words, keys = (BOS, "</s>", UNK, "a"), np.array([0, 1, 2, 3, 19])
    probs = np.log10([1e-99, 0.5, 0.25, 0.25, 1.0])
    fitted = with_fitting_backoffs(Arpa(words, (4, 1), keys, probs, np.zeros(5)))
    np.testing.assert_allclose(sums(fitted), 1.0, atol=1e-9)


def test_less_pruning_is_never_worse_by_much() -> None:
    text = sentences(400)
    counts = count_ngrams(text, VOCABULARY, order=3)
    model = estimate(counts, "modified_kneser_ney")
    sizes = [len(model.keys), 100, 40, 11]
    found = [
        perplexity(prune_to(model, size, history_frequencies(counts))[0], text) for size in sizes
    ]
    assert found == sorted(found)
    assert found[0] < 0.95 * found[-1]


def test_too_small_a_text_falls_back_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    model = estimate(count_ngrams([["a", "b"], ["a"]], ["a", "b"], order=3), "modified_kneser_ney")
    assert "fixed discounts" in caplog.text
    np.testing.assert_allclose(sums(model), 1.0, atol=1e-9)


def test_discounts_by_hand() -> None:
    # n1 = 8, n2 = 3, n3 = 2, n4 = 1: Y = 8 / 14
    effective = np.repeat([1, 2, 3, 4], [8, 3, 2, 1])
    y = 8 / 14
    expected = [0.0, 1 - 2 * y * 3 / 8, 2 - 3 * y * 2 / 3, 3 - 4 * y * 1 / 2]
    assert kneser_ney_discounts(effective, modified=True, order=2) == pytest.approx(expected)


def test_witten_bell_by_hand() -> None:
    model = estimate(count_ngrams([["a"], ["a"], ["b"]], ["a", "b"], order=2), "witten_bell")
    p = 10**model.log10_probs
    # unigrams: c(a)=2 c(b)=1 c(</s>)=3, three kinds, uniform over </s> <unk> a b
    unigram_a = (2 + 3 / 4) / (6 + 3)
    assert p[model.word_ids["a"]] == pytest.approx(unigram_a)
    bos, a = (np.array([model.word_ids[word]]) for word in (BOS, "a"))
    row = model.children(bos + 1, a)[0] - 1
    assert p[row] == pytest.approx((2 + 2 * unigram_a) / (3 + 2))


def test_perplexity_by_hand() -> None:
    model = estimate(count_ngrams([["a"]], ["a"], order=1), "witten_bell")
    # P(a) = P(</s>) = (1 + 2 / 3) / 4; the unknown word is counted out
    assert perplexity(model, [["a", "x"]]) == pytest.approx(4 / (1 + 2 / 3))


def test_an_unknown_word_costs_nothing_and_breaks_the_history() -> None:
    model = estimate(count_ngrams(sentences(), VOCABULARY, order=2), "witten_bell")

    def log10_prob(history: str, word: str) -> float:
        node = model.word_ids[history] + 1 if history else 0
        return float(model.log10_conditional(np.array([node]), np.array([model.word_ids[word]]))[0])

    expected = log10_prob(BOS, "a") + log10_prob("", "b") + log10_prob("b", "</s>")
    assert model.log10_backoffs[model.word_ids["a"]] != 0
    assert perplexity(model, [["a", "x", "b"]]) == pytest.approx(10 ** (-expected / 3))


def test_errors() -> None:
    counts = count_ngrams([["a"]], ["a"], order=2)
    with pytest.raises(ConfigError, match="choose one"):
        estimate(counts, "katz")
    with pytest.raises(DataError, match="words"):
        count_ngrams([[]], ["a"], order=2)
    with pytest.raises(DataError, match="each word once"):
        count_ngrams([["a"]], ["a", "a"], order=2)
