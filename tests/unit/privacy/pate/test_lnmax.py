from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant, compute_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.pate.lnmax import lnmax_epsilon, lnmax_event, lnmax_rdp, theorem3_rdp
from privasr_k2.privacy.pate.log_q import lnmax_log_q

ORDERS = np.array([1.5, 2.0, 10.0, 64.0])
VOTES = np.random.default_rng(2).multinomial(100, [0.8, 0.1, 0.1], size=80)


def test_the_event_is_two_changed_counts() -> None:
    for discrete, count in (
        (False, events.laplace(20.0)),
        (True, events.discrete_laplace(20.0, 1)),
    ):
        event = lnmax_event(scale=20.0, answers=30, discrete=discrete)
        assert events.terms(event) == {count: 60}


def test_the_event_costs_what_is_said() -> None:
    accountant = RdpAccountant(ORDERS.tolist())
    accountant.compose(lnmax_event(scale=20.0, answers=30, discrete=False))
    found = lnmax_rdp(ORDERS, scale=20.0, answers=30, discrete=False)
    np.testing.assert_allclose(found, accountant._rdp, rtol=1e-9)


@pytest.mark.parametrize("scale", [0.4, 2.0, 20.0])
def test_discrete_noise_against_a_finite_sum(scale: float) -> None:
    values = np.arange(-2000, 2001)
    log_p = -np.abs(values) / scale
    log_p -= np.logaddexp.reduce(log_p)
    for order in (1.5, 4.0, 30.0):
        moved = -np.abs(values - 1) / scale - np.logaddexp.reduce(-np.abs(values) / scale)
        divergence = np.logaddexp.reduce(order * log_p - (order - 1) * moved) / (order - 1)
        found = lnmax_rdp([order], scale=scale, answers=1, discrete=True)[0]
        assert found == pytest.approx(2 * divergence, rel=1e-9)


def test_small_orders_lose_no_digits() -> None:
    found = lnmax_rdp([1 + 1e-9], scale=200.0, answers=1, discrete=True)[0]
    relative_entropy = math.tanh(1 / 400) / 200  # that of one count, its limit at order 1
    assert found == pytest.approx(2 * relative_entropy, rel=1e-6)


@settings(deadline=None)
@given(st.floats(0.1, 200.0), st.floats(1.01, 1e4), st.booleans())
def test_it_is_never_above_2_by_b_nor_theorem_2(scale: float, order: float, discrete: bool) -> None:
    cost = lnmax_rdp([order], scale=scale, answers=1, discrete=discrete)[0]
    moment = order - 1
    assert cost <= 2 / scale * (1 + 1e-12)
    assert moment * cost <= 2 * moment * (moment + 1) / scale**2 * (1 + 1e-9) + 1e-14


@settings(deadline=None)
@given(
    st.floats(0.5, 50.0),
    st.floats(1.0, 3.0),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.floats(1.01, 99.0),
    st.booleans(),
)
def test_more_noise_costs_less_and_more_answers_or_orders_more(
    scale: float, more: float, answers: int, further: int, order: float, discrete: bool
) -> None:
    def cost(*, scale: float, answers: int, order: float) -> float:
        return float(lnmax_rdp([order], scale=scale, answers=answers, discrete=discrete)[0])

    first = cost(scale=scale, answers=answers, order=order)
    slack = 1e-12 * first + 1e-12 * answers
    assert cost(scale=scale * more, answers=answers, order=order) <= first + slack
    assert cost(scale=scale, answers=answers + further, order=order) >= first
    assert cost(scale=scale, answers=answers, order=order * more) >= first - slack


def test_it_is_theorem_3_of_papernot2017() -> None:
    gamma, q, moment = 0.05, 1e-3, 8
    likely = (1 - q) * ((1 - q) / (1 - math.exp(2 * gamma) * q)) ** moment
    alpha = math.log(likely + q * math.exp(2 * gamma * moment))
    found = theorem3_rdp(np.array([math.log(q)]), moment + 1.0, scale=1 / gamma)
    assert moment * found[0] == pytest.approx(alpha, rel=1e-9)


def test_theorem_3_is_not_used_where_it_does_not_hold() -> None:
    scale = 2.0
    limit = -math.log(math.exp(2 / scale) + 1)
    found = theorem3_rdp(np.array([limit - 1e-9, limit, -0.1]), 5.0, scale=scale)
    assert np.isfinite(found).tolist() == [True, False, False]


def test_the_epsilon_of_votes_is_the_sum_over_queries_at_the_best_order() -> None:
    orders = 1.0 + np.geomspace(0.1, 500, 50)
    totals = []
    log_qs = [lnmax_log_q(row[None], scale=10.0, discrete=False) for row in VOTES]
    for order in orders.tolist():
        worst = lnmax_rdp([order], scale=10.0, answers=1, discrete=False)[0]
        costs = [theorem3_rdp(log_q, order, scale=10.0)[0] for log_q in log_qs]
        totals.append(sum(min(cost, worst) for cost in costs))
    found = lnmax_epsilon(VOTES, scale=10.0, discrete=False, delta=1e-6, orders=orders)
    assert (found.epsilon, found.order) == pytest.approx(compute_epsilon(orders, totals, 1e-6))
    searched = lnmax_epsilon(VOTES, scale=10.0, discrete=False, delta=1e-6)
    assert searched.epsilon <= found.epsilon * (1 + 1e-9)
    independent = lnmax_rdp(orders, scale=10.0, answers=80, discrete=False)
    assert found.epsilon < compute_epsilon(orders, independent, 1e-6)[0]


def test_no_noise_always_wins_where_votes_are_looked_at() -> None:
    votes, scales = [[100, 0]] * 1000, (10.0, 5.0, 2.0, 1.0)
    costs = (lnmax_epsilon(votes, scale=s, discrete=False, delta=1e-5) for s in scales)
    found = [cost.epsilon for cost in costs]
    assert found == sorted(found, reverse=True) and found[-1] == 0 and found[0] > 0.5


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan])
def test_bad_noise_is_refused(scale: float) -> None:
    for make in (
        lambda: lnmax_event(scale=scale, answers=1, discrete=False),
        lambda: lnmax_event(scale=scale, answers=1, discrete=True),
        lambda: lnmax_rdp([2.0], scale=scale, answers=1, discrete=False),
        lambda: theorem3_rdp(np.array([-3.0]), 2.0, scale=scale),
        lambda: lnmax_epsilon(VOTES, scale=scale, discrete=False, delta=1e-5),
    ):
        with pytest.raises(PrivacyError):
            make()


def test_other_bad_input_is_refused() -> None:
    with pytest.raises(PrivacyError, match="orders"):
        lnmax_rdp([2, 3], scale=1.0, answers=1, discrete=False)
    with pytest.raises(PrivacyError, match="answers"):
        lnmax_event(scale=1.0, answers=-1, discrete=False)
    with pytest.raises(PrivacyError, match=r"votes\[1\]"):
        lnmax_epsilon([[1, 0], [0, 0]], scale=1.0, discrete=False, delta=1e-5)
    with pytest.raises(PrivacyError, match="delta"):
        lnmax_epsilon(VOTES, scale=1.0, discrete=False, delta=1.0)


def test_discrete_noise_has_costs_of_its_own() -> None:
    both = (lnmax_epsilon(VOTES, scale=10.0, discrete=d, delta=1e-6) for d in (True, False))
    one, other = (found.epsilon for found in both)
    assert one != other and one == pytest.approx(other, rel=0.1)
