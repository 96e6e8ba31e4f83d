"""Mechanisms on private data as ``dp_accounting`` events, for ledger, plan and accountants.

An event tells the mechanism and its noise relative to what *adding or removing* one unit changes,
never an epsilon. For replacing one unit, accountants double the sensitivity: :func:`for_replacing`.
Single mechanisms are in :mod:`privasr_k2.privacy.event_kinds`, and have their names here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dp_accounting import dp_event as dp

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.bounded_range import BoundedRangeDpEvent
from privasr_k2.privacy.bounded_range import bounded_range as bounded_range
from privasr_k2.privacy.event_kinds import (
    DiscreteGaussianDpEvent as DiscreteGaussianDpEvent,
)
from privasr_k2.privacy.event_kinds import (
    Event as Event,
)
from privasr_k2.privacy.event_kinds import (
    PureDpEvent as PureDpEvent,
)
from privasr_k2.privacy.event_kinds import (
    SampledGroupDpEvent as SampledGroupDpEvent,
)
from privasr_k2.privacy.event_kinds import (
    VectorLaplaceDpEvent as VectorLaplaceDpEvent,
)
from privasr_k2.privacy.event_kinds import (
    WeightedResponseDpEvent as WeightedResponseDpEvent,
)
from privasr_k2.privacy.event_kinds import (
    concentrated as concentrated,
)
from privasr_k2.privacy.event_kinds import (
    discrete_gaussian as discrete_gaussian,
)
from privasr_k2.privacy.event_kinds import (
    discrete_gaussian_vector as discrete_gaussian_vector,
)
from privasr_k2.privacy.event_kinds import (
    discrete_laplace as discrete_laplace,
)
from privasr_k2.privacy.event_kinds import (
    discrete_laplace_inverse as discrete_laplace_inverse,
)
from privasr_k2.privacy.event_kinds import (
    fixed_size_sampled as fixed_size_sampled,
)
from privasr_k2.privacy.event_kinds import (
    gaussian as gaussian,
)
from privasr_k2.privacy.event_kinds import (
    laplace as laplace,
)
from privasr_k2.privacy.event_kinds import (
    laplace_vector as laplace_vector,
)
from privasr_k2.privacy.event_kinds import (
    poisson_sampled as poisson_sampled,
)
from privasr_k2.privacy.event_kinds import (
    pure as pure,
)
from privasr_k2.privacy.event_kinds import (
    randomized_response as randomized_response,
)
from privasr_k2.privacy.event_kinds import (
    sampled_group as sampled_group,
)
from privasr_k2.privacy.event_kinds import (
    unprotected as unprotected,
)
from privasr_k2.privacy.event_kinds import (
    weighted_response as weighted_response,
)
from privasr_k2.privacy.searches import SearchDpEvent, flat

#: These are for replacing a unit, and have no bound for adding or removing one.
FOR_REPLACING = (dp.RandomizedResponseDpEvent, WeightedResponseDpEvent)


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


def search(event: Event, mean: float, shape: float | None) -> Event:
    """The best of a random number of runs of ``event``, as of a search for hyper-parameters.

    Args:
        event: one run *with all that the choice looks at*: the score on private dev, too.
        mean: of the number of runs, which nobody is told.
        shape: of the number's negative binomial distribution without 0, above -1: 0 is the
            logarithmic, 1 the geometric distribution; ``mean`` is above 1. None: Poisson.

    What it costs, and why: :mod:`privasr_k2.privacy.searches`.
    """
    mean = checks.number("mean", mean, above=0 if shape is None else 1, at_most=1e9)
    if shape is not None:
        shape = checks.number("shape", shape, above=-1, at_most=1e3)
    counts = terms(event)
    if not counts or is_unprotected(event):
        return joined(counts)
    return SearchDpEvent(tuple(counts.items()), mean, shape)


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

    Random responses and :func:`pure`, which are for a relation of their own, stay as they are.

    Raises:
        PrivacyError: Poisson sampling, for which doubling is not proven.

    >>> for_replacing(gaussian(2.0)) == gaussian(1.0)
    True
    """
    return joined({_doubled(leaf): count for leaf, count in terms(event).items()})


def joined(counts: Mapping[Event, int]) -> Event:
    """The composition that :func:`terms` takes apart."""
    return flat(counts.items())


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
        case SearchDpEvent():
            return search(for_replacing(event.event), event.mean, event.shape)
        case PureDpEvent() | dp.NonPrivateDpEvent():
            return event
    if isinstance(event, FOR_REPLACING):
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
        discrete_laplace_inverse,
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
    "weighted response": _Form(
        WeightedResponseDpEvent, {"noise": "noise", "least": "least"}, weighted_response
    ),
    "search": _Form(
        SearchDpEvent,
        {"of": "event", "mean": "mean", "shape": "shape"},
        lambda of, mean, shape: search(of, mean, shape),
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
