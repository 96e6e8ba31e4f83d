"""Constraints of values, declared in the annotations of dataclasses: ``lr: Positive``.

A configuration inherits from :class:`Checked`. Options of recipes use the same annotations
(:mod:`privasr_k2.recipe.options`).
"""

from __future__ import annotations

import functools
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

from annotated_types import Ge, GroupedMetadata, Gt, Interval, Le, Lt, MinLen, MultipleOf


@dataclass(frozen=True)
class Choices:
    """One of the names that a registry has at the time of the check."""

    names: Callable[[], Sequence[str]]


@dataclass(frozen=True)
class Matches:
    """Text of a form, described by ``said``."""

    pattern: str
    said: str


@dataclass(frozen=True)
class Different:
    """A list that holds nothing twice."""


def one_of(*names: str) -> Choices:
    """One of these names."""
    return Choices(lambda: names)


Count = Annotated[int, Ge(1)]
Natural = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Finite = Annotated[float, Interval(gt=0, lt=math.inf)]
FiniteOrZero = Annotated[float, Interval(ge=0, lt=math.inf)]
Share = Annotated[float, Interval(ge=0, le=1)]
PositiveShare = Annotated[float, Interval(gt=0, le=1)]
ShareBelowOne = Annotated[float, Interval(ge=0, lt=1)]
Delta = Annotated[float, Interval(gt=0, lt=1)]


def broken(annotation: Any, value: Any) -> str:
    """The constraint that ``value`` breaks, else ``""``. Types are not checked.

    >>> broken(Share, 1.5), broken(Share, 0.5), broken(list[Count], [1, 0])
    ('at most 1', '', 'at least 1 each')
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        inner = [argument for argument in arguments if argument is not type(None)]
        return "" if value is None or len(inner) > 1 else broken(inner[0], value)
    if origin is Annotated:
        return broken(arguments[0], value) or _first_broken(value, arguments[1:])
    if origin in (list, tuple, dict):
        values = value.values() if origin is dict else value
        element = arguments[-1] if origin is dict else arguments[0]
        inside = next(filter(None, (broken(element, inner) for inner in values)), "")
        return f"{inside} each" if inside else ""
    return ""


class Checked:
    """Base of dataclasses whose fields are checked against their annotations on creation.

    A subclass with a ``__post_init__`` of its own calls this one first.

    Raises:
        ValueError: ``lr must be above 0, got -1``.
    """

    def __post_init__(self) -> None:
        check_fields(type(self), self)


def check_fields(cls: type, values: Any, group: str = "") -> None:
    """Check the fields of ``cls``, and of the :class:`Checked` that it holds, in ``values``.

    Args:
        group: prefix of the fields' names, as ``client.``.

    Raises:
        ValueError: a value that its annotation does not allow, by its full name.
    """
    for name, annotation in declared(cls).items():
        value = getattr(values, name)
        if said := broken(annotation, value):
            raise ValueError(f"{group}{name} must be {said}, got {value!r}")
        if isinstance(annotation, type) and issubclass(annotation, Checked):
            check_fields(annotation, value, f"{group}{name}.")


@functools.cache
def declared(cls: type) -> Mapping[str, Any]:
    """The annotations of a dataclass's fields, with their constraints."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in fields(cls)}


def _first_broken(value: Any, constraints: Iterable[Any]) -> str:
    return next(filter(None, (_outside(value, constraint) for constraint in constraints)), "")


def _outside(value: Any, constraint: Any) -> str:
    """The constraint that ``value`` breaks, else ``""``."""
    # Comparisons are negated so that NaN, which compares with nothing, is refused.
    match constraint:
        case GroupedMetadata():
            return _first_broken(value, constraint)
        case Choices() if value not in constraint.names():
            return f"one of {', '.join(constraint.names())}"
        case Matches() if not re.fullmatch(constraint.pattern, value):
            return constraint.said
        case MinLen() if len(value) < constraint.min_length:
            return f"{constraint.min_length} or more values"
        case Different() if len(set(value)) < len(value):
            return "different values"
        case MultipleOf() if value % constraint.multiple_of != 0:
            return f"a multiple of {constraint.multiple_of}"
        case Gt() if not value > constraint.gt:
            return f"above {constraint.gt}"
        case Ge() if not value >= constraint.ge:
            return f"at least {constraint.ge}"
        case Lt() if not value < constraint.lt:
            return "finite" if constraint.lt == math.inf else f"below {constraint.lt}"
        case Le() if not value <= constraint.le:
            return f"at most {constraint.le}"
    return ""
