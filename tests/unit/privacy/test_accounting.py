"""Properties of the accountants; their values are checked against oracles in tests/oracles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events, loss_distributions, renyi
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.calibration import count_for, noise_for

AOR, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE

FAMILIES = {
    "gaussian": events.gaussian,
    "laplace": events.laplace,
    "discrete laplace": lambda noise: events.discrete_laplace(noise, 1),
    "discrete gaussian": lambda noise: events.discrete_gaussian(noise, 1),
    "sampled gaussian": lambda noise: events.poisson_sampled(0.05, events.gaussian(noise)),
    "sampled laplace": lambda noise: events.poisson_sampled(0.05, events.laplace(noise)),
}
families = st.sampled_from(sorted(FAMILIES))
noises = st.floats(0.3, 20.0)
counts = st.integers(1, 300)


@settings(max_examples=40, deadline=None)
@given(families, noises, st.floats(1.05, 3.0), counts)
def test_more_noise_never_costs_more(family, noise, factor, count):
    both = (events.repeated(FAMILIES[family](n), count) for n in (noise, noise * factor))
    less, more = (account(event, AOR, 1e-5) for event in both)
    assert more.rdp <= less.rdp * (1 + 1e-9)
    if more.pld is not None and less.pld is not None:
        assert more.pld <= less.pld * (1 + 2e-3) + 1e-6


@settings(max_examples=40, deadline=None)
@given(families, noises, counts, st.integers(1, 300))
def test_more_rounds_never_cost_less(family, noise, count, more):
    step = FAMILIES[family](noise)
    fewer, all_ = (account(events.repeated(step, n), AOR, 1e-5) for n in (count, count + more))
    assert all_.rdp >= fewer.rdp * (1 - 1e-9)
    if all_.pld is not None and fewer.pld is not None:
        assert all_.pld >= fewer.pld * (1 - 2e-3) - 1e-6


@settings(max_examples=60, deadline=None)
@given(families, noises, st.lists(st.floats(1.0001, 200.0), min_size=2, max_size=8, unique=True))
def test_divergence_grows_with_the_order(family, noise, orders):
    values = renyi.rdp(FAMILIES[family](noise), np.sort(orders))
    assert (values >= 0).all()
    assert (np.diff(values) >= -1e-9 * values[1:] - 1e-13).all()


@settings(max_examples=30, deadline=None)
@given(families, noises, st.integers(1, 100), st.sampled_from([1e-3, 1e-5, 1e-8]))
def test_epsilon_to_delta_to_epsilon(family, noise, count, delta):
    event = events.repeated(FAMILIES[family](noise), count)
    found = account(event, AOR, delta)
    # Discrete losses have steps: at one of them a rounding more or less makes another delta.
    if found.pld is not None and found.pld > 1e-3:
        assert loss_distributions.delta(event, found.pld * 1.002) <= delta * 1.01
        back = loss_distributions.delta(event, found.pld)
        if family in ("gaussian", "sampled gaussian"):
            assert back == pytest.approx(delta, rel=0.05)


@pytest.mark.parametrize("noise", [0.02, 0.2, 1.5, 50.0])
@pytest.mark.parametrize("rate", [1e-4, 0.01, 0.3])
def test_the_best_order_is_no_edge(noise, rate):
    """No order on a fine grid around the one that was found is better by more than 0.1 %."""
    event = events.repeated(events.poisson_sampled(rate, events.gaussian(noise)), 100)
    found, order = renyi.epsilon(event, 1e-5)
    if found == 0:
        return
    around = 1 + (order - 1) * np.logspace(-1, 1, 201)
    around = around[(around < 60) & (around > 1 + 1e-9)]
    if len(around):
        assert renyi.epsilon_from_rdp(around, renyi.rdp(event, around), 1e-5).min() >= found * 0.999


def test_small_noise_needs_orders_below_1_1():
    event = events.repeated(events.poisson_sampled(0.01, events.gaussian(0.15)), 1000)
    found, order = renyi.epsilon(event, 1e-5)
    coarse = np.arange(1.1, 10, 0.1)
    assert order < 1.1
    assert renyi.epsilon_from_rdp(coarse, renyi.rdp(event, coarse), 1e-5).min() > found * 1.001


def test_heterogeneous_composition_adds_divergences():
    sampled = events.poisson_sampled(0.1, events.gaussian(1.0))
    parts, orders = [events.gaussian(3.0), events.pure(0.1), sampled], np.array([1.5, 4.0, 20.0])
    expected = sum(renyi.rdp(part, orders) for part in parts)
    assert renyi.rdp(events.composed(*parts), orders) == pytest.approx(expected, rel=1e-12)


def test_nothing_costs_nothing():
    found = account(events.repeated(events.gaussian(1.0), 0), AOR, 1e-5)
    assert (found.rdp, found.pld, found.value) == (0.0, 0.0, 0.0)


def test_pure_epsilons_bound_their_sum():
    """Ten releases of pure 0.01 never cost more than 0.1, however small delta is."""
    found = account(events.repeated(events.pure(0.01), 10), AOR, 1e-10)
    assert found.rdp <= 0.1 + 1e-12
    assert found.pld <= 0.1 * 1.001


def test_relations():
    with pytest.raises(PrivacyError, match="replacing"):
        account(events.randomized_response(0.5, 10), AOR, 1e-5)
    with pytest.raises(PrivacyError, match="replacing"):
        account(events.fixed_size_sampled(5, 10, events.gaussian(1.0)), AOR, 1e-5)
    removing = account(events.gaussian(2.0), AOR, 1e-5).value
    replacing = account(events.gaussian(2.0), REPLACE, 1e-5).value
    assert replacing == account(events.gaussian(1.0), AOR, 1e-5).value > removing


def test_no_distribution_is_told_and_not_invented():
    found = account(events.discrete_gaussian_vector(10.0, 3.0), AOR, 1e-5)
    assert found.pld is None and found.value == found.rdp
    tiny = account(events.laplace(1.0), AOR, 1e-13)
    assert tiny.pld is None and tiny.rdp > 0
    too_many = loss_distributions.MOST_COMPOSED + 1
    many = account(events.repeated(events.laplace(1e4), too_many), AOR, 1e-5)
    assert many.pld is None and many.rdp > 0
    assert account(events.discrete_gaussian(1e6, 1), AOR, 1e-5).pld is None
    assert account(events.gaussian(1.0), AOR, 1e-13).pld is not None, "a formula has no such limit"


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan"), 1])
def test_bad_delta(delta):
    with pytest.raises(PrivacyError, match="delta"):
        account(events.gaussian(1.0), AOR, delta)


def test_integer_orders_are_refused():
    with pytest.raises(PrivacyError, match="orders as floats"):
        renyi.rdp(events.gaussian(1.0), np.array([2, 3]))


def test_a_negative_divergence_is_an_error_and_no_epsilon(monkeypatch):
    """dp-accounting makes epsilon 0 of a divergence below 0, "numerical instability"."""
    monkeypatch.setattr(renyi, "_leaf_rdp", lambda event, orders: -np.ones(len(orders)))
    with pytest.raises(PrivacyError, match="0 or more"):
        account(events.gaussian(1.2345), AOR, 1e-5)  # one that nothing else has accounted for


def test_calibrated_noise_is_enough_and_not_much_more():
    def event(noise):
        return events.repeated(events.poisson_sampled(0.1, events.gaussian(noise)), 50)

    noise = noise_for(event, epsilon=2.0, delta=1e-5, relation=AOR)
    enough, less = (account(event(n), AOR, 1e-5).value for n in (noise, noise * 0.998))
    assert enough <= 2.0 < less


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 30.0, 2000.0])
def test_calibrated_noise_of_one_gaussian(epsilon):
    noise = noise_for(events.gaussian, epsilon=epsilon, delta=1e-6, relation=AOR)
    assert account(events.gaussian(noise), AOR, 1e-6).value <= epsilon
    assert account(events.gaussian(noise * 0.999), AOR, 1e-6).value > epsilon


def test_calibrated_count_is_the_largest():
    def event(count):
        return events.repeated(events.poisson_sampled(0.1, events.gaussian(1.0)), count)

    count = count_for(event, epsilon=3.0, delta=1e-5, relation=AOR)
    within, beyond = (account(event(n), AOR, 1e-5).value for n in (count, count + 1))
    assert within <= 3.0 < beyond
    assert count_for(event, epsilon=1e-3, delta=1e-5, relation=AOR) == 0


def test_targets_that_nothing_reaches():
    with pytest.raises(PrivacyError, match="a noise of at most"):
        noise_for(lambda noise: events.pure(5.0), epsilon=1.0, delta=1e-5, relation=AOR)
    with pytest.raises(PrivacyError, match="far more noise"):
        count_for(lambda count: events.pure(0.5), epsilon=1.0, delta=1e-5, relation=AOR)
    with pytest.raises(PrivacyError, match="epsilon"):
        noise_for(events.gaussian, epsilon=0.0, delta=1e-5, relation=AOR)
