"""Bounded range against enumerated chances: neighbours of small histograms, adaptive trees."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import binom

from privasr_k2.privacy import bounded_range, events, loss_distributions, renyi
from privasr_k2.privacy.pate.sensitivity import Change

ORDERS = np.array([1.01, 1.5, 2.0, 4.0, 16.0, 300.0])


def chances(utilities: np.ndarray, scale: float) -> np.ndarray:
    """The exponential mechanism, class by class."""
    weights = np.array([math.exp((u - max(utilities)) / scale) for u in utilities])
    return weights / weights.sum()


def neighbours(teachers: int, classes: int, change: Change) -> Iterator[tuple[np.ndarray, ...]]:
    """All pairs of counts: a vote comes or goes, or moves."""
    for row in itertools.product(range(teachers + 1), repeat=classes):
        counts, one = np.array(row), np.eye(classes, dtype=int)
        for to in range(classes):
            if change is Change.GIVEN:
                yield counts, counts + one[to]
                yield counts + one[to], counts
            for source in range(classes) if change is Change.MOVES else ():
                if source != to and counts[source]:
                    yield counts, counts + one[to] - one[source]


def renyi_of(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """In nats."""
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1))


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """Sum of max(0, P - e^epsilon Q)."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize("scale", [0.6, 2.0, 9.0])
@pytest.mark.parametrize("change", Change)
def test_no_neighbour_of_any_small_histogram_exceeds_the_range_and_its_costs(change, scale):
    eta = change.l1 / scale
    event = events.bounded_range(eta)
    epsilons = np.array([-0.4, 0.0, 0.3, 0.8]) * eta
    allowed = np.array([loss_distributions.delta(event, e) for e in epsilons[1:]])
    bounds, widest, found = renyi.rdp(event, ORDERS), 0.0, np.zeros(len(ORDERS))
    delta = np.zeros(len(epsilons))
    for with_unit, without in neighbours(4, 3, change):
        p, q = chances(with_unit, scale), chances(without, scale)
        losses = np.log(p / q)
        widest = max(widest, losses.max() - losses.min())
        assert losses.max() >= 0 >= losses.min()
        found = np.maximum(found, [renyi_of(p, q, order) for order in ORDERS])
        delta = np.maximum(delta, [hockey_stick(p, q, epsilon) for epsilon in epsilons])
    assert widest == pytest.approx(eta, rel=1e-9)  # attained, and never more
    assert (found <= bounds * (1 + 1e-9)).all() and (found > 0).all()
    assert (bounds <= ORDERS * eta**2 / 8 * (1 + 1e-12)).all()
    assert (delta <= bounded_range.profile(eta, 1, epsilons) + 1e-12).all()
    assert (delta[1:] <= allowed + 1e-12).all()


@pytest.mark.parametrize("eta", [0.05, 0.7, 4.0])
def test_the_bounds_of_one_answer_are_attained_by_some_counts(eta):
    """Two classes, a vote given to the first: every t occurs as the counts' difference varies."""

    def pair(lead: float) -> tuple[np.ndarray, np.ndarray]:
        return chances(np.array([lead + 1.0, 0.0]), 1 / eta), chances(
            np.array([lead, 0.0]), 1 / eta
        )

    def largest(measure) -> float:
        leads = np.linspace(-30 / eta, 30 / eta, 2001)
        start = max(leads, key=lambda lead: measure(*pair(lead)))
        near = (start - 0.03 / eta, start + 0.03 / eta)
        found = minimize_scalar(lambda lead: -measure(*pair(lead)), bounds=near, method="bounded")
        return -found.fun

    for order in (1.5, 3.0, 20.0):
        bound = renyi.rdp(events.bounded_range(eta), np.array([order]))[0]
        assert largest(lambda p, q: renyi_of(p, q, order)) == pytest.approx(bound, rel=1e-6)  # noqa: B023
    for epsilon in np.array([-0.5, 0.0, 0.5, 0.9]) * eta:
        bound = bounded_range.profile(eta, 1, np.array([epsilon]))[0]
        assert largest(lambda p, q: hockey_stick(p, q, epsilon)) == pytest.approx(bound, rel=1e-6)  # noqa: B023


def adaptive(etas: list[float], spent: float, epsilon: float, points: int = 60) -> float:
    """The largest delta where every t may follow from the losses until now: all t of a grid."""
    if not etas:
        return max(0.0, -math.expm1(epsilon - spent))
    eta, rest, best = etas[0], etas[1:], 0.0
    for t in np.linspace(0.0, eta, points + 1):
        p = math.expm1(eta - t) / math.expm1(eta) * math.exp(t)
        ahead = adaptive(rest, spent + t, epsilon, points)
        best = max(best, p * ahead + (1 - p) * adaptive(rest, spent + t - eta, epsilon, points))
    return best


@pytest.mark.parametrize("eta", [0.2, 1.5])
@pytest.mark.parametrize("share", [-0.3, 0.0, 0.4, 0.9])
def test_two_answers_that_follow_each_other(eta, share):
    bound = bounded_range.profile(eta, 2, np.array([share * 2 * eta]))[0]
    found = adaptive([eta, eta], 0.0, share * 2 * eta, points=160)
    assert found <= bound * (1 + 1e-12) and bound == pytest.approx(
        found, rel=0.01 if share < 0.5 else 0.1
    )
    event = events.repeated(events.bounded_range(eta), 2)
    if share >= 0:
        assert found <= loss_distributions.delta(event, share * 2 * eta) * (1 + 1e-9)


@pytest.mark.parametrize("order", [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1)])
def test_answers_of_two_ranges_in_any_order(order):
    etas = [(0.5, 0.8)[k] for k in order]
    event = events.composed(*[events.bounded_range(eta) for eta in etas])
    for epsilon in (0.0, 0.5, 1.2):
        found = adaptive(etas, 0.0, epsilon, points=24)
        assert found <= loss_distributions.delta(event, epsilon) <= 1.25 * found + 0.01


def test_a_question_that_follows_from_an_answer_costs_no_more():
    """Two answers of 3 classes; the second question is the worst one for the first answer."""
    scale, epsilon, row = 1.2, 1.0, np.array([2, 1, 0])
    pairs = [(chances(a, scale), chances(b, scale)) for a, b in neighbours(3, 3, Change.GIVEN)]
    p, q = chances(row + np.array([0, 1, 0]), scale), chances(row, scale)
    delta = sum(
        max(hockey_stick(p[i] * second, q[i] * other, epsilon) for second, other in pairs)
        for i in range(3)
    )
    bound = loss_distributions.delta(events.repeated(events.bounded_range(1 / scale), 2), epsilon)
    assert 0 < delta <= bound


@pytest.mark.parametrize(("eta", "count"), [(0.33, 100), (0.0746, 1951), (0.9, 30)])
def test_many_answers_cost_little_more_than_as_many_coins(eta, count):
    """The same t throughout makes binomials: lower bounds, summed exactly."""
    heads = np.arange(count + 1)
    coins = []
    for t in np.linspace(0.3, 0.7, 41) * eta:
        p = math.expm1(eta - t) / math.expm1(eta) * math.exp(t)
        coins.append([binom.logpmf(heads, count, x) for x in (p, p * math.exp(-t))])
    event = events.repeated(events.bounded_range(eta), count)
    epsilon = loss_distributions.epsilon(event, 1e-5, guess=8.0)

    def beyond(value: float) -> float:
        return max(float(np.maximum(np.exp(p) - np.exp(value + q), 0.0).sum()) for p, q in coins)

    assert beyond(epsilon) <= 1e-5 <= beyond(0.985 * epsilon)
    assert epsilon <= renyi.epsilon(event, 1e-5)[0]
    concentrated = events.repeated(events.concentrated(eta**2 / 8), count)
    assert renyi.epsilon(event, 1e-5)[0] <= renyi.epsilon(concentrated, 1e-5)[0]
