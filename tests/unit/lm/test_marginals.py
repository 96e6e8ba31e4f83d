"""Adapted models are distributions, meet the two ends of beta, and refuse what they cannot use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.lm.arpa import BOS, UNK, Arpa, read_arpa, write_arpa
from privasr_k2.lm.marginals import (
    MarginalsConfig,
    adapt,
    adapt_on_dev,
    history_normalizers,
    history_sums,
    smoothed_unigrams,
)
from privasr_k2.lm.ngram import count_ngrams, estimate, perplexity
from privasr_k2.lm.pruning import prune_to
from tests.support.conf import section
from tests.support.tiny_lm import VOCABULARY, sentences

CONF = section("fma")


@pytest.fixture(scope="module", params=["modified_kneser_ney", "kneser_ney", "witten_bell"])
def background(request: pytest.FixtureRequest) -> Arpa:
    model = estimate(count_ngrams(sentences(1, 200), VOCABULARY, order=3), request.param)
    return prune_to(model, 250)[0]


def adapted_unigrams(model: Arpa) -> np.ndarray:
    return smoothed_unigrams(sentences(2, 20, reverse=True), model, 5.0)


@pytest.mark.parametrize("equation", [1, 2])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_every_history_sums_to_one(
    tmp_path: Path, background: Arpa, equation: int, beta: float
) -> None:
    found = adapt(background, adapted_unigrams(background), beta, equation=equation)
    assert np.abs(history_sums(found) - 1).max() < 1e-12
    np.testing.assert_array_equal(found.keys, background.keys)
    write_arpa(found, tmp_path / "a.arpa.gz")
    assert np.abs(history_sums(read_arpa(tmp_path / "a.arpa.gz")) - 1).max() < 1e-5


def test_beta_zero_and_one(background: Arpa) -> None:
    target = adapted_unigrams(background)
    same = adapt(background, target, 0.0, equation=1)
    np.testing.assert_allclose(same.log10_probs, background.log10_probs, atol=1e-12)
    np.testing.assert_allclose(same.log10_backoffs, background.log10_backoffs, atol=1e-12)
    flat = adapt(background, target, 0.0, equation=2)
    words = np.flatnonzero(target > 0)
    histories = np.random.default_rng(1).integers(0, len(background.keys), len(words))
    found = 10 ** flat.log10_conditional(histories, words)
    np.testing.assert_allclose(found, target[words], atol=1e-12)
    first, second = (adapt(background, target, 1.0, equation=equation) for equation in (1, 2))
    np.testing.assert_allclose(first.log10_probs, second.log10_probs, atol=1e-12)
    np.testing.assert_allclose(first.log10_backoffs, second.log10_backoffs, atol=1e-12)


def test_smoothed_unigrams_by_hand() -> None:
    model = estimate(count_ngrams([["a", "b"], ["a"]], ["a", "b", "c"], order=1), "witten_bell")
    prior = 10.0**model.log10_probs
    prior[0] = 0.0
    expected = (np.array([0, 1, 1, 1, 0, 0]) + 4 * prior) / 7  # </s>, <unk> for x, a
    found = smoothed_unigrams([["a", "x"]], model, 4.0)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.sum() == pytest.approx(1)
    rounded = replace(model, log10_probs=model.log10_probs - 0.01)
    np.testing.assert_allclose(smoothed_unigrams([["a", "x"]], rounded, 4.0), expected, atol=1e-12)
    kinds = smoothed_unigrams([["a", "x"]], model, 0.0)
    np.testing.assert_allclose(kinds, (expected * 7 - prior) / 6, atol=1e-12)


def test_a_word_that_the_background_cannot_predict_stays_impossible() -> None:
    model = estimate(count_ngrams([["a", "b"], ["a"]], ["a", "b"], order=2), "kneser_ney")
    assert model.log10_probs[model.word_ids[UNK]] == -99  # <unk> has nothing here
    target = smoothed_unigrams([["b", "x"]], model, 1.0)
    assert target[model.word_ids[UNK]] == 0 == target[model.word_ids[BOS]]
    for equation in (1, 2):
        found = adapt(model, target, 0.5, equation=equation)
        assert found.log10_probs[model.word_ids[UNK]] == -99
        assert np.abs(history_sums(found) - 1).max() < 1e-12


def test_unigrams_of_the_background_text_take_the_place_of_the_models(background: Arpa) -> None:
    target = adapted_unigrams(background)
    base = smoothed_unigrams(sentences(1, 200), background, 1.0)
    found = adapt(background, target, 0.5, equation=1, background=base)
    words = np.flatnonzero(target > 0)
    ratio = 10 ** (found.log10_probs - background.log10_probs)[words]
    expected = np.sqrt(target / np.where(base > 0, base, 1))[words]
    np.testing.assert_allclose(ratio / ratio[0], expected / expected[0], atol=1e-9)


def test_sums_with_factors(background: Arpa) -> None:
    factors = np.random.default_rng(2).random(len(background.words))
    words = np.arange(len(background.words))
    nodes = np.arange(len(background.keys) + 1 - background.counts[-1])
    found = history_normalizers(background, factors, 1.0)
    for node in nodes[::17]:
        probs = 10 ** background.log10_conditional(np.full(len(words), node), words)
        assert found[node] == pytest.approx((factors * probs).sum(), abs=1e-12)


def test_beta_is_that_of_the_least_perplexity(background: Arpa) -> None:
    settings = config.load(MarginalsConfig, [CONF], ["betas=[0.0,0.25,0.5,0.75]"])
    target, dev = adapted_unigrams(background), sentences(3, 30, reverse=True)
    found = adapt_on_dev(background, target, settings, dev)
    expected = {
        (equation, beta): perplexity(adapt(background, target, beta, equation=equation), dev)
        for equation in (1, 2)
        for beta in settings.betas
    }
    of_first = {point: ppl for point, ppl in expected.items() if point[0] == 1}
    assert found.perplexities == of_first
    assert (1, found.beta) == min(of_first, key=lambda point: of_first[point]) and found.beta > 0
    assert perplexity(found.model, dev) == expected[1, found.beta]
    both = adapt_on_dev(background, target, replace(settings, equation=None), dev)
    assert both.perplexities == expected
    assert (both.equation, both.beta) == min(expected, key=lambda point: expected[point])
    assert perplexity(both.model, dev) == min(expected.values())
    fixed = adapt_on_dev(background, target, config.load(MarginalsConfig, [CONF], ["beta=0.1"]), [])
    assert (fixed.equation, fixed.beta, fixed.perplexities) == (1, 0.1, {})


@pytest.mark.parametrize(
    "value", ["beta=1.5", "equation=3", "betas=[0.5,-1]", "prior_words=-1", "betas=[]"]
)
def test_values_out_of_range(value: str) -> None:
    with pytest.raises(ConfigError):
        config.load(MarginalsConfig, [CONF], [value])


def test_what_cannot_be_used(background: Arpa) -> None:
    with pytest.raises(DataError, match=r"adapt.txt: expected words"):
        smoothed_unigrams([["zzz"]], background_without_unknown(), 0, "adapt.txt")
    settings = config.load(MarginalsConfig, [CONF])
    with pytest.raises(DataError, match="choose equation or beta by"):
        adapt_on_dev(background, adapted_unigrams(background), settings, [])
    with pytest.raises(GraphError, match="can follow"):
        adapt(background, np.zeros(len(background.words)), 0.5, equation=2)


def background_without_unknown() -> Arpa:
    return estimate(count_ngrams([["a", "b"], ["a"]], ["a", "b"], order=2), "kneser_ney")
