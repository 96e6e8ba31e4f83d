"""Single mechanisms as ``dp_accounting`` events; :mod:`privasr_k2.privacy.events` has them, too.

[ganesh2024] A. Ganesh, Tight group-level DP guarantees for DP-SGD with sampling via mixture of
Gaussians mechanisms, arXiv 2401.10294.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs
from dp_accounting import dp_event as dp

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks

Event: TypeAlias = dp.DpEvent
_LEAST, _MOST = 1e-12, 1e12


@attrs.frozen
class DiscreteGaussianDpEvent(dp.DpEvent):  # type: ignore[misc]
    """Discrete Gaussian noise on an integer that one unit changes by ``sensitivity``."""

    sigma: float
    sensitivity: int


@attrs.frozen
class PureDpEvent(dp.DpEvent):  # type: ignore[misc]
    """Any (``epsilon``, 0)-private mechanism: its densities' ratio never exceeds e^epsilon."""

    epsilon: float


@attrs.frozen
class SampledGroupDpEvent(dp.DpEvent):  # type: ignore[misc]
    """Gaussian noise on a sample that each of ``size`` units enters with chance ``rate``."""

    rate: float
    size: int
    noise_multiplier: float


@attrs.frozen
class WeightedResponseDpEvent(dp.DpEvent):  # type: ignore[misc]
    """A value, replaced with chance ``noise`` by a draw that gives no value less than ``least``."""

    noise: float
    least: float


@attrs.frozen
class VectorLaplaceDpEvent(dp.DpEvent):  # type: ignore[misc]
    """Laplace noise, discrete or not, on a vector; its scale by the L1 sensitivity."""

    noise_multiplier: float


def gaussian(noise_multiplier: float) -> Event:
    """Gaussian noise on a vector; its standard deviation by the L2 sensitivity."""
    return dp.GaussianDpEvent(_multiplier("noise_multiplier", noise_multiplier))


def laplace(noise_multiplier: float) -> Event:
    """Laplace noise on *one number*; its scale by the sensitivity."""
    return dp.LaplaceDpEvent(_multiplier("noise_multiplier", noise_multiplier))


def laplace_vector(noise_multiplier: float) -> Event:
    """Laplace or discrete Laplace noise on a vector; its scale by the L1 sensitivity.

    It is (1 / noise_multiplier, 0)-private, however the change spreads over the vector.
    """
    return VectorLaplaceDpEvent(_multiplier("noise_multiplier", noise_multiplier))


def _multiplier(name: str, value: float) -> float:
    # Beyond these, squares and their sums leave what floats can tell apart.
    return checks.number(name, value, at_least=_LEAST, at_most=_MOST)


def discrete_laplace(scale: float, sensitivity: int) -> Event:
    """P(x) ~ exp(-abs(x) / scale) on *one* integer that one unit changes by ``sensitivity``."""
    return discrete_laplace_inverse(1 / _multiplier("scale", scale), sensitivity)


def discrete_laplace_inverse(inverse_scale: float, sensitivity: int) -> Event:
    """As :func:`discrete_laplace`, by 1 / scale, which is what its event holds."""
    inverse_scale = _multiplier("inverse_scale", inverse_scale)
    sensitivity = checks.whole("sensitivity", sensitivity, at_least=1)
    return dp.DiscreteLaplaceDpEvent(inverse_scale, sensitivity)


def discrete_gaussian(sigma: float, sensitivity: int) -> Event:
    """P(x) ~ exp(-x^2 / (2 sigma^2)) on *one* integer that one unit changes by ``sensitivity``."""
    sigma = _multiplier("sigma", sigma)
    return DiscreteGaussianDpEvent(sigma, checks.whole("sensitivity", sensitivity, at_least=1))


def discrete_gaussian_vector(sigma: float, l2_sensitivity: float) -> Event:
    """Discrete Gaussian noise on a vector of integers that one unit moves by ``l2_sensitivity``.

    It is rho-zCDP with rho = l2_sensitivity^2 / (2 sigma^2) [canonne2020, theorem 14]. It has no
    privacy loss distribution, since that depends on how the change spreads over the vector.
    """
    sensitivity = checks.number("l2_sensitivity", l2_sensitivity, above=0)
    return concentrated(1 / _multiplier("sigma / l2_sensitivity", sigma / sensitivity) ** 2 / 2)


def concentrated(rho: float) -> Event:
    """Any mechanism that is rho-zCDP: order alpha costs rho alpha."""
    return dp.ZCDpEvent(checks.number("rho", rho, above=0, at_most=_MOST), xi=0.0)


def pure(epsilon: float) -> Event:
    """Any (epsilon, 0)-private mechanism, *under the relation of the guarantee it is part of*."""
    return PureDpEvent(checks.number("epsilon", epsilon, at_least=_LEAST, at_most=_MOST))


def randomized_response(noise: float, categories: int) -> Event:
    """One of ``categories`` values, replaced with probability ``noise`` by a uniform draw of all.

    A unit's value is what may change: this is for replacing one unit.
    """
    noise = checks.number("noise", noise, above=0, at_most=1)
    return dp.RandomizedResponseDpEvent(noise, checks.whole("categories", categories, at_least=2))


def weighted_response(noise: float, least: float) -> Event:
    """One of several values, replaced with probability ``noise`` by a draw of all.

    The draw need not be uniform: ``least`` is the smallest chance that it gives a value. This is
    for replacing one unit; why the smallest is enough: :mod:`privasr_k2.privacy.replacement`.
    """
    noise = checks.number("noise", noise, above=0, at_most=1)
    return WeightedResponseDpEvent(noise, checks.number("least", least, above=0, at_most=0.5))


def poisson_sampled(rate: float, event: Event) -> Event:
    """``event`` (Gaussian or Laplace) on a sample that each unit enters with chance ``rate``."""
    _check_sampled(event, gaussian=dp.GaussianDpEvent, laplace=dp.LaplaceDpEvent)
    return dp.PoissonSampledDpEvent(checks.number("rate", rate, at_least=_LEAST, at_most=1), event)


def sampled_group(rate: float, size: int, noise_multiplier: float) -> Event:
    """Cost for ``size`` units at once of :func:`poisson_sampled` Gaussian noise.

    ``noise_multiplier`` is by what *one* unit changes. The number of units in the sample is
    binomial, which makes a mixture of Gaussians [ganesh2024].
    """
    return SampledGroupDpEvent(
        checks.number("rate", rate, at_least=_LEAST, at_most=1),
        checks.whole("size", size, at_least=1),
        _multiplier("noise_multiplier", noise_multiplier),
    )


def fixed_size_sampled(size: int, population: int, event: Event) -> Event:
    """``event`` (Gaussian) on ``size`` different units out of ``population``, drawn uniformly."""
    _check_sampled(event, gaussian=dp.GaussianDpEvent)
    population = checks.whole("population", population, at_least=1)
    size = checks.whole("size", size, at_least=1, at_most=population)
    return dp.SampledWithoutReplacementDpEvent(population, size, event)


def _check_sampled(event: Event, **kinds: type[Event]) -> None:
    if not isinstance(event, tuple(kinds.values())):
        known = " or ".join(kinds)
        way_out = "no amplification is proven for it: do not claim any"
        raise PrivacyError("a sampled event", known, type(event).__name__, way_out)


def unprotected() -> Event:
    """Private data that leave as they are: epsilon is infinite, for every unit and relation."""
    return dp.NonPrivateDpEvent()
