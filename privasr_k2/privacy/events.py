"""Mechanisms on private data as ``dp_accounting`` events, for ledger, plan and accountants.

An event tells the mechanism and its noise relative to what *adding or removing* one unit changes,
never an epsilon. For replacing one unit, accountants double the sensitivity: :func:`for_replacing`.

[ganesh2024] A. Ganesh, Tight group-level DP guarantees for DP-SGD with sampling via mixture of
Gaussians mechanisms, arXiv 2401.10294.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import attrs
from dp_accounting import dp_event as dp

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.bounded_range import BoundedRangeDpEvent
from privasr_k2.privacy.bounded_range import bounded_range as bounded_range

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
    return _discrete_laplace(1 / _multiplier("scale", scale), sensitivity)


def _discrete_laplace(inverse_scale: float, sensitivity: int) -> Event:
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


def poisson_sampled(rate: float, event: Event) -> Event:
    """``event`` (Gaussian or Laplace) on a sample that each unit enters with chance ``rate``."""
    _check_sampled(event, dp.GaussianDpEvent, dp.LaplaceDpEvent)
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
    _check_sampled(event, dp.GaussianDpEvent)
    population = checks.whole("population", population, at_least=1)
    size = checks.whole("size", size, at_least=1, at_most=population)
    return dp.SampledWithoutReplacementDpEvent(population, size, event)


def _check_sampled(event: Event, *kinds: type[Event]) -> None:
    if not isinstance(event, kinds):
        known = " or ".join(name for name, form in _FORMS.items() if form.kind in kinds)
        way_out = "no amplification is proven for it: do not claim any"
        raise PrivacyError("a sampled event", known, type(event).__name__, way_out)


def unprotected() -> Event:
    """Private data that leave as they are: epsilon is infinite, for every unit and relation."""
    return dp.NonPrivateDpEvent()


def is_unprotected(event: Event) -> bool:
    """Whether something of ``event`` has no protection at all.

    >>> is_unprotected(composed(gaussian(1.0), unprotected())), is_unprotected(gaussian(1.0))
    (True, False)
    """
    return unprotected() in terms(event)


def repeated(event: Event, count: int) -> Event:
    """``count`` times ``event`` with independent noise; one may depend on earlier results."""
    return dp.SelfComposedDpEvent(event, checks.whole("count", count, at_least=0))


def composed(*events: Event) -> Event:
    """All of ``events``, each with noise of its own."""
    return dp.ComposedDpEvent(list(events))


def terms(event: Event) -> dict[Event, int]:
    """The events that ``event`` is composed of, without compositions, and how often each occurs.

    Raises:
        PrivacyError: an event that this package does not account for.

    >>> step = poisson_sampled(0.01, gaussian(1.5))
    >>> terms(repeated(composed(step, step), 50)) == {step: 100}
    True
    """
    counts: dict[Event, int] = {}
    _collect(event, 1, counts)
    return {leaf: count for leaf, count in counts.items() if count}


def _collect(event: Event, count: int, found: dict[Event, int]) -> None:
    if isinstance(event, dp.SelfComposedDpEvent):
        _collect(event.event, count * checks.whole("count", event.count, at_least=0), found)
    elif isinstance(event, dp.ComposedDpEvent):
        for inner in event.events:
            _collect(inner, count, found)
    elif isinstance(event, dp.PoissonSampledDpEvent) and event.sampling_probability == 1:
        _collect(event.event, count, found)
    elif not isinstance(event, dp.NoOpDpEvent):
        _checked(event)
        found[event] = found.get(event, 0) + count


def for_replacing(event: Event) -> Event:
    """The event of replacing one unit: one removed and another added, the sensitivity doubled.

    Randomized response and :func:`pure`, which are for a relation of their own, stay as they are.

    Raises:
        PrivacyError: Poisson sampling, for which doubling is not proven.

    >>> for_replacing(gaussian(2.0)) == gaussian(1.0)
    True
    """
    return joined({_doubled(leaf): count for leaf, count in terms(event).items()})


def joined(counts: Mapping[Event, int]) -> Event:
    """The composition that :func:`terms` takes apart."""
    events = [leaf if count == 1 else repeated(leaf, count) for leaf, count in counts.items()]
    return events[0] if len(events) == 1 else composed(*events)


def _doubled(event: Event) -> Event:
    match event:
        case dp.GaussianDpEvent():
            return gaussian(event.noise_multiplier / 2)
        case dp.LaplaceDpEvent():
            return laplace(event.noise_multiplier / 2)
        case dp.DiscreteLaplaceDpEvent():
            return dp.DiscreteLaplaceDpEvent(event.noise_parameter, 2 * event.sensitivity)
        case DiscreteGaussianDpEvent():
            return discrete_gaussian(event.sigma, 2 * event.sensitivity)
        case dp.ZCDpEvent():
            return concentrated(4 * event.rho)
        case VectorLaplaceDpEvent():
            return laplace_vector(event.noise_multiplier / 2)
        case BoundedRangeDpEvent():
            return bounded_range(2 * event.eta)
        case dp.SampledWithoutReplacementDpEvent():
            doubled = _doubled(event.event)
            return fixed_size_sampled(event.sample_size, event.source_dataset_size, doubled)
        case dp.RandomizedResponseDpEvent() | PureDpEvent() | dp.NonPrivateDpEvent():
            return event
    expected = "an event whose cost for replacing one unit is known"
    way_out = "state the guarantee for adding or removing one unit"
    raise PrivacyError(str(event), expected, _name(event), way_out)


@dataclass(frozen=True)
class _Form:
    """Form of an event in a ledger: its fields by their public names, and their checks."""

    kind: type[Event]
    fields: Mapping[str, str]
    build: Callable[..., Event]


def _composed(of: Any) -> Event:
    if not isinstance(of, list):
        raise PrivacyError("of", "a list of events", type(of).__name__, "correct it")
    return composed(*of)


_MULTIPLIER = {"noise_multiplier": "noise_multiplier"}
_FORMS: dict[str, _Form] = {
    "gaussian": _Form(dp.GaussianDpEvent, _MULTIPLIER, gaussian),
    "laplace": _Form(dp.LaplaceDpEvent, _MULTIPLIER, laplace),
    "vector laplace": _Form(VectorLaplaceDpEvent, _MULTIPLIER, laplace_vector),
    "discrete laplace": _Form(
        dp.DiscreteLaplaceDpEvent,
        {"inverse_scale": "noise_parameter", "sensitivity": "sensitivity"},
        _discrete_laplace,
    ),
    "discrete gaussian": _Form(
        DiscreteGaussianDpEvent, {"sigma": "sigma", "sensitivity": "sensitivity"}, discrete_gaussian
    ),
    "zCDP": _Form(dp.ZCDpEvent, {"rho": "rho"}, concentrated),
    "bounded range": _Form(BoundedRangeDpEvent, {"eta": "eta"}, bounded_range),
    "pure": _Form(PureDpEvent, {"epsilon": "epsilon"}, pure),
    "randomized response": _Form(
        dp.RandomizedResponseDpEvent,
        {"noise": "noise_parameter", "categories": "num_buckets"},
        randomized_response,
    ),
    "poisson sampled": _Form(
        dp.PoissonSampledDpEvent,
        {"rate": "sampling_probability", "of": "event"},
        lambda rate, of: poisson_sampled(rate, of),
    ),
    "sampled group": _Form(
        SampledGroupDpEvent,
        {"rate": "rate", "size": "size", "noise_multiplier": "noise_multiplier"},
        sampled_group,
    ),
    "fixed-size sampled": _Form(
        dp.SampledWithoutReplacementDpEvent,
        {"population": "source_dataset_size", "size": "sample_size", "of": "event"},
        lambda population, size, of: fixed_size_sampled(size, population, of),
    ),
    "repeated": _Form(
        dp.SelfComposedDpEvent,
        {"count": "count", "of": "event"},
        lambda count, of: repeated(of, count),
    ),
    "composed": _Form(dp.ComposedDpEvent, {"of": "events"}, _composed),
    "nothing": _Form(dp.NoOpDpEvent, {}, dp.NoOpDpEvent),
    "unprotected": _Form(dp.NonPrivateDpEvent, {}, unprotected),
}


def to_json(event: Event) -> dict[str, Any]:
    """``event`` as plain values.

    >>> to_json(repeated(gaussian(1.0), 3))
    {'mechanism': 'repeated', 'count': 3, 'of': {'mechanism': 'gaussian', 'noise_multiplier': 1.0}}
    """
    name = _name(event)
    return {"mechanism": name} | {
        key: _map(to_json, getattr(event, field), dp.DpEvent)
        for key, field in _FORMS[name].fields.items()
    }


def from_json(value: Any, place: str) -> Event:
    """The event that :func:`to_json` wrote.

    Args:
        place: what to name in an error, for example the ledger and its entry.

    Raises:
        PrivacyError: an unknown mechanism, other fields than it has, or values out of range.

    >>> from_json(to_json(gaussian(1.0)), "here") == gaussian(1.0)
    True
    """
    name = value.get("mechanism") if isinstance(value, Mapping) else None
    if name not in _FORMS:
        expected = f"a mechanism out of {', '.join(_FORMS)}"
        raise PrivacyError(place, expected, repr(value), "use a newer version")
    form = _FORMS[name]
    if set(value) != {"mechanism", *form.fields}:
        expected = f"{name} with {', '.join(form.fields)}"
        raise PrivacyError(place, expected, ", ".join(value), "do not edit a ledger")
    inner = {
        key: _map(lambda item: from_json(item, place), value[key], Mapping) for key in form.fields
    }
    try:
        return form.build(**inner)
    except PrivacyError as error:
        at = f"{place}: {error.place}"
        raise PrivacyError(at, error.expected, error.found, error.way_out) from error


def _map(convert: Callable[[Any], Any], value: Any, kind: type) -> Any:
    if isinstance(value, list):
        return [convert(inner) for inner in value]
    return convert(value) if isinstance(value, kind) else value


def _name(event: Event) -> str:
    for name, form in _FORMS.items():
        if type(event) is form.kind:
            return name
    expected = f"a mechanism out of {', '.join(_FORMS)}"
    raise PrivacyError("event", expected, type(event).__name__, "describe it by one of these")


def _checked(event: Event) -> None:
    """Refuse what was made without the functions above and has values that they do not allow."""
    form = _FORMS[_name(event)]
    if form.build(**{key: getattr(event, field) for key, field in form.fields.items()}) != event:
        expected = f"an event with {', '.join(form.fields)} alone"
        raise PrivacyError(str(event), expected, "more", "correct it")
