"""Adapted models are distributions, and the unadapted ones where nothing is to be adapted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from privasr_k2.federated.adapted_lm import (
    Mixing,
    adapted_arpa,
    adapted_arpa_log_probs,
    adapted_log_probs,
    log_ratios,
)
from privasr_k2.lm.arpa import BOS, EOS
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.marginals import history_sums
from privasr_k2.lm.neural.kinds import new_lm
from privasr_k2.lm.neural.lstm import LstmConfig, LstmSpec
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.softmax import OutputConfig
from privasr_k2.lm.neural.transformer import TransformerConfig, TransformerSpec
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Vocabulary
from privasr_k2.lm.ngram import count_ngrams, estimate

V = 40
WORDS = Vocabulary((*SYMBOLS, *(f"w{n}" for n in range(V - 2))))
NBESTS = [
    [["w1", "w2", "w3"], ["w1", "w2"], []],
    [["w1", "w37", "w2", "w2"], ["w1", "w2", "w3"]],
    [],
    [["w30", "unheard", "w5"]],
]
STATES = np.array([0, 1, 1, 2])
KINDS = ["lstm full", "transformer full", "transformer adaptive"]


def scorer(kind: str) -> NeuralScorer:
    """A small random model."""
    network, softmax = kind.split()
    output = OutputConfig(softmax, [10, 25], 2.0, False)
    if network == "lstm":
        spec: Any = LstmSpec("lstm", output, network=LstmConfig(8, 8, 1, 0.5))
    else:
        spec = TransformerSpec("transformer", output, network=TransformerConfig(8, 16, 1, 2, 0.5))
    lm = new_lm(spec, WORDS, 3)
    with torch.no_grad():
        for parameter in lm.parameters():
            generator = torch.Generator().manual_seed(1)
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return NeuralScorer(lm, WORDS)


def some_factors(state: int) -> np.ndarray:
    """Two settings, the second of which adapts nothing."""
    made = np.random.default_rng(state).normal(size=(2, V))
    made[:, 0] = 0.0
    made[1] = 0.0
    return made


def by_definition(lm: NeuralScorer, factors: np.ndarray, hyp: list[str]) -> np.ndarray:
    """ln p' of a hypothesis's words and end, one history after the other."""
    text = WORDS.encode([hyp]).padded(np.array([0]))
    with torch.no_grad():
        lm.model.eval()
        log_probs = lm.model.log_probs(torch.from_numpy(text[:, :-1]))[0].double().numpy()
    adapted = log_probs + factors
    adapted -= np.log(np.exp(adapted).sum(axis=1, keepdims=True))
    return adapted[np.arange(len(hyp) + 1), text[0, 1:]]


@pytest.mark.parametrize("kind", KINDS)
def test_is_the_definition_in_every_state(kind: str) -> None:
    lm = scorer(kind)
    found = adapted_log_probs(lm, NBESTS, STATES, some_factors)
    expected = np.concatenate(
        [by_definition(lm, some_factors(s)[0], hyp) for s, n in zip(STATES, NBESTS) for hyp in n]
    )
    assert found.shape == (len(expected), 2)
    assert np.abs(found[:, 0] - expected).max() < 2e-5
    assert not np.allclose(found[:, 0], found[:, 1], atol=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_adapt_gives_the_bits_of_the_model(kind: str) -> None:
    lm = scorer(kind)
    found = adapted_log_probs(lm, NBESTS, STATES, some_factors)
    assert np.array_equal(found[:, 1], lm.nbest_token_log_probs(NBESTS))
    assert lm.model.training


@pytest.mark.parametrize("kind", KINDS)
def test_sums_to_one(kind: str) -> None:
    lm = scorer(kind)
    histories = [["w1"], ["w2", "w9"], []]
    nbests = [[[*h, w] for w in ("unheard", *WORDS.words)] + [list(h)] for h in histories]
    found = adapted_log_probs(lm, nbests, np.zeros(3, dtype=int), some_factors)[:, 0]
    start = 0
    for history, nbest in zip(histories, nbests):
        ends = start + np.cumsum([len(hyp) + 1 for hyp in nbest])
        of_word = np.append(found[ends[:-1] - 2], found[ends[-1] - 1])
        assert abs(np.exp(of_word).sum() - 1) < 1e-6, history
        start = ends[-1]


def test_blocks_do_not_matter() -> None:
    lm = scorer("transformer full")
    whole = adapted_log_probs(lm, NBESTS, STATES, some_factors)
    small = adapted_log_probs(lm, NBESTS, STATES, some_factors, max_numbers=1)
    assert np.allclose(small, whole, atol=1e-5)


def test_no_lists() -> None:
    for nbests in ([], [[]]):
        states = np.zeros(len(nbests), int)
        assert adapted_log_probs(scorer("lstm full"), nbests, states, some_factors).shape == (0, 2)


def test_ratios_are_exactly_zero_where_nothing_is_adapted() -> None:
    some, zero = np.array([0.3, -0.7, 5.0]), np.zeros(3)
    for mixing, shared, own in (
        (Mixing(0.7, 0.0, 0.0), some, some),
        (Mixing(0.7, 0.3, 0.3), zero, zero),
        (Mixing(0.7, 0.0, 0.3), some, zero),
        (Mixing(0.7, 0.3, 0.0), zero, some),
    ):
        assert not log_ratios(mixing, shared, own).any()


def test_ratios_are_equation_2() -> None:
    rng = np.random.default_rng(2)
    u, q, own = rng.dirichlet(np.ones(V), size=3)
    g = 0.25 * u + 0.45 * q + 0.3 * own
    found = log_ratios(Mixing(0.4, 0.45, 0.3), q / u - 1, own / u - 1)
    assert np.allclose(found, np.log(g / u), atol=1e-12)
    lowest = log_ratios(Mixing(1.0, 0.5, 0.5), np.array([-1.0]), np.array([-1.0]))
    assert np.isfinite(lowest).all() and lowest < -20


@pytest.mark.parametrize(
    ("values", "message"),
    [
        *(((-0.1, 0.5, 0.2), "lam"), ((float("nan"), 0.1, 0.1), "lam")),
        *(((0.5, -0.1, 0.2), "alpha"), ((0.5, 0.2, 1.1), "beta"), ((0.5, 0.6, 0.5), r"alpha \+ ")),
    ],
)
def test_hyper_parameters_out_of_range(values: tuple[float, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mixing(*values)


def test_an_ngram_model_is_adapted_exactly() -> None:
    text = [["a", "b", "a"], ["b", "c"], ["a"], ["c", "c", "b"]]
    model = estimate(count_ngrams(text, ["a", "b", "c"], order=2), "witten_bell")
    factors = np.random.default_rng(3).normal(size=(2, len(model.words)))
    for word in (BOS, EOS):
        factors[:, model.word_ids[word]] = 0.0
    factors[1] = 0.0
    adapted = adapted_arpa(model, factors[0])
    assert np.abs(history_sums(adapted) - 1).max() < 1e-9
    assert adapted_arpa(model, factors[1]) is model
    nbests = [[["a", "b"], ["c"]], [["b"]]]
    states = np.array([0, 1])
    found = adapted_arpa_log_probs(model, nbests, states, lambda s: factors if s else 0 * factors)
    plain = ClassLm(model, {}).nbest_token_log_probs(nbests)
    assert np.array_equal(found[:5, 0], plain[:5]) and np.array_equal(found[:, 1], plain)
    expected = ClassLm(adapted, {}).nbest_token_log_probs(nbests)
    assert np.allclose(found[5:, 0], expected[5:], atol=1e-12)
    assert not np.allclose(found[5:, 0], plain[5:], atol=1e-3)
