"""Checks of this package's numbers, so that no invalid value becomes an epsilon."""

from __future__ import annotations

import math
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

    >>> number("rate", 0.1, above=0, at_most=1)
    0.1
    >>> number("rate", 1.5, above=0, at_most=1)
    Traceback (most recent call last):
    privasr_k2.errors.PrivacyError: rate: expected a number above 0 and at most 1, found 1.5
      way out: correct the value
    """
    bounds = [
        f"{words} {bound:g}"
        for words, bound in (
            ("above", above),
            ("at least", at_least),
            ("below", below),
            ("at most", at_most),
        )
        if bound is not None
    ]
    expected = "a number" + (" " + " and ".join(bounds) if bounds else "")
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise PrivacyError(name, expected, repr(value), "correct the value")
    made = float(value)
    inside = (
        math.isfinite(made)
        and (above is None or made > above)
        and (at_least is None or made >= at_least)
        and (below is None or made < below)
        and (at_most is None or made <= at_most)
    )
    if not inside:
        raise PrivacyError(name, expected, f"{made:g}", "correct the value")
    return made


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
    >>> delta(0.05, units=74)
    Traceback (most recent call last):
    privasr_k2.errors.PrivacyError: delta: expected a number below 1/units = 0.0135135, found 0.05
      way out: choose one far below it, for example 1e-05
    """
    made = number("delta", value, above=0, below=1)
    if units is not None and made >= 1 / whole("units", units, at_least=1):
        raise PrivacyError(
            "delta",
            f"a number below 1/units = {1 / units:.6g}",
            f"{made:g}",
            f"choose one far below it, for example {_below(1 / units):g}",
        )
    return made


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
    made = np.asarray(values)
    if made.dtype.kind != "f":
        raise PrivacyError(
            name,
            "orders as floats",
            f"an array of {made.dtype}",
            "write 2.0 for 2, or use .astype(float)",
        )
    if made.ndim != 1 or made.size == 0:
        raise PrivacyError(
            name, "one dimension of at least one order", f"shape {made.shape}", "correct it"
        )
    wrong = ~(np.isfinite(made) & (made > 1))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise PrivacyError(
            f"{name}[{at}]", "a finite order above 1", f"{made[at]:g}", "correct the value"
        )
    return made.astype(np.float64)


def histograms(name: str, votes: ArrayLike) -> np.ndarray:
    """Vote counts as integers of shape (Q, C): Q queries, C classes.

    Returns:
        the counts as they are where they are integers, else as ``int64``.

    Raises:
        PrivacyError: fewer than two classes, a query without a vote, a negative count or a
            fraction.

    >>> histograms("votes", [[3, 2], [5, 0]])
    array([[3, 2],
           [5, 0]])
    """
    made = np.asarray(votes)
    if made.ndim != 2 or made.shape[1] < 2:
        raise PrivacyError(
            name,
            "shape (queries, classes) with two or more classes",
            f"shape {made.shape}",
            "correct it",
        )
    if made.dtype.kind not in "iuf":
        raise PrivacyError(
            name, "whole numbers of votes", f"an array of {made.dtype}", "correct it"
        )
    if made.dtype.kind == "f":
        whole_numbers = (
            made.astype(np.int64) if np.isfinite(made).all() else np.full(made.shape, -1)
        )
        wrong = (whole_numbers != made).any(axis=1)
        _refuse_rows(name, made, wrong, "whole numbers of votes")
        made = whole_numbers
    _refuse_rows(name, made, (made < 0).any(axis=1), "counts of 0 or more")
    _refuse_rows(name, made, made.sum(axis=1) == 0, "at least one vote")
    return made


def _refuse_rows(name: str, votes: np.ndarray, wrong: np.ndarray, expected: str) -> None:
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        shown = np.array2string(votes[at], threshold=8)
        raise PrivacyError(f"{name}[{at}]", expected, shown, "correct the counts of this query")
