"""Replacement by other than uniform draws: every pair of values, enumerated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from privasr_k2.privacy import events, loss_distributions, renyi
from privasr_k2.privacy.replacement import weighted_replacement

LISTS = [(0.5, 0.5), (0.2, 0.3, 0.5), (0.1, 0.1, 0.3, 0.5), (0.01, 0.09, 0.2, 0.7), (0.25,) * 4]
ORDERS = np.array([1.01, 2.0, 7.0, 40.0])


def outcomes(kept: int | None, keep: float, chances: np.ndarray) -> np.ndarray:
    """P(. | word); None is a word off the list, which is always replaced."""
    if kept is None:
        return chances
    return keep * np.eye(len(chances))[kept] + (1 - keep) * chances


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """Sum of max(0, P - e^epsilon Q)."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("keep", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("chances", LISTS)
def test_no_pair_of_words_costs_more(keep, chances):
    chances = np.array(chances)
    event = weighted_replacement(keep_probability=keep, chances=chances)
    epsilon = renyi.pure_epsilon(event)
    epsilons = np.array([0.0, 0.3, 0.6, 0.95]) * epsilon
    divergence, delta, largest = np.zeros(len(ORDERS)), np.zeros(len(epsilons)), 0.0
    for one, two in itertools.permutations([None, *range(len(chances))], 2):
        p, q = outcomes(one, keep, chances), outcomes(two, keep, chances)
        largest = max(largest, np.log(p / q).max())
        rdp = [np.log((p**o * q ** (1 - o)).sum()) / (o - 1) for o in ORDERS]
        divergence = np.maximum(divergence, rdp)
        delta = np.maximum(delta, [hockey_stick(p, q, e) for e in epsilons])
    assert largest == pytest.approx(epsilon, rel=1e-12)  # attained
    bound = renyi.rdp(event, ORDERS)
    assert (divergence <= bound * (1 + 1e-9)).all()
    allowed = np.array([loss_distributions.delta(event, e) for e in epsilons])
    assert (delta <= allowed * (1 + 1e-9)).all()
    assert delta == pytest.approx(allowed, rel=2e-3, abs=1e-9)  # the worst of both directions
    if (np.sort(chances)[:2] == chances.min()).all():  # two words with the smallest chance
        assert divergence == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("categories", [2, 5, 100])
def test_uniform_draws_are_randomized_response(categories):
    uniform = weighted_replacement(keep_probability=0.3, chances=[1 / categories] * categories)
    known = events.randomized_response(0.7, categories)
    assert renyi.pure_epsilon(uniform) == pytest.approx(renyi.pure_epsilon(known))
    assert renyi.rdp(uniform, ORDERS) == pytest.approx(renyi.rdp(known, ORDERS))
    three = [
        loss_distributions.epsilon(events.repeated(e, 3), 1e-3, guess=3.0) for e in (uniform, known)
    ]
    assert three[0] == pytest.approx(three[1], rel=1e-3)


def test_several_draws_against_enumeration():
    """Three words, each replaced by the worst other one."""
    p, q = (outcomes(word, 0.4, np.array([0.15, 0.15, 0.7])) for word in (0, 1))
    p3, q3 = (np.einsum("i,j,k->ijk", x, x, x).ravel() for x in (p, q))
    event = events.repeated(events.weighted_response(0.6, 0.15), 3)
    for epsilon in (0.5, 1.5, 3.0):
        found = loss_distributions.delta(event, epsilon)
        assert hockey_stick(p3, q3, epsilon) * (1 - 1e-9) <= found
        assert found == pytest.approx(hockey_stick(p3, q3, epsilon), rel=3e-3)
