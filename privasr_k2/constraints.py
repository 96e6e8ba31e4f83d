"""What values may be, declared in the annotations of dataclasses: ``lr: Positive``.

A configuration inherits from :class:`Checked`, so that its fields are checked however it is made.
Options of recipes use the same annotations (:mod:`privasr_k2.recipe.options`).
"""

from __future__ import annotations

import functools
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

from annotated_types import Ge, GroupedMetadata, Gt, Interval, Le, Lt, MinLen, MultipleOf


@dataclass(frozen=True)
class Choices:
    """One of the names that a registry has when the value is checked."""

    names: Callable[[], Sequence[str]]


@dataclass(frozen=True)
class Matches:
    """Text of a form, which ``said`` tells."""

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
    """What ``value`` would have to be to fit its annotation; empty where it fits. Types are not
    checked.

    >>> broken(Share, 1.5), broken(Share, 0.5), broken(list[Count], [1, 0])
    ('at most 1', '', 'at least 1 each')
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        inner = [one for one in arguments if one is not type(None)]
        return "" if value is None or len(inner) > 1 else broken(inner[0], value)
    if origin is Annotated:
        inside = broken(arguments[0], value)
        return inside or next(filter(None, (_outside(value, one) for one in arguments[1:])), "")
    if origin in (list, tuple, dict):
        values = value.values() if origin is dict else value
        element = arguments[-1] if origin is dict else arguments[0]
        inside = next(filter(None, (broken(element, one) for one in values)), "")
        return f"{inside} each" if inside else ""
    return ""


class Checked:
    """A base of dataclasses whose fields are checked against their annotations when one is made.

    A dataclass with a ``__post_init__`` of its own calls this one first.

    Raises:
        ValueError: ``lr must be above 0, got -1``.
    """

    def __post_init__(self) -> None:
        check_fields(type(self), self)


def check_fields(cls: type, values: Any, group: str = "") -> None:
    """Check the fields of ``cls``, and of the :class:`Checked` that it holds, in an object that has
    them.

    Args:
        group: what stands before the names of fields, as ``client.``.

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


def _outside(value: Any, constraint: Any) -> str:
    """What ``value`` would have to be to keep a constraint; empty where it does."""
    if isinstance(constraint, GroupedMetadata):
        return next(filter(None, (_outside(value, one) for one in constraint)), "")
    if isinstance(constraint, Choices):
        return "" if value in constraint.names() else f"one of {', '.join(constraint.names())}"
    if isinstance(constraint, Matches):
        return "" if re.fullmatch(constraint.pattern, value) else constraint.said
    if isinstance(constraint, MinLen):
        return (
            "" if len(value) >= constraint.min_length else f"{constraint.min_length} or more values"
        )
    if isinstance(constraint, Different):
        return "" if len(set(value)) == len(value) else "different values"
    if isinstance(constraint, MultipleOf):
        return (
            "" if value % constraint.multiple_of == 0 else f"a multiple of {constraint.multiple_of}"
        )
    return _out_of_range(value, constraint)


def _out_of_range(value: Any, bound: Any) -> str:
    # Each is written so that NaN, which compares with nothing, is refused.
    if isinstance(bound, Gt) and not value > bound.gt:
        return f"above {bound.gt}"
    if isinstance(bound, Ge) and not value >= bound.ge:
        return f"at least {bound.ge}"
    if isinstance(bound, Lt) and not value < bound.lt:
        return "finite" if bound.lt == math.inf else f"below {bound.lt}"
    if isinstance(bound, Le) and not value <= bound.le:
        return f"at most {bound.le}"
    return ""
