"""Rényi differential privacy of events: divergence at an order, and the (epsilon, delta) of it.

An event costs ``rdp(order)``, an upper bound on the Rényi divergence between its outputs with and
without one unit, both ways round. Costs add up over a composition [mironov2017, proposition 1].
Every order gives a valid (epsilon, delta); the smallest is searched for.

[mironov2017] I. Mironov, Rényi differential privacy, CSF 2017.
[canonne2020] C. Canonne et al., The discrete Gaussian for differential privacy, NeurIPS 2020.
[kairouz2015] P. Kairouz et al., The composition theorem for differential privacy, ICML 2015.
[mironov2019] I. Mironov et al., Rényi differential privacy of the sampled Gaussian mechanism,
arXiv 1908.10530.
[balle2018] B. Balle et al., Privacy amplification by subsampling, NeurIPS 2018.
[wang2019] Y. Wang et al., Subsampled Rényi differential privacy and analytical moments accountant,
AISTATS 2019.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from dp_accounting import dp_event as dp
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from scipy.special import logsumexp, roots_legendre
from scipy.stats import binom

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import bounded_range, checks
from privasr_k2.privacy.bounded_range import BoundedRangeDpEvent
from privasr_k2.privacy.events import (
    DiscreteGaussianDpEvent,
    Event,
    PureDpEvent,
    SampledGroupDpEvent,
    VectorLaplaceDpEvent,
    WeightedResponseDpEvent,
    terms,
    weighted_response,
)
from privasr_k2.privacy.searches import RUN_ORDERS, SearchDpEvent, search_rdp

# Orders are 1 + 10^x: the x where the search begins, and its limits.
_FIRST, _LAST, _LOWEST, _HIGHEST = -1.0, 2.0, -9.0, 7.0
_PER_DECADE = 8
# Above this, orders are rounded to whole numbers: the series for whole orders is finite.
_WHOLE_ABOVE = 64.0
# The trapezoidal rule: tails of exp(-_TAIL^2 / 2), and steps in units of sigma.
_TAIL, _STEP, _MOST_POINTS = 12.0, 0.05, 4_000_000
# Exponentials up to this are computed as they are, larger ones by their logarithms.
_LARGEST_LOG = 500.0
_NODES = 128
_MOST_STEPS = 1_000_000


def rdp(event: Event, orders: np.ndarray) -> np.ndarray:
    """Upper bounds (A,) on the Rényi divergence of ``event`` at each of ``orders``, in nats.

    Args:
        event: with noise relative to what one unit changes under the relation in question.
        orders: (A,) floats above 1.

    Raises:
        PrivacyError: orders out of range, or an event without a bound.

    >>> from privasr_k2.privacy.events import gaussian, repeated
    >>> rdp(repeated(gaussian(2.0), 10), np.array([2.0, 8.0]))
    array([ 2.5, 10. ])
    """
    orders = checks.orders("orders", orders)
    total = np.zeros(len(orders))
    for leaf, count in terms(event).items():
        values = _leaf_rdp(leaf, orders)
        if np.isnan(values).any() or (values < 0).any():
            least, way_out = f"{values.min():g}", "these values cannot be computed: report them"
            raise PrivacyError(str(leaf), "a Rényi divergence of 0 or more", least, way_out)
        total += count * values
    return total


def epsilon_from_rdp(orders: np.ndarray, values: np.ndarray, delta: float) -> np.ndarray:
    """The epsilon at ``delta`` that each order gives [canonne2020, proposition 12].

        epsilon = rdp + ln(1 - 1 / order) - (ln delta + ln order) / (order - 1),

    and 0 where already the total variation distance, sqrt(1 - exp(-rdp)) at most, is below delta.
    """
    log_delta = math.log(checks.number("delta", delta, above=0, below=1))
    epsilon = values + np.log1p(-1 / orders) - (log_delta + np.log(orders)) / (orders - 1)
    within_delta = -np.expm1(-values) < delta**2
    return np.where(within_delta, 0.0, np.maximum(epsilon, 0.0))


def epsilon(event: Event, delta: float) -> tuple[float, float]:
    """The smallest epsilon at ``delta`` over all orders, and the order that gives it.

    The order is infinity where adding up pure epsilons, which needs no delta, is best.

    >>> from privasr_k2.privacy.events import gaussian
    >>> value, order = epsilon(gaussian(2.0), 1e-5)
    >>> round(value, 3), round(order, 1)
    (2.166, 9.6)
    """
    checks.number("delta", delta, above=0, below=1)
    limit = _sum_of_pure_epsilons(event)
    best, order = _search(
        lambda orders: epsilon_from_rdp(orders, rdp(event, orders), delta), event, limit
    )
    return (limit, math.inf) if limit <= best else (best, order)


def _search(
    objective: Callable[[np.ndarray], np.ndarray], event: Event, limit: float
) -> tuple[float, float]:
    """Minimum over orders: by decades until the best lies within, then finer steps around it."""
    exponents = np.linspace(_FIRST, _LAST, round((_LAST - _FIRST) * _PER_DECADE) + 1)
    values = objective(_orders_at(exponents))
    while True:
        best = int(np.argmin(values))
        step = np.arange(1, _PER_DECADE + 1) / _PER_DECADE
        if best == 0 and exponents[0] > _LOWEST:
            more = exponents[0] - step[::-1]
            exponents, values = np.r_[more, exponents], np.r_[objective(_orders_at(more)), values]
        elif best == len(values) - 1 and exponents[-1] < _HIGHEST:
            more = exponents[-1] + step
            exponents, values = np.r_[exponents, more], np.r_[values, objective(_orders_at(more))]
        else:
            break
    at_end = best == len(values) - 1 and math.isinf(limit) and values[best] > 0
    if not np.isfinite(values[best]) or at_end:
        way_out = "the noise is beyond what can be computed"
        raise PrivacyError(str(event), "an order that gives an epsilon", "none", way_out)
    least, order = float(values[best]), float(_orders_at(exponents[best : best + 1])[0])
    low, high = exponents[max(best - 1, 0)], exponents[min(best + 1, len(values) - 1)]
    for _ in range(3):
        finer = np.linspace(low, high, 9)
        orders = _orders_at(finer)
        values = objective(orders)
        at = int(np.argmin(values))
        if values[at] < least:
            least, order = float(values[at]), float(orders[at])
        low, high = finer[max(at - 1, 0)], finer[min(at + 1, 8)]
    return least, order


def _orders_at(exponents: np.ndarray) -> np.ndarray:
    orders = 1 + 10.0**exponents
    return np.where(orders > _WHOLE_ABOVE, np.round(orders), orders)


def _leaf_rdp(event: Event, orders: np.ndarray) -> np.ndarray:
    match event:
        case dp.GaussianDpEvent():
            return orders / (2 * event.noise_multiplier**2)
        case SampledGroupDpEvent():
            return _sampled_group_rdp(event, orders)
        case DiscreteGaussianDpEvent():
            # Never more than that of the Gaussian of the same sigma [canonne2020, proposition 5].
            return orders * event.sensitivity**2 / (2 * event.sigma**2)
        case dp.ZCDpEvent():
            return event.xi + event.rho * orders
        case PureDpEvent() | VectorLaplaceDpEvent():
            return _pure_rdp(pure_epsilon(event), orders)
        case BoundedRangeDpEvent():
            return bounded_range.rdp(event.eta, orders)
        case dp.DiscreteLaplaceDpEvent():
            return _discrete_laplace_rdp(event.noise_parameter, event.sensitivity, orders)
        case dp.PoissonSampledDpEvent() if isinstance(event.event, dp.LaplaceDpEvent):
            return _pure_rdp(pure_epsilon(event), orders)
        case dp.RandomizedResponseDpEvent():
            as_weighted = weighted_response(event.noise_parameter, 1 / event.num_buckets)
            return _leaf_rdp(as_weighted, orders)
        case WeightedResponseDpEvent():
            log_kept = math.log1p(-event.noise * (1 - event.least))
            return _symmetric_rdp(np.array([pure_epsilon(event)]), np.array([log_kept]), orders)
        case SearchDpEvent():
            bound = search_rdp(event, orders, rdp(event.event, orders), _of_a_run(event))
            return np.minimum(bound, pure_epsilon(event))
        case dp.SampledWithoutReplacementDpEvent():
            # A sample of fixed size, by [wang2019, theorem 27].
            accountant = RdpAccountant(orders, NeighboringRelation.REPLACE_ONE)
            return np.asarray(accountant.compose(event).rdp)
        case dp.PoissonSampledDpEvent():
            rate, sigma = event.sampling_probability, event.event.noise_multiplier
            return sampled_gaussian_rdp(orders, rate=rate, sigma=sigma)
        case dp.LaplaceDpEvent():
            return _laplace_rdp(1 / event.noise_multiplier, orders)
    expected = "an event with a bound on its Rényi divergence"
    raise PrivacyError(str(event), expected, "none", "use another")


@functools.lru_cache(maxsize=64)  # which takes long, and orders are looked at in several rounds
def _of_a_run(event: SearchDpEvent) -> np.ndarray:
    return rdp(event.event, RUN_ORDERS)


def _laplace_rdp(epsilon: float, orders: np.ndarray) -> np.ndarray:
    """Exactly: the loss is epsilon with probability 1/2; other positive losses have the smooth
    density exp((loss - epsilon) / 2) / 4, which Gauss and Legendre's rule integrates.
    """
    nodes, weights = roots_legendre(_NODES)
    losses = epsilon * (nodes + 1) / 2
    log_probs = np.log(weights * epsilon / 2 / 4) + (losses - epsilon) / 2
    steep = orders * epsilon > _NODES / 4  # for so many nodes: in closed form, without cancellation
    values = np.empty(len(orders))
    values[~steep] = _symmetric_rdp(
        np.append(epsilon, losses), np.append(-math.log(2.0), log_probs), orders[~steep]
    )
    high = orders[steep]
    cumulant = np.logaddexp(
        np.log(high / (2 * high - 1)) + (high - 1) * epsilon,
        np.log((high - 1) / (2 * high - 1)) - high * epsilon,
    )
    values[steep] = cumulant / (high - 1)
    return values


def sampled_gaussian_rdp(orders: np.ndarray, *, rate: float, sigma: float) -> np.ndarray:
    """Poisson-sampled Gaussian noise, by the trapezoidal rule [mironov2019, section 3.3]:

        A = E_{z ~ N(0, sigma^2)} [ratio(z)^order],    rdp = ln(A) / (order - 1),
        ratio(z) = 1 - rate + rate exp((2 z - 1) / (2 sigma^2)).

    dp-accounting's series for fractional orders is too large by some per cent, and does not always
    converge at low orders. The integrand is smooth and falls like a Gaussian around 0 and
    ``order``: the rule converges faster than any power of the step.

    Returns:
        (A,) values; the divergence the other way round is never larger [mironov2019, theorem 5].
        Infinite where so high an order and so little noise give no epsilon anyway.

    >>> found = sampled_gaussian_rdp(np.array([2.0]), rate=0.01, sigma=1.5)[0]
    >>> bool(np.isclose(found, np.log1p(0.01**2 * np.expm1(1 / 1.5**2)), rtol=1e-8))
    True
    """
    values = np.empty(len(orders))
    for at, order in enumerate(orders):
        low, high = -_TAIL * sigma, order + _TAIL * sigma
        num_points = math.ceil((high - low) / (sigma * _STEP)) + 1
        if num_points > _MOST_POINTS:
            values[at] = math.inf
            continue
        z = np.linspace(low, high, num_points)
        log_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * z - 1) / (2 * sigma**2))
        log_scale = math.log((z[1] - z[0]) / (sigma * math.sqrt(2 * math.pi)))
        log_weight = -(z**2) / (2 * sigma**2) + log_scale
        if order * log_ratio[-1] < _LARGEST_LOG:
            excess = rate * np.expm1((2 * z - 1) / (2 * sigma**2))  # ratio - 1, of mean 0
            moment = np.sum(np.exp(log_weight) * _power_excess(excess, order))
            values[at] = math.log1p(moment) / (order - 1)
        else:
            values[at] = logsumexp(log_weight + order * log_ratio) / (order - 1)
    return values


def _sampled_group_rdp(event: SampledGroupDpEvent, orders: np.ndarray) -> np.ndarray:
    """As :func:`sampled_gaussian_rdp` for a binomial number of units; the larger of both ways.

    Never more than without the sampling, as the divergence is quasi-convex: that bound stands in
    where too many points would be needed.
    """
    sigma, counts = event.noise_multiplier, np.arange(event.size + 1)[:, None]
    log_shares = binom.logpmf(counts, event.size, event.rate)
    values = orders * event.size**2 / (2 * sigma**2)
    for at, order in enumerate(orders):
        low, high = -_TAIL * sigma, _TAIL * sigma + order * event.size
        num_points = math.ceil((high - low) / (sigma * _STEP)) + 1
        if num_points * (event.size + 1) > _MOST_POINTS / 16:
            continue
        z = np.linspace(low, high, num_points)
        log_ratio = logsumexp(log_shares + counts * (2 * z - counts) / (2 * sigma**2), axis=0)
        log_weight = -(z**2) / (2 * sigma**2) + math.log(
            (z[1] - z[0]) / (sigma * math.sqrt(2 * math.pi))
        )
        both = [logsumexp(log_weight + power * log_ratio) for power in (order, 1 - order)]
        values[at] = min(values[at], max(*both, 0.0) / (order - 1))
    return values


def _power_excess(excess: np.ndarray, order: float) -> np.ndarray:
    """(1 + excess)^order - 1 - order excess, 0 or more; by its series where that would cancel."""
    small = order * np.abs(excess) < 1e-3
    little, large = np.where(small, excess, 0.0), np.where(small, 0.0, excess)
    series = 1 + (order - 2) / 3 * little * (1 + (order - 3) / 4 * little)
    direct = np.expm1(order * np.log1p(large)) - order * large
    return order * (order - 1) / 2 * little**2 * series + direct


def _pure_rdp(epsilon: float, orders: np.ndarray) -> np.ndarray:
    """No (epsilon, 0)-private mechanism costs more than a biased coin [kairouz2015].

    It shows heads with probability e^epsilon / (1 + e^epsilon) with the unit, and tails without.
    """
    return _symmetric_rdp(np.array([epsilon]), np.array([-math.log1p(math.exp(-epsilon))]), orders)


def _discrete_laplace_rdp(parameter: float, sensitivity: int, orders: np.ndarray) -> np.ndarray:
    """Exactly: with P(x) = tanh(a / 2) exp(-a |x|) and s the sensitivity the loss is a s for
    x <= 0, of probability 1 / (1 + exp(-a)), and a (s - 2 x) for 0 < x < s; negative losses mirror
    the positive ones. A large s would take long: there as for any mechanism of epsilon = a s.
    """
    a, s = parameter, sensitivity
    if s > _MOST_STEPS:
        return _pure_rdp(a * s, orders)
    inside = np.arange(1, (s + 1) // 2)  # the x of positive losses; x = s / 2 has none
    losses = a * np.append(s, s - 2 * inside)
    log_probs = np.append(-math.log1p(math.exp(-a)), math.log(math.tanh(a / 2)) - a * inside)
    return _symmetric_rdp(losses, log_probs, orders)


def _symmetric_rdp(losses: np.ndarray, log_probs: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """The divergence of a mechanism whose loss is l > 0 with probability p, and -l with e^-l p.

    Mechanisms that cost the same both ways round have this mirror. With m = order - 1,

        sum over l of p (e^(m l) - 1) + e^-l p (e^(-m l) - 1)
            = sum over l of p (e^(m l) - 1) (1 - e^(-order l)),

    where nothing cancels, however small the losses are.
    """
    values = np.empty(len(orders))
    for at, order in enumerate(orders):
        power = order - 1
        if power * losses.max() < _LARGEST_LOG:
            terms_ = np.exp(log_probs) * np.expm1(power * losses) * -np.expm1(-order * losses)
            values[at] = math.log1p(terms_.sum()) / power
        else:  # what loses nothing and e^(-m l) vanish beside this
            values[at] = np.logaddexp(0.0, logsumexp(log_probs + power * losses)) / power
    return values


def pure_epsilon(event: Event) -> float:
    """The epsilon of one event without any delta; infinity where there is none.

    >>> from privasr_k2.privacy.events import laplace, randomized_response
    >>> pure_epsilon(laplace(2.0)), round(pure_epsilon(randomized_response(0.5, 100)), 3)
    (0.5, 4.615)
    """
    match event:
        case PureDpEvent():
            return float(event.epsilon)
        case BoundedRangeDpEvent():
            return float(event.eta)
        case dp.LaplaceDpEvent() | VectorLaplaceDpEvent():
            return 1 / event.noise_multiplier
        case dp.DiscreteLaplaceDpEvent():
            return event.noise_parameter * event.sensitivity
        case dp.RandomizedResponseDpEvent():
            kept = (1 - event.noise_parameter) / event.noise_parameter
            return math.log1p(event.num_buckets * kept)
        case WeightedResponseDpEvent():
            return math.log1p((1 - event.noise) / (event.noise * event.least))
        case SearchDpEvent() if event.shape is not None:
            return (2 + event.shape) * _sum_of_pure_epsilons(event.event)
        case dp.PoissonSampledDpEvent():  # [balle2018, theorem 8], for adding or removing one unit
            inner, rate = pure_epsilon(event.event), event.sampling_probability
            return inner if math.isinf(inner) else _log_of_sampled(inner, rate)
    return math.inf


def _log_of_sampled(epsilon: float, rate: float) -> float:
    """ln(1 + rate (e^epsilon - 1)) without overflow."""
    if epsilon < 1:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))


def _sum_of_pure_epsilons(event: Event) -> float:
    return sum(count * pure_epsilon(leaf) for leaf, count in terms(event).items())
