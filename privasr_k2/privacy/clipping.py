"""Bounding what one unit can add to a sum: its L1 or L2 norm is clipped, exactly.

A unit is what the guarantee protects (a user's model update, a speaker's gradient). With norm(v) <=
bound for every unit, adding or removing one unit moves the sum by at most ``bound``, and replacing
one by at most twice that. In floating point neither follows from v * min(1, bound / norm(v)) alone:
the product can exceed the bound by rounding, and the rounding of a long sum depends on all of its
terms, so that one unit moves it by more than its own norm [casacuberta2022]. Therefore every
clipped value is a multiple of a step,

    step = 2^(floor(log2(bound)) - 32),
    clipped = step * trunc(v * min(1, bound / norm(v)) / step),

taken towards zero, so that no norm grows by it. The norm is then compared with the bound in whole
numbers, without rounding, and float64 adds up to 2^20 such units exactly, in any order. What is
lost is less than ``step`` a value, 2^-32 of the bound.

What was clipped is private: norms are not kept, and a result shows nothing in its ``repr``. No
guarantee covers a release of the counts.

[casacuberta2022] S. Casacuberta et al., Widespread underestimation of sensitivity in differentially
private libraries and how to fix it, CCS 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks

Norm: TypeAlias = Literal["l1", "l2"]
# 2^33 steps in a value at most, 2^53 in a sum that float64 holds exactly.
_STEPS_IN_BOUND_LOG2 = 32
MAX_UNITS = 2**20
# Sums of squares of halves of the steps (17 bits each) stay below 2^63.
_MAX_SIZE = 2**28
# Far from where a step, or the square of a step, leaves the range of float64.
_LEAST_BOUND, _LARGEST_BOUND = 1e-250, 1e250
# Values of one block of units: 4 M are 32 MB an array.
_BLOCK = 4_000_000


@dataclass(frozen=True)
class Clipped:
    """Clipped values of one or more units, and the amount of the change.

    Attributes:
        values: float64, in the shape given; every unit's norm is at most the bound, exactly.
        zeroed: number of values that were not finite, and are 0 now. Private.
        clipped: number of units that were longer than the bound. Private.
    """

    values: np.ndarray = field(repr=False)
    zeroed: int = field(repr=False)
    clipped: int = field(repr=False)


def grid_step(bound: float) -> float:
    """The grid step of clipped values: 2^(floor(log2(bound)) - 32).

    >>> grid_step(1.0) == 2.0**-32
    True
    """
    bound = checks.number("bound", bound, at_least=_LEAST_BOUND, at_most=_LARGEST_BOUND)
    _, exponent = math.frexp(bound)  # bound = m * 2^exponent with 0.5 <= m < 1
    return math.ldexp(1.0, exponent - 1 - _STEPS_IN_BOUND_LOG2)


def clip_rows(rows: ArrayLike, *, bound: float, norm: Norm) -> Clipped:
    """A unit in each row: (K, D) real numbers, where K may be 0; those not finite count as 0.

    ``values.sum(axis=0)`` is exact: adding or removing any row moves it by at most ``bound``,
    whatever the row holds, and replacing one by at most twice ``bound``. That is so for one K x D:
    another D, with zeros in all rows, may round the norms of all of them otherwise.

    Args:
        bound: between 1e-250 and 1e250.

    Raises:
        PrivacyError: no numbers, another norm, a bound out of range, not two dimensions, or more
            than 2^20 units or 2^28 values in one.

    >>> clip_rows([[8.0, 0.0], [0.0, 1.0]], bound=2.0, norm="l2").clipped
    1
    """
    array = np.ascontiguousarray(_numbers("rows", rows))
    step = grid_step(bound)
    if norm not in ("l1", "l2"):
        raise PrivacyError("norm", "l1 or l2", repr(norm), "choose one of them")
    if array.ndim != 2 or array.shape[0] > MAX_UNITS or array.shape[1] > _MAX_SIZE:
        expected = f"shape (K, D) with at most {MAX_UNITS} units of at most {_MAX_SIZE} values"
        way_out = "sum exactly, for example with integers, beyond that"
        raise PrivacyError("rows", expected, f"shape {array.shape}", way_out)
    values = np.empty(array.shape)
    zeroed = clipped = 0
    block = max(1, _BLOCK // max(1, array.shape[1]))
    for start in range(0, len(array), block):
        part = array[start : start + block].astype(np.float64)
        finite = np.isfinite(part)
        zeroed += part.size - int(np.count_nonzero(finite))
        part[~finite] = 0.0
        steps, too_long = _steps(part, bound, step, norm)
        values[start : start + block] = steps * step
        clipped += int(np.count_nonzero(too_long))
    return Clipped(values, zeroed, clipped)


def _numbers(name: str, values: ArrayLike) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" and array.size:
        found = f"an array of {array.dtype}"
        raise PrivacyError(name, "an array of real numbers", found, "correct it")
    return array


def _steps(
    rows: np.ndarray, bound: float, step: float, norm: Norm
) -> tuple[np.ndarray, np.ndarray]:
    """Clipped finite rows in whole steps (K, D), and which rows were too long (K,)."""
    size = rows.shape[1]
    # The largest value is taken out first: squares neither overflow nor vanish.
    peak = np.abs(rows).max(axis=1, initial=0.0)
    scaled = rows / np.where(peak > 0, peak, 1.0)[:, None]
    scaled_norm = (
        np.abs(scaled).sum(axis=1) if norm == "l1" else np.sqrt(np.square(scaled).sum(axis=1))
    )
    with np.errstate(over="ignore"):
        norms = peak * scaled_norm
    too_long = norms > bound
    steps = np.trunc(np.where(too_long[:, None], 0.0, rows) / step).astype(np.int64)
    # Above the relative error of any order of summation; nearer norms are compared exactly.
    margin = (size + 16) * 2.0**-52
    near = np.flatnonzero(~too_long & (norms > bound * (1 - 2 * margin)))
    too_long[near] = _exceeds(steps[near], Fraction(bound) / Fraction(step), norm)
    factor = bound / step * (1 - margin) / scaled_norm[too_long]
    steps[too_long] = np.trunc(scaled[too_long] * factor[:, None]).astype(np.int64)
    return steps, too_long


def _exceeds(steps: np.ndarray, limit: Fraction, norm: Norm) -> list[bool]:
    """Whether the norms of whole numbers below 2^34, (K, D), exceed ``limit``; without rounding."""
    sizes = np.abs(steps)
    if norm == "l1":
        return [total > limit for total in sizes.sum(axis=1).tolist()]
    high, low = sizes >> 17, sizes & (2**17 - 1)
    squares, mixed, rest = (
        (a * b).sum(axis=1).tolist() for a, b in ((high, high), (high, low), (low, low))
    )
    totals = ((a << 34) + (b << 18) + c for a, b, c in zip(squares, mixed, rest, strict=True))
    return [total > limit**2 for total in totals]
