"""Privacy loss distributions of events: the tight account, by dp-accounting's distributions.

They are composed here event by event, because dp-accounting 0.6.0's ``PLDAccountant`` forgets how
often a randomized response was given. Losses are rounded up, so that an epsilon may be slightly too
large. The rounding of Fourier transforms goes either way: see :func:`smallest_delta`.

[balle2018gaussian] B. Balle and Y.-X. Wang, Improving the Gaussian mechanism for differential
privacy, ICML 2018.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from dp_accounting import dp_event as dp
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import log_ndtr
from scipy.stats import binom

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import bounded_range, checks, renyi
from privasr_k2.privacy.bounded_range import BoundedRangeDpEvent
from privasr_k2.privacy.events import (
    DiscreteGaussianDpEvent,
    Event,
    PureDpEvent,
    SampledGroupDpEvent,
    VectorLaplaceDpEvent,
    WeightedResponseDpEvent,
    terms,
)
from privasr_k2.privacy.searches import SearchDpEvent

# The rounding of Fourier transforms grows with the number of compositions; delta must be far above.
# At 1e6 compositions and delta 1e-11 an epsilon came out 1 % too small.
_SMALLEST_DELTA, _SMALLEST_DELTA_EACH = 1e-10, 1e-14
# Larger discrete Gaussian noise would take too long to tabulate.
_LARGEST_SIGMA = 1e5
# Beyond so many compositions (but of Gaussian noise) steps of the loss are too coarse or too many.
MOST_COMPOSED = 1_000_000
# Where no delta is given, the epsilon at this one tells how large losses are.
_USUAL_DELTA = 1e-6
# Steps of the loss, relative to the epsilon that is to be found.
_COARSEST, _FINEST = 1e-4, 1e-6
# Coarser steps by this factor where distributions are slow to make.
_SLOW = 10


def is_supported(event: Event) -> bool:
    """Whether every term of ``event`` has a privacy loss distribution, and they are not too many.

    zCDP alone does not determine one, and for sampling of a fixed size dp-accounting has none. A
    search for hyper-parameters is bounded by its runs' Rényi divergences alone.
    """
    counts = terms(event)
    for leaf in counts:
        if isinstance(leaf, (dp.ZCDpEvent, dp.SampledWithoutReplacementDpEvent, SearchDpEvent)):
            return False
        if isinstance(leaf, BoundedRangeDpEvent) and leaf.eta > bounded_range.LARGEST_ETA:
            return False
        if isinstance(leaf, DiscreteGaussianDpEvent) and leaf.sigma > _LARGEST_SIGMA:
            return False
    return _composed(counts) <= MOST_COMPOSED


def smallest_delta(event: Event) -> float:
    """Below this delta no epsilon is given, as rounding would show; 0 for Gaussian noise."""
    if gaussian_alone(event) is not None:
        return 0.0
    return max(_SMALLEST_DELTA, _SMALLEST_DELTA_EACH * _composed(terms(event)))


def _composed(counts: Mapping[Event, int]) -> int:
    """Count numerical compositions; Gaussians are merged into one beforehand."""
    return sum(n for leaf, n in counts.items() if not isinstance(leaf, dp.GaussianDpEvent))


def epsilon(event: Event, delta: float, *, guess: float) -> float:
    """The smallest epsilon at ``delta``; exact for Gaussian noise [balle2018gaussian, theorem 8].

    Args:
        event: a supported one.
        delta: at least :func:`smallest_delta`.
        guess: of the result, for example by RDP: the resolution follows from it.

    >>> from privasr_k2.privacy.events import gaussian
    >>> round(epsilon(gaussian(2.0), 1e-5, guess=2.1), 4)
    1.9931
    """
    checks.number("delta", delta, above=0, at_least=smallest_delta(event), below=1)
    sigma = gaussian_alone(event)
    if sigma is not None:
        return float(get_epsilon_gaussian(sigma, delta))
    return float(_distribution(event, guess).get_epsilon_for_delta(delta))


def delta(event: Event, epsilon: float) -> float:
    """The smallest delta at ``epsilon``.

    >>> from privasr_k2.privacy.events import gaussian
    >>> f"{delta(gaussian(2.0), 1.9931):.3g}"
    '1e-05'
    """
    return float(deltas(event, [epsilon])[0])


def deltas(event: Event, epsilons: Sequence[float]) -> np.ndarray:
    """The smallest delta at each of some ascending epsilons, by one distribution: (E,).

    >>> from privasr_k2.privacy.events import gaussian
    >>> deltas(gaussian(2.0), [0.0, 1.0]).round(3)
    array([0.197, 0.007])
    """
    for epsilon in epsilons:
        checks.number("epsilon", epsilon, at_least=0)
    sigma = gaussian_alone(event)
    if sigma is not None:
        return np.array([_gaussian_delta(sigma, epsilon) for epsilon in epsilons])
    guess = max(renyi.epsilon(event, _USUAL_DELTA)[0], min(epsilons))
    return np.array(_distribution(event, guess).get_delta_for_epsilon(list(epsilons)))


def _gaussian_delta(sigma: float, epsilon: float) -> float:
    """Phi(1 / (2 sigma) - epsilon sigma) - e^epsilon Phi(-1 / (2 sigma) - epsilon sigma)."""
    log_first = log_ndtr(1 / (2 * sigma) - epsilon * sigma)
    log_second = epsilon + log_ndtr(-1 / (2 * sigma) - epsilon * sigma)
    return float(-math.exp(log_first) * math.expm1(min(log_second - log_first, 0.0)))


def gaussian_alone(event: Event) -> float | None:
    """The noise multiplier of the one Gaussian that equals ``event``, if all terms are Gaussian.

    >>> from privasr_k2.privacy.events import composed, gaussian, repeated
    >>> gaussian_alone(repeated(gaussian(2.0), 4))
    1.0
    """
    precision = 0.0
    for leaf, count in terms(event).items():
        if not isinstance(leaf, dp.GaussianDpEvent):
            return None
        precision += count / leaf.noise_multiplier**2
    return 1 / math.sqrt(precision) if precision else None


def _distribution(event: Event, guess: float) -> pld.PrivacyLossDistribution:
    counts = terms(event)
    step = _step(guess, sum(counts.values()))
    if any(isinstance(leaf, SampledGroupDpEvent) for leaf in counts):
        step *= _SLOW  # a mixture takes ten times as long as one Gaussian; losses are rounded up
    total, blocked = pld.identity(value_discretization_interval=step), _in_blocks(counts)
    for leaf, count in counts.items():
        if isinstance(leaf, dp.GaussianDpEvent):
            sigma = leaf.noise_multiplier / math.sqrt(count)
            gaussians = pld.from_gaussian_mechanism(sigma, value_discretization_interval=step)
            total = total.compose(gaussians)
        elif leaf == blocked:
            blocks, rest = divmod(count, bounded_range.BLOCK)
            for size, times in ((bounded_range.BLOCK, blocks), (rest, 1)):
                if size and times:
                    block = _bounded_range(leaf.eta, size, step)
                    total = total.compose(block.self_compose(times))
        else:
            total = total.compose(_of(leaf, step).self_compose(count))
    return total


def _in_blocks(counts: Mapping[Event, int]) -> Event | None:
    """The event of bounded range that may be composed in blocks: the one that costs most."""
    found = [leaf for leaf in counts if isinstance(leaf, BoundedRangeDpEvent)]
    return max(found, key=lambda leaf: counts[leaf] * leaf.eta**2, default=None)


def _bounded_range(eta: float, count: int, step: float) -> pld.PrivacyLossDistribution:
    last = math.ceil(count * eta / step)
    deltas = bounded_range.profile(eta, count, np.arange(-last, last + 1) * step)
    deltas = np.minimum.accumulate(deltas)
    return pld.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -last, last, deltas)
    )


def _step(guess: float, count: int) -> float:
    # A loss of standard deviation s adds up to about s sqrt(count), which epsilon is a few times
    # of: rounding must stay well below s, or it widens the sum.
    relative = min(_COARSEST, 1 / (32 * math.sqrt(max(count, 1))))
    return max(relative, _FINEST) * max(guess, 1e-3)


def _of(event: Event, step: float) -> pld.PrivacyLossDistribution:
    options = {"value_discretization_interval": step}
    whole = {"use_connect_dots": True, **options}
    match event:
        case dp.LaplaceDpEvent():
            return pld.from_laplace_mechanism(event.noise_multiplier, **options)
        case dp.DiscreteLaplaceDpEvent():
            parameter = event.noise_parameter
            return pld.from_discrete_laplace_mechanism(parameter, event.sensitivity, **whole)
        case DiscreteGaussianDpEvent():
            return pld.from_discrete_gaussian_mechanism(event.sigma, event.sensitivity, **whole)
        case dp.PoissonSampledDpEvent(sampling_probability=rate, event=dp.GaussianDpEvent() as own):
            return pld.from_gaussian_mechanism(own.noise_multiplier, sampling_prob=rate, **options)
        case dp.PoissonSampledDpEvent(sampling_probability=rate, event=dp.LaplaceDpEvent() as own):
            return pld.from_laplace_mechanism(own.noise_multiplier, sampling_prob=rate, **options)
        case SampledGroupDpEvent(rate=rate, size=size):
            counts = np.arange(size + 1)
            shares = binom.pmf(counts, size, rate).tolist()
            return pld.from_mixture_gaussian_mechanism(
                event.noise_multiplier, counts.tolist(), shares, **options
            )
        case dp.RandomizedResponseDpEvent():
            return pld.from_randomized_response(event.noise_parameter, event.num_buckets, **options)
        case PureDpEvent() | VectorLaplaceDpEvent():
            # The biased coin of renyi._pure_rdp has the loss of discrete Laplace noise on one step.
            return pld.from_discrete_laplace_mechanism(renyi.pure_epsilon(event), 1, **whole)
        case WeightedResponseDpEvent():
            kept, least = math.log1p(-event.noise * (1 - event.least)), event.noise * event.least
            one = {"own": kept, "other": math.log(least)}
            rest = -math.expm1(kept) - least  # all other values, whose loss is 0
            if rest > 0:
                one["rest"] = math.log(rest)
            two = {**one, "own": one["other"], "other": one["own"]}
            return pld.from_two_probability_mass_functions(two, one, **options)
        case BoundedRangeDpEvent():
            return _bounded_range(event.eta, 1, step)
    expected = "an event with a privacy loss distribution"
    raise PrivacyError(str(event), expected, "none", "use RDP for it")
