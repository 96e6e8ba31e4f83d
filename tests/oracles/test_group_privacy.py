"""Cost for several units at once against numerical integration of the densities themselves."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from privasr_k2.privacy import events, loss_distributions, renyi
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.groups import for_group

Density = Callable[[float], float]
ONE = Relation.ADD_OR_REMOVE_ONE


def log_densities(rate: float, size: int, sigma: float) -> tuple[Density, Density]:
    """Output of one round without the group, and with it: subsets of the units, one by one."""
    shares = [comb(size, n) * rate**n * (1 - rate) ** (size - n) for n in range(size + 1)]

    def without(z: float) -> float:
        return float(norm.logpdf(z, 0, sigma))

    def present(z: float) -> float:
        return float(logsumexp(norm.logpdf(z, np.arange(size + 1), sigma), b=shares))

    return without, present


def hockey_stick(p: Density, q: Density, epsilon: float, ends: tuple[float, float]) -> float:
    def excess(z: float) -> float:
        return max(0.0, float(np.exp(p(z)) - np.exp(epsilon + q(z))))

    return float(quad(excess, *ends, limit=800)[0])


def renyi_divergence(p: Density, q: Density, order: float, ends: tuple[float, float]) -> float:
    moment = quad(lambda z: np.exp(order * p(z) + (1 - order) * q(z)), *ends, limit=800)[0]
    return float(np.log(moment) / (order - 1))


@pytest.mark.parametrize(("rate", "size", "sigma"), [(0.1, 3, 1.5), (0.5, 2, 0.8), (0.02, 10, 1.0)])
def test_delta_and_divergence_of_a_round(rate: float, size: int, sigma: float) -> None:
    without, present = log_densities(rate, size, sigma)
    both = ((present, without), (without, present))
    event = for_group(events.poisson_sampled(rate, events.gaussian(sigma)), size)
    for epsilon in (0.1, 1.0, 3.0):
        ends = (-12 * sigma, size + 12 * sigma)
        delta = max(hockey_stick(p, q, epsilon, ends) for p, q in both)
        claimed = loss_distributions.delta(event, epsilon)
        assert delta - 1e-9 <= claimed <= delta * 1.02 + 1e-7
    for order in (1.5, 4.0):
        ends = (-12 * sigma, order * size + 12 * sigma)
        expected = max(renyi_divergence(p, q, order, ends) for p, q in both)
        assert renyi.rdp(event, np.array([order]))[0] == pytest.approx(expected, rel=1e-6)


def test_one_unit_is_a_group_of_one() -> None:
    round_event = events.poisson_sampled(0.1, events.gaussian(1.2))
    one = events.repeated(round_event, 30)
    mixture = events.repeated(events.sampled_group(0.1, 1, 1.2), 30)
    assert for_group(one, 1) == one
    expected, found = (account(event, ONE, 1e-5) for event in (one, mixture))
    assert found.rdp == pytest.approx(expected.rdp, rel=1e-6)
    assert expected.value * (1 - 1e-6) <= found.value <= expected.value * 1.005


def test_a_sure_sample_is_no_sample() -> None:
    sampled = account(events.sampled_group(1.0, 3, 6.0), ONE, 1e-5)
    assert sampled.value == pytest.approx(account(events.gaussian(2.0), ONE, 1e-5).value, rel=1e-3)
