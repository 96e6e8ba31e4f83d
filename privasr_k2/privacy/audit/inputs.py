"""Checks of the audits' inputs: confidence, delta, scores and counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks


def confidence(value: float) -> float:
    """A confidence strictly between 0 and 1.

    Raises:
        PrivacyError: it lies outside.
    """
    return checks.number("confidence", value, above=0, below=1)


def delta(value: float) -> float:
    """The delta of the claim; 0 for a claim of pure privacy.

    Raises:
        PrivacyError: it is below 0, or 1 or more.
    """
    return checks.number("delta", value, at_least=0, below=1)


def scores(name: str, values: ArrayLike) -> np.ndarray:
    """Scores or losses as floats of shape (N,), N at least 1. Infinite ones have a rank, NaN has
    none.

    Raises:
        PrivacyError: another shape, no value, no numbers, or a NaN.

    >>> scores("losses", [2, 1.5])
    array([2. , 1.5])
    """
    made = np.asarray(values)
    if made.dtype.kind not in "iuf":
        raise PrivacyError(name, "numbers", f"an array of {made.dtype}", "correct it")
    if made.ndim != 1 or made.size == 0:
        raise PrivacyError(
            name, "one dimension of at least one value", f"shape {made.shape}", "correct it"
        )
    return without_nan(name, made.astype(np.float64))


def without_nan(name: str, values: np.ndarray) -> np.ndarray:
    """``values`` as they are.

    Raises:
        PrivacyError: one is NaN; its index is named.
    """
    wrong = np.argwhere(np.isnan(values))
    if len(wrong):
        at = ", ".join(map(str, wrong[0]))
        raise PrivacyError(
            f"{name}[{at}]",
            "a number",
            "nan",
            "find out why it has no loss; do not leave it out of the audit",
        )
    return values


def finite(name: str, values: np.ndarray) -> np.ndarray:
    """``values`` as they are.

    Raises:
        PrivacyError: one is NaN or infinite; its index is named.
    """
    wrong = np.argwhere(~np.isfinite(without_nan(name, values)))
    if len(wrong):
        at = ", ".join(map(str, wrong[0]))
        raise PrivacyError(
            f"{name}[{at}]", "a finite number", "an infinite one", "bound the losses"
        )
    return values


def flags(name: str, values: ArrayLike, *, length: int) -> np.ndarray:
    """Booleans of shape (length,).

    Raises:
        PrivacyError: another shape or type.
    """
    made = np.asarray(values)
    if made.dtype != np.bool_ or made.shape != (length,):
        raise PrivacyError(
            name,
            f"{length} booleans",
            f"an array of {made.dtype} of shape {made.shape}",
            "correct it",
        )
    return made
