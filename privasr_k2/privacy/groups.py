"""Cost of one event for several units at once: for a person who is more than one unit.

Group privacy of the mechanism itself, not of its epsilon: noise is compared with what ``size``
units change together, and a Poisson sample holds a binomial number of them [ganesh2024].

[ganesh2024] A. Ganesh, Tight group-level DP guarantees for DP-SGD with sampling via mixture of
Gaussians mechanisms, arXiv 2401.10294.
"""

from __future__ import annotations

from dp_accounting import dp_event as dp

from privasr_k2.privacy import checks, events
from privasr_k2.privacy.bounded_range import BoundedRangeDpEvent
from privasr_k2.privacy.events import (
    DiscreteGaussianDpEvent,
    Event,
    PureDpEvent,
    SampledGroupDpEvent,
    VectorLaplaceDpEvent,
)
from privasr_k2.privacy.searches import SearchDpEvent


def for_group(event: Event, size: int) -> Event:
    """The event of adding, removing or replacing ``size`` units at once.

    Args:
        event: with noise relative to what one unit changes.
        size: 1 or more.

    Returns:
        An event for the same relation; an unprotected one where no bound is known (sampling of a
        fixed size, Poisson sampling of Laplace noise).

    Raises:
        PrivacyError: ``size`` below 1, or an event that this package does not account for.

    >>> from privasr_k2.privacy.events import gaussian, repeated
    >>> for_group(repeated(gaussian(3.0), 10), 3) == repeated(gaussian(1.0), 10)
    True
    """
    size = checks.whole("size", size, at_least=1)
    if size == 1:
        return event
    return events.joined(
        {
            inner: times * count
            for leaf, count in events.terms(event).items()
            for inner, times in events.terms(_grouped(leaf, size)).items()
        }
    )


def _grouped(event: Event, size: int) -> Event:
    match event:
        case dp.GaussianDpEvent():
            return events.gaussian(event.noise_multiplier / size)
        case dp.LaplaceDpEvent():
            return events.laplace(event.noise_multiplier / size)
        case VectorLaplaceDpEvent():
            return events.laplace_vector(event.noise_multiplier / size)
        case dp.DiscreteLaplaceDpEvent():
            return dp.DiscreteLaplaceDpEvent(event.noise_parameter, size * event.sensitivity)
        case DiscreteGaussianDpEvent():
            return events.discrete_gaussian(event.sigma, size * event.sensitivity)
        case dp.ZCDpEvent():
            return events.concentrated(size**2 * event.rho)
        case BoundedRangeDpEvent():  # ranges of a unit after the other add up
            return events.bounded_range(size * event.eta)
        case PureDpEvent():
            return events.pure(size * event.epsilon)
        case dp.PoissonSampledDpEvent(event=dp.GaussianDpEvent() as inner):
            return events.sampled_group(event.sampling_probability, size, inner.noise_multiplier)
        case SampledGroupDpEvent():
            return events.sampled_group(event.rate, size * event.size, event.noise_multiplier)
        case SearchDpEvent():
            return events.search(for_group(event.event, size), event.mean, event.shape)
    if isinstance(event, events.FOR_REPLACING):
        return events.repeated(event, size)  # each unit's answer has noise of its own
    return events.unprotected()
