"""Checks of this package's numbers, so that no invalid value becomes an epsilon."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError


def number(
    name: str,
    value: float,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """``value`` as a finite float within its bounds.

    Raises:
        PrivacyError: it is none, is not finite, or lies outside.

    >>> number("rate", 1.5, above=0, at_most=1)
    Traceback (most recent call last):
    privasr_k2.errors.PrivacyError: rate: expected a number above 0 and at most 1, found 1.5
      way out: correct the value
    """
    bounds = [
        (words, bound, holds)
        for words, bound, holds in (
            ("above", above, operator.gt),
            ("at least", at_least, operator.ge),
            ("below", below, operator.lt),
            ("at most", at_most, operator.le),
        )
        if bound is not None
    ]
    expected = " and ".join(f"{words} {bound:g}" for words, bound, _ in bounds)
    expected = f"a number {expected}" if bounds else "a number"
    real_types = (int, float, np.integer, np.floating)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, real_types):
        raise PrivacyError(name, expected, repr(value), "correct the value")
    real = float(value)
    if not math.isfinite(real) or not all(holds(real, bound) for _, bound, holds in bounds):
        raise PrivacyError(name, expected, f"{real:g}", "correct the value")
    return real


def whole(name: str, value: int, *, at_least: int, at_most: int | None = None) -> int:
    """``value`` as an int within its bounds; a float is refused, even one without a fraction.

    Raises:
        PrivacyError: it is no whole number or lies outside.

    >>> whole("rounds", 100, at_least=1)
    100
    """
    upper = "" if at_most is None else f" and at most {at_most}"
    expected = f"a whole number of {at_least} or more{upper}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise PrivacyError(name, expected, repr(value), "correct the value")
    if value < at_least or (at_most is not None and value > at_most):
        raise PrivacyError(name, expected, str(value), "correct the value")
    return int(value)


def delta(value: float, *, units: int | None = None) -> float:
    """A delta between 0 and 1; below 1/units where the number of units is known.

    With a delta of 1/units a mechanism that publishes one unit drawn at random would be "private".

    Raises:
        PrivacyError: it lies outside.

    >>> delta(1e-5, units=74)
    1e-05
    """
    checked = number("delta", value, above=0, below=1)
    if units is not None and checked >= 1 / whole("units", units, at_least=1):
        expected = f"a number below 1/units = {1 / units:.6g}"
        way_out = f"choose one far below it, for example {_below(1 / units):g}"
        raise PrivacyError("delta", expected, f"{checked:g}", way_out)
    return checked


def _below(bound: float) -> float:
    return min(1e-5, 10.0 ** math.floor(math.log10(bound / 100)))


def orders(name: str, values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Orders of Rényi divergence: one dimension, floats above 1.

    An array of integers is refused: powers and products of them overflow without a word.

    Raises:
        PrivacyError: integers, an order of 1 or below, another shape, or none.

    >>> orders("orders", [1.5, 2.0])
    array([1.5, 2. ])
    """
    array = np.asarray(values)
    if array.dtype.kind != "f":
        found, way_out = f"an array of {array.dtype}", "write 2.0 for 2, or use .astype(float)"
        raise PrivacyError(name, "orders as floats", found, way_out)
    if array.ndim != 1 or array.size == 0:
        expected = "one dimension of at least one order"
        raise PrivacyError(name, expected, f"shape {array.shape}", "correct it")
    wrong = ~(np.isfinite(array) & (array > 1))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        found = f"{array[at]:g}"
        raise PrivacyError(f"{name}[{at}]", "a finite order above 1", found, "correct the value")
    return array.astype(np.float64)


def histograms(name: str, votes: ArrayLike) -> np.ndarray:
    """Vote counts as integers of shape (Q, C): Q queries, C classes.

    Returns:
        integers as they are, else ``int64``.

    Raises:
        PrivacyError: fewer than two classes, a query without a vote, a negative count, a fraction.

    >>> histograms("votes", [[3, 2], [5, 0]])
    array([[3, 2],
           [5, 0]])
    """
    array = np.asarray(votes)
    if array.ndim != 2 or array.shape[1] < 2:
        expected = "shape (queries, classes) with two or more classes"
        raise PrivacyError(name, expected, f"shape {array.shape}", "correct it")
    if array.dtype.kind not in "iuf":
        found = f"an array of {array.dtype}"
        raise PrivacyError(name, "whole numbers of votes", found, "correct it")
    if array.dtype.kind == "f":
        finite = np.isfinite(array).all()
        whole_numbers = array.astype(np.int64) if finite else np.full(array.shape, -1)
        wrong = (whole_numbers != array).any(axis=1)
        _refuse_rows(name, array, wrong, "whole numbers of votes")
        array = whole_numbers
    _refuse_rows(name, array, (array < 0).any(axis=1), "counts of 0 or more")
    _refuse_rows(name, array, array.sum(axis=1) == 0, "at least one vote")
    return array


def _refuse_rows(name: str, votes: np.ndarray, wrong: np.ndarray, expected: str) -> None:
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        shown = np.array2string(votes[at], threshold=8)
        raise PrivacyError(f"{name}[{at}]", expected, shown, "correct the counts of this query")
