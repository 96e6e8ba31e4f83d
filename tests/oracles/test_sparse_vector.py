"""Sparse vector: exact chances of where a run ends, on all small neighbours; draws; an audit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

from privasr_k2.privacy import events, loss_distributions, renyi
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.audit.intervals import bound_from_counts
from privasr_k2.privacy.audit.two_histograms import event_counts
from privasr_k2.privacy.calibration import noise_for
from privasr_k2.privacy.sparse_vector import ENDED, NOT_ASKED, PASSED, SparseVector

ORDERS = np.array([1.1, 2.0, 6.0, 40.0])


def discrete_laplace(scale: float, reach: int) -> np.ndarray:
    """Chances of -reach, ..., reach."""
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return weights / weights.sum()


def ends(counts: tuple[int, ...], made: SparseVector) -> np.ndarray:
    """Where one run ends: chances of the counts in turn, and of none, by sums."""
    reach = math.ceil(40 * max(made.threshold_scale, made.count_scale)) + 20
    rho = discrete_laplace(made.threshold_scale, reach)
    below = np.append(0.0, np.cumsum(discrete_laplace(made.count_scale, 3 * reach)))
    z = made.threshold + np.arange(-reach, reach + 1)
    still, found = rho.copy(), []
    for count in counts:
        lower = below[np.clip(z - count + 3 * reach, 0, len(below) - 1)]  # P(nu < z - f)
        found.append((still * lower).sum())
        still = still * (1 - lower)
    return np.array([*found, still.sum()])


def changes(one_way: bool) -> list[tuple[int, ...]]:
    """What one unit may change in three counts."""
    if one_way:
        return [*itertools.product((0, 1), repeat=3), *itertools.product((0, -1), repeat=3)]
    return [*itertools.product((-1, 0, 1), repeat=3)]


@pytest.mark.parametrize("one_way", [True, False])
@pytest.mark.parametrize("scales", [(0.8, 0.8), (1.0, 3.0), (3.0, 1.5)])
def test_no_neighbour_of_any_small_counts_exceeds_the_claim(scales, one_way):
    made = SparseVector(threshold=2, threshold_scale=scales[0], count_scale=scales[1], most=1)
    event = made.event(one_way=one_way)
    cost = 1 / scales[0] + 2 / scales[1]
    widest, highest, delta = 0.0, 0.0, np.zeros(3)
    divergence, epsilons = np.zeros(len(ORDERS)), np.array([0.1, 0.4, 0.8]) * cost
    cached = {c: ends(c, made) for c in itertools.product(range(-9, 14, 1), repeat=3) if ok(c)}
    for counts, p in cached.items():
        for moved in changes(one_way):
            q = cached.get(tuple(np.add(counts, moved).tolist()))
            if q is None:
                continue
            losses = np.log(p / q)
            widest, highest = max(widest, np.ptp(losses)), max(highest, np.abs(losses).max())
            rdp = [logsumexp(o * np.log(p) + (1 - o) * np.log(q)) / (o - 1) for o in ORDERS]
            divergence = np.maximum(divergence, rdp)
            sticks = [np.maximum(p - math.exp(e) * q, 0).sum() for e in epsilons]
            delta = np.maximum(delta, sticks)
    assert (divergence <= renyi.rdp(event, ORDERS) * (1 + 1e-9)).all()
    allowed = np.array([loss_distributions.delta(event, e) for e in epsilons])
    assert (delta <= allowed + 1e-12).all() and delta[0] > 0.05 * allowed[0]
    if one_way:
        assert 0.55 * cost < widest <= cost * (1 + 1e-9)
        assert highest <= 1 / scales[0] + 1 / scales[1] + 1e-9
    else:
        assert 0.55 * cost < highest <= cost * (1 + 1e-9)


def ok(counts: tuple[int, ...]) -> bool:
    """Few enough to look at all of them, with counts far from the threshold among them."""
    return all(abs(c - 2) in (0, 1, 2, 10, 11) for c in counts)


@pytest.mark.parametrize("most", [1, 2])
def test_draws_come_as_often_as_enumerated(most):
    counts, draws = (3, 1, 2), 2500
    made = SparseVector(threshold=2, threshold_scale=1.0, count_scale=1.5, most=most)
    found = [tuple(made.passed(counts).tolist()) for _ in range(draws)]
    wanted: dict[tuple[int, ...], float] = {}

    def go_on(before: tuple[int, ...], runs: int, chance: float) -> None:
        rest = counts[len(before) :]
        if not rest or not runs:
            outcome = before + (NOT_ASKED,) * len(rest)
            wanted[outcome] = wanted.get(outcome, 0.0) + chance
            return
        *places, never = ends(rest, made)
        for place, share in enumerate(places):
            go_on((*before, *[PASSED] * place, ENDED), runs - 1, chance * share)
        go_on((*before, *[PASSED] * len(rest)), 0, chance * never)

    go_on((), most, 1.0)
    assert set(found) <= set(wanted) and sum(wanted.values()) == pytest.approx(1.0)
    frequencies = [found.count(outcome) for outcome in wanted]
    assert chisquare(frequencies, np.array([*wanted.values()]) * draws).pvalue > 1e-5


def test_an_audit_stays_below_the_claim_and_exceeds_it_with_less_noise():
    """A unit that takes its part of a count at the threshold: where the run ends tells of it."""

    def lower(share: float) -> tuple[float, float]:
        given = dict(threshold=2, threshold_scale=share, count_scale=2 * share, most=1)
        made = SparseVector(**given)
        drawn = [
            np.array([int(made.passed(counts).argmin()) for _ in range(1500)])
            for counts in ([3, 2, 2], [2, 1, 1])
        ]
        options = {"delta": 1e-6, "confidence": 0.95}
        true, false = event_counts(*drawn, **options)
        bound = bound_from_counts(
            true_positives=true, positives=750, false_positives=false, negatives=750,
            method="two histograms", **options,
        )  # fmt: skip
        claimed = account(made.event(one_way=True), Relation.ADD_OR_REMOVE_ONE, 1e-6).value
        return bound.epsilon_lower, claimed

    (sound, claimed), (broken, _) = lower(1.0), lower(0.1)
    assert 0 < sound < claimed < broken


def expected_ends(count: int, counts: int, made: SparseVector) -> float:
    """Of so many equal counts: the mean of runs that end, exactly, however many may end.

    An end at k is the first one, or the first after one at i < k: u_k = p_k + sum u_i p_(k - i).
    """
    first = ends((count,) * counts, made)[:-1]
    at = np.zeros(counts)
    for k in range(counts):
        at[k] = first[k] + at[:k] @ first[:k][::-1]
    return float(at.sum())


def test_the_mean_of_ends_is_that_of_draws():
    made = SparseVector(threshold=2, threshold_scale=1.0, count_scale=1.5, most=40)
    found = [int((made.passed([4] * 40) == ENDED).sum()) for _ in range(400)]
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - expected_ends(4, 40, made)) < 5 * error


def test_noise_alone_ends_many_runs():
    """The figures of the module: 250 teachers, epsilon 8, delta 1e-5, 1,000 runs."""
    target = dict(epsilon=8.0, delta=1e-5, relation=Relation.ADD_OR_REMOVE_ONE)

    def made(scale: float) -> SparseVector:
        scales = dict(threshold_scale=scale, count_scale=scale)
        return SparseVector(threshold=131, most=1000, **scales)

    scale = noise_for(lambda value: made(value).event(one_way=True), **target)
    assert scale == pytest.approx(28.7, rel=0.01)
    assert expected_ends(187, 30_000, made(scale)) == pytest.approx(534, abs=1)
    answer, run = (events.bounded_range(1 / scale), made(scale).event(one_way=True).event)
    ratio = renyi.rdp(run, np.array([2.0])) / renyi.rdp(answer, np.array([2.0]))
    assert ratio == pytest.approx(9.0, rel=0.01)
