"""The best of a random number of runs: enumerated chances, and dp-accounting's bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from dp_accounting.rdp import RdpAccountant

from privasr_k2.privacy import events, renyi
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.searches import RUN_ORDERS, log_gamma

ORDERS = np.array([1.05, 1.5, 2.0, 5.0, 12.0, 60.0])


def chances_of_counts(mean: float, shape: float | None, most: int) -> np.ndarray:
    """P[K = k] for k = 0, ..., most, from the definition."""
    k = np.arange(most + 1)
    if shape is None:
        logs = k * math.log(mean) - mean - np.array([math.lgamma(n + 1) for n in k])
        return np.exp(logs)
    gamma = math.exp(log_gamma(mean, shape))
    if shape == 0:
        weights = (1 - gamma) ** k[1:] / k[1:]
    else:
        rising = np.cumsum(np.log(np.abs(k[:-1] + shape))) - np.cumsum(np.log(k[1:]))
        weights = np.exp(rising + k[1:] * math.log1p(-gamma))
    return np.append(0.0, weights / weights.sum())


def best(run: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The chances of the best of K: outcomes rise in quality; none at all is the last place."""
    up_to = np.append(0.0, np.cumsum(run))
    powers = up_to[:, None] ** np.arange(len(counts))
    found = (np.diff(powers, axis=0) * counts).sum(axis=1)
    return np.append(found, counts[0]) if counts[0] > 0 else found


def renyi_of(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Both ways round, the larger one."""
    both = [
        [np.log((a**o * b ** (1 - o)).sum()) / (o - 1) for o in ORDERS] for a, b in ((p, q), (q, p))
    ]
    return np.max(both, axis=0)


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.5, 1.0, 3.0, None])
@pytest.mark.parametrize("mean", [1.5, 4.0, 20.0])
def test_the_mean_is_the_mean(mean, shape):
    counts = chances_of_counts(mean, shape, 60_000 if shape is not None else 150)
    assert counts.sum() == pytest.approx(1.0)
    tolerance = 0.01 if shape is not None and shape < 0 else 1e-6
    assert counts @ np.arange(len(counts)) == pytest.approx(mean, rel=tolerance)


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, 3.0, None])
@pytest.mark.parametrize("mean", [1.5, 8.0])
@pytest.mark.parametrize("noise", [0.5, 0.9])
def test_no_search_over_a_small_mechanism_exceeds_its_bound(mean, shape, noise):
    """Randomized response over 4 outcomes, of any order of quality; exact Rényi divergences."""
    run = events.randomized_response(noise, 4)
    bound = renyi.rdp(events.search(run, mean, shape), ORDERS)
    counts = chances_of_counts(mean, shape, 1500 if shape is not None else 120)
    found = np.zeros(len(ORDERS))
    for own in range(4):
        for other in range(4):
            p, q = (np.full(4, noise / 4) + (1 - noise) * np.eye(4)[k] for k in (own, other))
            found = np.maximum(found, renyi_of(best(p, counts), best(q, counts)))
    assert (found <= bound).all() and (found[-2:] > 0.1 * bound[-2:]).all()
    alone = renyi.rdp(run, ORDERS)
    assert (bound >= alone).all()
    if mean > 2 and shape is not None:  # more than one run tells more than one
        assert (found > alone).any()


@pytest.mark.parametrize("shape", [0.0, 1.0, 3.0])
def test_a_pure_search_stays_pure(shape):
    run = events.randomized_response(0.5, 4)
    pure = renyi.pure_epsilon(events.search(run, 30.0, shape))
    assert pure == pytest.approx((2 + shape) * renyi.pure_epsilon(run))
    counts, largest = chances_of_counts(30.0, shape, 3000), 0.0
    for own in range(4):
        for other in range(4):
            p, q = (np.full(4, 0.125) + 0.5 * np.eye(4)[k] for k in (own, other))
            largest = max(largest, np.abs(np.log(best(p, counts) / best(q, counts))).max())
    assert 0.3 * pure < largest <= pure


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, None])
@pytest.mark.parametrize(("sigma", "mean"), [(4.0, 10.0), (20.0, 100.0)])
def test_dp_accounting_has_the_same_bound(sigma, mean, shape):
    """The same theorems; orders differ, as ours are whole above 64."""
    theirs = RdpAccountant(np.unique([*RUN_ORDERS, *ORDERS]))
    event = dp.GaussianDpEvent(sigma)
    theirs.compose(dp.RepeatAndSelectDpEvent(event, mean, math.inf if shape is None else shape))
    ours = account(events.search(event, mean, shape), Relation.ADD_OR_REMOVE_ONE, 1e-5)
    assert ours.pld is None
    assert ours.rdp == pytest.approx(theirs.get_epsilon(1e-5), rel=2e-3)


def test_a_search_costs_less_than_that_many_runs_and_more_than_one():
    run = events.repeated(events.poisson_sampled(0.02, events.gaussian(1.2)), 500)
    relation, delta = Relation.ADD_OR_REMOVE_ONE, 1e-5
    one, all_runs = (
        account(event, relation, delta).value for event in (run, events.repeated(run, 50))
    )
    searched = account(events.search(run, 50.0, 0.0), relation, delta).value
    assert one < searched < all_runs / 2
