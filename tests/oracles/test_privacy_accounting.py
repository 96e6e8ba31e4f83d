"""Epsilons against what shares no code with them: quadrature, exact sums, closed forms, Opacus."""

from __future__ import annotations

import itertools
import math
import warnings

import mpmath as mp
import numpy as np
import pytest
from dp_accounting import dp_event as dp
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

from privasr_k2.privacy import events, loss_distributions, renyi
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.sampling import FixedCohort, PoissonSampling

AOR, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


def rdp_at(event, order):
    """The divergence of an event at one order."""
    return renyi.rdp(event, np.array([order]))[0]


def renyi_by_quadrature(p, q, order, points):
    """Divergence of two densities in 30 digits."""
    with mp.workdps(30):
        moment = mp.quad(lambda x: q(x) * (p(x) / q(x)) ** order, points)
        return float(mp.log(moment) / (order - 1))


@pytest.mark.parametrize("order", [1.001, 1.1, 2.0, 3.7, 16.0, 40.5])
@pytest.mark.parametrize(
    ("rate", "sigma"), [(0.01, 0.2), (0.01, 1.5), (0.1, 1.0), (0.5, 0.5), (0.001, 4.0)]
)
def test_poisson_sampled_gaussian_is_the_larger_of_both_directions(rate, sigma, order):
    """[mironov2019] proves that one direction is always the larger: here both are integrated."""
    sigma_ = mp.mpf(sigma)

    def without(x):
        return mp.npdf(x, 0, sigma_)

    def with_unit(x):
        return (1 - mp.mpf(rate)) * mp.npdf(x, 0, sigma_) + mp.mpf(rate) * mp.npdf(x, 1, sigma_)

    ends = [-14 * sigma, 0, 0.5, 1, order / 2, order, order + 14 * sigma]
    inner = (order + 5 * sigma, order - 5 * sigma, 5 * sigma, -5 * sigma)
    points = sorted({float(x) for x in (*ends, *inner)})
    forward = renyi_by_quadrature(with_unit, without, mp.mpf(order), points)
    found = rdp_at(events.poisson_sampled(rate, events.gaussian(sigma)), order)
    assert found == pytest.approx(forward, rel=1e-6, abs=1e-12)
    if order < 10:
        backward = renyi_by_quadrature(without, with_unit, mp.mpf(order), points)
        assert backward <= forward * (1 + 1e-9)


@pytest.mark.parametrize(
    ("rate", "sigma"), [(0.01, 0.2), (0.01, 1.5), (0.1, 1.0), (0.5, 0.5), (1e-4, 50.0)]
)
def test_whole_orders_agree_with_dp_accounting(rate, sigma):
    """For whole orders its sum is finite and exact."""
    orders = np.array([2.0, 3.0, 10.0, 64.0, 500.0])
    step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma))
    theirs = RdpAccountant(orders).compose(step).rdp
    assert renyi.rdp(step, orders) == pytest.approx(theirs, rel=1e-6)


def test_dp_accounting_is_off_at_fractional_orders():
    """Why we have ``renyi.sampled_gaussian_rdp``: their series gives up, or is too large."""
    step = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(1.0))
    orders = np.array([1.5, 3.5])
    theirs = RdpAccountant(orders).compose(step).rdp
    ours = renyi.rdp(step, orders)
    assert math.isinf(theirs[0]) and np.isfinite(ours).all()
    assert theirs[1] > ours[1] * 1.001


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 7.0, 30.0])
@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_laplace_against_quadrature(scale, order):
    def density(center):
        return lambda x: mp.exp(-abs(x - center) / mp.mpf(scale)) / (2 * mp.mpf(scale))

    points = [-80 * scale, 0, 1, 1 + 80 * scale]
    expected = renyi_by_quadrature(density(0), density(1), mp.mpf(order), points)
    assert rdp_at(events.laplace(scale), order) == pytest.approx(expected, rel=1e-9)


def pmf(weight, support):
    """A distribution over integers in 40 digits, by its sum."""
    with mp.workdps(40):
        weights = {x: weight(x) for x in range(-support, support + 1)}
        total = mp.fsum(weights.values())
        return {x: w / total for x, w in weights.items()}


def shifted_sum(distribution, shift, term):
    """Sum over x of term(P(x), Q(x)) with Q shifted."""
    with mp.workdps(40):
        xs = range(min(distribution), max(distribution) + 1)
        zero = mp.mpf(0)
        return mp.fsum(term(distribution[x], distribution.get(x - shift, zero)) for x in xs)


def laplace_pmf(scale, support):
    """Discrete Laplace noise."""
    return pmf(lambda x: mp.exp(-abs(mp.mpf(x)) / scale), support)


def gaussian_pmf(sigma, support):
    """Discrete Gaussian noise."""
    return pmf(lambda x: mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2)), support)


def renyi_by_sum(noise, shift, order):
    """Divergence of a distribution and its shift."""
    zero = mp.mpf(0)
    moment = shifted_sum(noise, shift, lambda p, q: p**order * q ** (1 - order) if q else zero)
    return float(mp.log(moment) / (order - 1))


@pytest.mark.parametrize("order", [1.05, 2.0, 9.5])
@pytest.mark.parametrize(("scale", "sensitivity"), [(0.7, 1), (3.0, 1), (3.0, 4), (10.0, 7)])
def test_discrete_laplace_rdp_against_the_sum(scale, sensitivity, order):
    expected = renyi_by_sum(laplace_pmf(scale, 2500), sensitivity, order)
    found = rdp_at(events.discrete_laplace(scale, sensitivity), order)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("order", [1.5, 3.0, 12.0])
@pytest.mark.parametrize(("sigma", "sensitivity"), [(0.6, 1), (2.0, 1), (2.0, 3), (9.0, 2)])
def test_discrete_gaussian_rdp_is_an_upper_bound_and_equal_for_whole_orders(
    sigma, sensitivity, order
):
    exact = renyi_by_sum(gaussian_pmf(sigma, 600), sensitivity, order)
    found = rdp_at(events.discrete_gaussian(sigma, sensitivity), order)
    assert found >= exact - 1e-12
    if order == round(order):
        assert found == pytest.approx(exact, rel=1e-9)


def delta_of(noise, sensitivity, epsilon):
    """The hockey-stick divergence of a distribution and its shift, summed."""
    factor = mp.exp(mp.mpf(epsilon))
    return float(shifted_sum(noise, sensitivity, lambda p, q: max(p - factor * q, mp.mpf(0))))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.2])
@pytest.mark.parametrize(
    ("event", "noise"),
    [
        (events.discrete_laplace(3.0, 2), lambda: laplace_pmf(3, 400)),
        (events.discrete_gaussian(2.5, 2), lambda: gaussian_pmf(2.5, 200)),
    ],
)
def test_discrete_loss_distributions_against_the_sum(event, noise, epsilon):
    exact = delta_of(noise(), 2, epsilon)
    found = loss_distributions.delta(event, epsilon)
    assert exact * (1 - 1e-9) - 1e-14 <= found == pytest.approx(exact, rel=2e-3, abs=1e-12)


def test_composition_of_two_discrete_laplaces_against_enumeration():
    noise = laplace_pmf(2, 60)
    pairs = {(x, y): float(noise[x] * noise[y]) for x, y in itertools.product(noise, noise)}
    epsilon, factor = 0.7, math.exp(0.7)
    shifted = {(x, y): pairs.get((x - 1, y - 1), 0.0) for x, y in pairs}
    exact = sum(max(p - factor * shifted[pair], 0.0) for pair, p in pairs.items())
    found = loss_distributions.delta(events.repeated(events.discrete_laplace(2.0, 1), 2), epsilon)
    assert exact * (1 - 1e-9) <= found <= exact * 1.001


@pytest.mark.parametrize("rate", [0.02, 0.3])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("sigma", [0.4, 0.8, 3.0])
def test_subsampled_gaussian_delta_in_closed_form(rate, epsilon, sigma):
    """The ratio of densities grows with x: hockey-stick divergences are differences of tails."""
    with mp.workdps(40):
        sigma_, rate_, factor = mp.mpf(sigma), mp.mpf(rate), mp.exp(mp.mpf(epsilon))

        def at_ratio(ratio):
            return sigma_**2 * mp.log((ratio - (1 - rate_)) / rate_) + mp.mpf("0.5")

        def tails(x, sign):
            without = mp.ncdf(sign * x / sigma_)
            return (1 - rate_) * without + rate_ * mp.ncdf(sign * (x - 1) / sigma_), without

        with_unit, without = tails(at_ratio(factor), -1)
        exact = with_unit - factor * without
        if 1 / factor > 1 - rate_:
            with_unit, without = tails(at_ratio(1 / factor), 1)
            exact = max(exact, without - factor * with_unit)
        exact = float(exact)
    found = loss_distributions.delta(events.poisson_sampled(rate, events.gaussian(sigma)), epsilon)
    assert exact * (1 - 1e-9) - 1e-15 <= found == pytest.approx(exact, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(("noise", "categories"), [(0.5, 4), (0.9, 50), (0.2, 1000)])
def test_randomized_response_against_enumeration(noise, categories):
    event = events.randomized_response(noise, categories)
    p = np.full(categories, noise / categories)
    q = p.copy()
    p[0] += 1 - noise
    q[1] += 1 - noise
    assert renyi.pure_epsilon(event) == pytest.approx(np.log(p / q).max(), rel=1e-12)
    for order in (1.5, 2.0, 11.0):
        expected = np.log(np.sum(p**order * q ** (1 - order))) / (order - 1)
        assert rdp_at(event, order) == pytest.approx(expected, rel=1e-9)
    epsilon = 0.4 * renyi.pure_epsilon(event)
    exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
    assert loss_distributions.delta(event, epsilon) == pytest.approx(exact, rel=1e-3, abs=1e-9)


def test_randomized_response_repeated_against_enumeration():
    """PLDAccountant of dp-accounting 0.6.0 forgets the count of a randomized response."""
    event = events.repeated(events.randomized_response(0.6, 3), 3)
    p = np.array([0.6, 0.2, 0.2])
    q = np.array([0.2, 0.6, 0.2])
    three_p = np.einsum("i,j,k->ijk", p, p, p).ravel()
    three_q = np.einsum("i,j,k->ijk", q, q, q).ravel()
    epsilon = 1.5
    exact = np.maximum(three_p - math.exp(epsilon) * three_q, 0).sum()
    assert loss_distributions.delta(event, epsilon) == pytest.approx(exact, rel=1e-3)

    once, thrice = (PLDAccountant(NeighboringRelation.REPLACE_ONE) for _ in range(2))
    once.compose(events.randomized_response(0.6, 3))
    thrice.compose(events.randomized_response(0.6, 3), 3)
    assert thrice.get_delta(0.5) == once.get_delta(0.5), "dp-accounting was mended"


def test_dp_accounting_replace_one_gaussian_is_not_used():
    """Its REPLACE_ONE epsilon by RDP is for a sensitivity of one, half of what replacing can do."""
    sigma, delta = 2.0, 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
        theirs.compose(dp.GaussianDpEvent(sigma))
    ours = account(events.gaussian(sigma), REPLACE, delta)
    # One value of norm 1 becomes one of norm -1: a shift of 2.
    exact = gaussian_epsilon(2 / sigma, delta)
    assert ours.pld == pytest.approx(exact, rel=1e-6)
    assert theirs.get_epsilon(delta) < exact


def gaussian_epsilon(shift, delta):
    """Epsilon of two normals ``shift`` apart, by bisection on the exact delta."""
    low, high = 0.0, 1000.0
    for _ in range(200):
        middle = (low + high) / 2
        with_unit, without = (norm.cdf(half - middle / shift) for half in (shift / 2, -shift / 2))
        above = with_unit - math.exp(middle) * without > delta
        low, high = (middle, high) if above else (low, middle)
    return high


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
def test_gaussian_alone_is_exact(sigma):
    found = account(events.repeated(events.gaussian(sigma), 7), AOR, 1e-6)
    assert found.pld == pytest.approx(gaussian_epsilon(math.sqrt(7) / sigma, 1e-6), rel=1e-6)
    assert found.rdp >= found.pld


def test_general_distribution_agrees_with_the_exact_gaussian():
    """A Gaussian beside a release that costs next to nothing goes through the general way."""
    alone = account(events.repeated(events.gaussian(20.0), 100), AOR, 1e-5)
    beside = events.composed(events.repeated(events.gaussian(20.0), 100), events.pure(1e-7))
    mixed = account(beside, AOR, 1e-5)
    assert alone.pld <= mixed.pld <= alone.pld * 1.001


def test_the_best_pure_event_is_the_biased_coin():
    """[kairouz2015]: k coins in closed form, for epsilon 0.3 and k = 20."""
    epsilon, k, target = 0.3, 20, 2.0
    heads = math.exp(epsilon) / (1 + math.exp(epsilon))
    exact = 0.0
    for i in range(k + 1):
        with_unit = math.comb(k, i) * heads ** (k - i) * (1 - heads) ** i
        without = math.comb(k, i) * (1 - heads) ** (k - i) * heads**i
        exact += max(with_unit - math.exp(target) * without, 0.0)
    found = loss_distributions.delta(events.repeated(events.pure(epsilon), k), target)
    assert exact * (1 - 1e-9) <= found <= exact * 1.01


@pytest.mark.parametrize(("sigma", "rate", "rounds"), [(1.0, 0.01, 500), (2.0, 0.05, 200)])
def test_against_opacus(sigma, rate, rounds):
    """Opacus has accountants of its own, by RDP and by another numerical composition (PRV)."""
    accountants = pytest.importorskip("opacus.accountants")
    event = events.repeated(events.poisson_sampled(rate, events.gaussian(sigma)), rounds)
    ours = account(event, AOR, 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rdp, prv = accountants.RDPAccountant(), accountants.PRVAccountant()
        rdp.history = prv.history = [(sigma, rate, rounds)]
        theirs_rdp = rdp.get_epsilon(delta=1e-5)
        theirs_prv = prv.get_epsilon(delta=1e-5, eps_error=0.01)
    assert ours.rdp <= theirs_rdp * (1 + 1e-6)  # ours looks at more orders
    assert ours.rdp == pytest.approx(theirs_rdp, rel=0.03)
    assert ours.pld == pytest.approx(theirs_prv, abs=0.02)


@pytest.mark.parametrize(
    ("noise", "rdp", "pld"), [(0.2, 252.93, 228.7), (0.5, 15.42, 13.36), (1.5, 1.0126, 0.9176)]
)
def test_check_values(noise, rdp, pld):
    """1,000 rounds at rate 0.01 and delta 1e-5, as computed by reference implementations."""
    event = events.repeated(events.poisson_sampled(0.01, events.gaussian(noise)), 1000)
    found = account(event, AOR, 1e-5)
    assert found.rdp == pytest.approx(rdp, rel=1e-3)
    assert found.pld == pytest.approx(pld, rel=2e-3)


@pytest.mark.parametrize(("noise", "published"), [(0.2, 248.6), (0.5, 14.2), (1.5, 0.9)])
def test_liu2021_comes_out_of_other_numbers_than_it_states(noise, published):
    """[liu2021, table 5] has 12,358 devices and 1,240 rounds, and not 10,000 and 1,000."""

    def by_rdp(devices, rounds):
        step = events.poisson_sampled(100 / devices, events.gaussian(noise))
        return account(events.repeated(step, rounds), AOR, 1e-5).rdp

    assert by_rdp(12_358, 1_240) == pytest.approx(published, rel=2e-3)
    assert by_rdp(10_000, 1_000) > published * 1.01


@pytest.mark.parametrize(("size", "population"), [(100, 10_000), (99, 100), (5, 10), (1, 2)])
def test_a_fixed_cohort_costs_more_than_poisson_sampling_says(size, population):
    """All others hold -1 and one holds 1: whoever is drawn displaces a -1, so the sum moves by 2.

    That pair of data sets is a Poisson-sampled Gaussian of half the noise, a lower bound.
    """
    step, rounds, rate = events.gaussian(1.5), 1000 if population > 100 else 1, size / population
    poisson = account(PoissonSampling(rate).event(step, rounds, AOR), AOR, 1e-5).value
    lower_event = events.repeated(events.poisson_sampled(rate, events.gaussian(0.75)), rounds)
    lower = account(lower_event, AOR, 1e-5).pld
    cohort = FixedCohort(size, population)
    assert poisson < lower
    for relation in (AOR, REPLACE):
        found = account(cohort.event(step, rounds, relation), relation, 1e-5)
        assert found.value >= lower * (1 - 1e-3)


@pytest.mark.parametrize(("sigma", "count"), [(1000.0, 10**6), (500.0, 2 * 10**5), (100.0, 10**4)])
@pytest.mark.parametrize("delta", [1e-5, 1e-8, 1e-10, 3e-11, 1e-11])
def test_no_epsilon_where_the_rounding_of_transforms_shows(sigma, count, delta):
    """At rate 1 - 1e-12 the way is numerical, and the exact epsilon that of one Gaussian."""
    event = events.repeated(events.poisson_sampled(1 - 1e-12, events.gaussian(sigma)), count)
    exact = gaussian_epsilon(math.sqrt(count) / sigma, delta)
    found = account(event, AOR, delta)
    assert found.value >= exact * (1 - 1e-6)
    if delta >= 1e-8:
        assert found.pld == pytest.approx(exact, rel=5e-3)
    if delta < 1e-14 * count or delta < 1e-10:
        assert found.pld is None


@pytest.mark.parametrize("order", [1.1, 2.0, 33.0])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 0.5, 30.0])
@pytest.mark.parametrize("kind", ["pure", "laplace", "discrete laplace", "discrete laplace 5"])
def test_small_costs_do_not_round_to_nothing(kind, epsilon, order):
    """Divergences of 1e-18 count when there are enough of them: 60 digits against floats."""
    with mp.workdps(60):
        e, a = mp.mpf(epsilon), mp.mpf(order)
        if kind == "laplace":
            event = events.laplace(1 / epsilon)
            moment = a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)
        elif kind == "discrete laplace 5":
            event = events.discrete_laplace(5 / epsilon, 5)
            t = mp.exp(-mp.mpf(event.noise_parameter))
            loss = mp.mpf(event.noise_parameter)
            ends = mp.exp((a - 1) * 5 * loss) + mp.exp(-(a - 1) * 5 * loss) * t**5
            moment = ends / (1 + t)
            for x in range(1, 5):
                moment += (1 - t) / (1 + t) * t**x * mp.exp((a - 1) * loss * (5 - 2 * x))
        else:
            event, loss = events.pure(epsilon), e
            if kind != "pure":
                event = events.discrete_laplace(1 / epsilon, 1)
                loss = mp.mpf(event.noise_parameter)
            heads = 1 / (1 + mp.exp(-loss))
            moment = heads * mp.exp((a - 1) * loss) + (1 - heads) * mp.exp(-(a - 1) * loss)
        exact = float(mp.log(moment) / (a - 1))
    assert rdp_at(event, order) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("rate", "sigma"), [(1e-6, 1e4), (1e-8, 100.0), (0.01, 1e5)])
def test_tiny_costs_of_sampled_gaussians(rate, sigma):
    """At order 2 in closed form: ln(1 + rate^2 (e^(1 / sigma^2) - 1))."""
    exact = float(mp.log1p(mp.mpf(rate) ** 2 * mp.expm1(1 / mp.mpf(sigma) ** 2)))
    found = rdp_at(events.poisson_sampled(rate, events.gaussian(sigma)), 2.0)
    assert found == pytest.approx(exact, rel=1e-6)


def test_many_small_costs_add_up():
    found = account(events.repeated(events.pure(1e-8), 10**16), AOR, 1e-5)
    assert found.rdp == pytest.approx(4.73, abs=0.01)
