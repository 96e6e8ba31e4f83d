"""Checks of the audits' inputs: confidence, delta, scores and counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks


def confidence(value: float) -> float:
    """A confidence strictly between 0 and 1, else a PrivacyError."""
    return checks.number("confidence", value, above=0, below=1)


def delta(value: float) -> float:
    """The delta of the claim, at least 0 and below 1, else a PrivacyError."""
    return checks.number("delta", value, at_least=0, below=1)


def scores(name: str, values: ArrayLike) -> np.ndarray:
    """Scores or losses as floats of shape (N,), N at least 1; they may be infinite.

    Raises:
        PrivacyError: another shape, no value, no numbers, or a NaN.

    >>> scores("losses", [2, 1.5])
    array([2. , 1.5])
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise PrivacyError(name, "numbers", f"an array of {array.dtype}", "correct it")
    if array.ndim != 1 or array.size == 0:
        raise PrivacyError(name, "one value or more", f"shape {array.shape}", "correct it")
    return without_nan(name, array.astype(np.float64))


def without_nan(name: str, values: np.ndarray) -> np.ndarray:
    """``values`` as they are; a PrivacyError names the index of a NaN."""
    for index in np.argwhere(np.isnan(values)):
        at = ", ".join(map(str, index))
        way_out = "find out why it has no loss; do not leave it out of the audit"
        raise PrivacyError(f"{name}[{at}]", "a number", "nan", way_out)
    return values


def flags(name: str, values: ArrayLike, *, length: int) -> np.ndarray:
    """Booleans of shape (length,), else a PrivacyError."""
    array = np.asarray(values)
    if array.dtype != np.bool_ or array.shape != (length,):
        actual = f"an array of {array.dtype} of shape {array.shape}"
        raise PrivacyError(name, f"{length} booleans", actual, "correct it")
    return array
