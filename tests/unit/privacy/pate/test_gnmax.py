from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant, compute_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.calibration import noise_for
from privasr_k2.privacy.pate.gnmax import (
    confident_gnmax_epsilon,
    confident_gnmax_event,
    gnmax_epsilon,
    gnmax_event,
    largest_sum,
    posteriors_event,
)
from privasr_k2.privacy.pate.log_q import gnmax_log_q, threshold_log_q
from privasr_k2.privacy.pate.theorem6 import theorem6

ORDERS = [1.5, 2.0, 10.0, 64.0]
CONFIDENT = {
    "sigma": 10.0, "answers": 30, "threshold": 60.0, "threshold_sigma": 20.0, "discrete": False,
    "delta": 1e-6,
}  # fmt: skip
CHECKED = {"sigma": 7.0, "answers": 30, "threshold_sigma": 9.0, "asked": 200}
VOTES = np.random.default_rng(2).multinomial(100, [0.8, 0.1, 0.1], size=80)


def rdp_of(event: events.Event) -> np.ndarray:
    accountant = RdpAccountant(ORDERS)
    accountant.compose(event)
    return np.array(accountant._rdp)


def test_the_events_cost_what_the_papers_say() -> None:
    orders = np.array(ORDERS)
    event = gnmax_event(sigma=7.0, answers=30, discrete=False)
    np.testing.assert_allclose(rdp_of(event), 30 * orders / 49)
    event = confident_gnmax_event(**CHECKED, discrete=False)
    np.testing.assert_allclose(rdp_of(event), 30 * orders / 49 + 200 * orders / (2 * 81))
    event = posteriors_event(sigma=0.3, largest_weight=0.1, vectors=5)
    np.testing.assert_allclose(rdp_of(event), 5 * orders * (0.1 / 0.3) ** 2)


def test_discrete_noise_is_added_to_two_counts_of_every_answer() -> None:
    answer, check = events.discrete_gaussian(7.0, 1), events.discrete_gaussian(9.0, 1)
    event = confident_gnmax_event(**CHECKED, discrete=True)
    assert events.terms(event) == {answer: 60, check: 200}
    assert events.terms(gnmax_event(sigma=7.0, answers=3, discrete=True)) == {answer: 6}


def test_the_epsilon_of_votes_is_the_sum_over_queries_at_the_best_order() -> None:
    orders = 1.0 + np.geomspace(0.1, 100, 40)
    found = gnmax_epsilon(VOTES, sigma=12.0, discrete=False, delta=1e-6, orders=orders)
    log_qs = [gnmax_log_q(row[None], sigma=12.0, discrete=False) for row in VOTES]
    rows = [theorem6(log_q, sigma=12.0) for log_q in log_qs]
    totals = [sum(row.rdp(order)[0] for row in rows) for order in orders.tolist()]
    assert (found.epsilon, found.order) == pytest.approx(compute_epsilon(orders, totals, 1e-6))
    searched = gnmax_epsilon(VOTES, sigma=12.0, discrete=False, delta=1e-6)
    assert searched.epsilon <= found.epsilon * (1 + 1e-9)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.5, 40.0))
def test_votes_never_cost_more_than_the_worst_votes(seed: int, sigma: float) -> None:
    votes = np.random.default_rng(seed).multinomial(50, [0.7, 0.2, 0.1], size=20)
    orders = 1.0 + np.geomspace(0.02, 1e4, 200)
    worst, _ = compute_epsilon(orders, 20 * orders / sigma**2, 1e-5)
    found = gnmax_epsilon(votes, sigma=sigma, discrete=False, delta=1e-5, orders=orders)
    assert found.epsilon <= worst * (1 + 1e-12)


def test_confident_answers_cost_all_checks_and_the_dearest_answers() -> None:
    order = 6.0
    found = confident_gnmax_epsilon(VOTES, **CONFIDENT, orders=[order])
    log_q = threshold_log_q(VOTES.max(axis=1), threshold=60.0, sigma=20.0, discrete=False)
    checks = theorem6(log_q, sigma=20.0 * 2**0.5)
    answers = theorem6(gnmax_log_q(VOTES, sigma=10.0, discrete=False), sigma=10.0).rdp(order)
    assert found.rdp == pytest.approx(checks.rdp(order).sum() + np.sort(answers)[-30:].sum())
    assert found.rdp < 30 * order / 100 + 80 * order / (2 * 400)


def test_fewer_answers_never_cost_more() -> None:
    costs = [
        confident_gnmax_epsilon(VOTES, **(CONFIDENT | {"answers": answers}), orders=[6.0]).rdp
        for answers in range(0, 81, 10)
    ]
    assert costs == sorted(costs)
    all_answered = gnmax_epsilon(VOTES, sigma=10.0, discrete=False, delta=1e-6, orders=[6.0])
    assert costs[-1] == pytest.approx(costs[0] + all_answered.rdp)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 9), st.integers(1, 4)), min_size=1, max_size=6),
    st.integers(0, 30),
)
def test_the_largest_are_summed(items: list[tuple[float, int]], at_most: int) -> None:
    each = sorted((cost for cost, count in items for _ in range(count)), reverse=True)
    costs, counts = np.array([c for c, _ in items]), np.array([n for _, n in items])
    assert largest_sum(costs, counts, at_most) == pytest.approx(sum(each[:at_most]))


def test_no_noise_always_wins_where_votes_are_looked_at() -> None:
    # Unanimous votes: the less noise, the surer the outcome, and what is counted as its cost.
    votes = [[100, 0, 0]] * 1000

    def epsilon(sigma: float) -> float:
        return gnmax_epsilon(votes, sigma=sigma, discrete=False, delta=1e-5).epsilon

    found = [epsilon(sigma) for sigma in (13.0, 11.0, 9.0, 7.0, 5.0, 1.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.3 and found[-1] == 0.0
    assert not any(epsilon(10.0**-n) for n in range(0, 100, 9))
    # The guarantee that holds for all votes says the opposite.
    orders = 1.0 + np.geomspace(0.02, 1e4, 100)
    honest = [
        compute_epsilon(orders, 1000 * orders / sigma**2, 1e-5)[0] for sigma in (13.0, 5.0, 1.0)
    ]
    assert honest == sorted(honest) and honest[0] > 20 and honest[-1] > 1000


def test_it_cannot_be_taken_for_a_guarantee() -> None:
    found = gnmax_epsilon(VOTES, sigma=12.0, discrete=False, delta=1e-6)
    # Ledger, accountants and calibration take events, and this is none.
    for take in (events.terms, events.to_json, events.for_replacing):
        with pytest.raises(PrivacyError, match="NotForRelease"):
            take(found)
    with pytest.raises(PrivacyError):
        events.terms(events.repeated(found, 3))
    with pytest.raises(TypeError):
        json.dumps(found)
    with pytest.raises(TypeError):
        float(found)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="NotForRelease"):
        target = {"epsilon": 1.0, "delta": 1e-6, "relation": Relation.ADD_OR_REMOVE_ONE}
        noise_for(lambda s: gnmax_epsilon(VOTES, sigma=s, discrete=True, delta=1e-6), **target)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"sigma": -1.0}, "sigma"),
        ({"threshold_sigma": 0.0}, "sigma"),
        ({"threshold": math.nan}, "threshold"),
        ({"answers": 81}, "answers"),
        ({"answers": -1}, "answers"),
        ({"answers": 3.0}, "answers"),
        ({"delta": 0.0}, "delta"),
        ({"orders": np.array([2, 3])}, "orders"),
    ],
)
def test_bad_input_is_refused(changed: dict[str, object], named: str) -> None:
    with pytest.raises(PrivacyError, match=named):
        confident_gnmax_epsilon(VOTES, **(CONFIDENT | changed))


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (gnmax_event, {"sigma": -1.0, "answers": 1, "discrete": False}),
        (gnmax_event, {"sigma": 1.0, "answers": 1.5, "discrete": False}),
        (gnmax_event, {"sigma": 0.0, "answers": 1, "discrete": True}),
        (confident_gnmax_event, {**CHECKED, "asked": 4, "discrete": False}),
        (confident_gnmax_event, {**CHECKED, "threshold_sigma": -1.0, "discrete": False}),
        (confident_gnmax_event, {**CHECKED, "asked": 4, "discrete": True}),
        (posteriors_event, {"sigma": 1.0, "largest_weight": 0.0, "vectors": 1}),
        (posteriors_event, {"sigma": math.nan, "largest_weight": 0.1, "vectors": 1}),
    ],
)
def test_bad_events_are_refused(make: Callable[..., object], values: dict[str, object]) -> None:
    with pytest.raises(PrivacyError):
        make(**values)


def test_discrete_noise_has_costs_of_its_own() -> None:
    for make in (
        lambda discrete: gnmax_epsilon(VOTES, sigma=10.0, discrete=discrete, delta=1e-6),
        lambda discrete: confident_gnmax_epsilon(VOTES, **(CONFIDENT | {"discrete": discrete})),
    ):
        assert make(True).epsilon != make(False).epsilon
        assert make(True).epsilon == pytest.approx(make(False).epsilon, rel=0.2)
