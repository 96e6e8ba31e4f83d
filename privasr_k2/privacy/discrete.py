"""Exact noise on whole numbers (counts, votes), and the grid that makes whole numbers of real ones.

The samplers are OpenDP's: exact in rational arithmetic, so that low bits tell nothing
[canonne2020].

    discrete Laplace:   P(k) = (1 - q) / (1 + q) q^abs(k),  q = exp(-1 / scale)
    discrete Gaussian:  P(k) ~ exp(-k^2 / (2 sigma^2))

Their randomness is the operating system's and cannot be seeded: **a draw is never replayed**. What
``add`` returns must be written once, atomically, before anything reads it; drawing again for the
same data is another release, with another entry in the ledger.

Real numbers, such as weighted votes, go through a :class:`FixedPointGrid` *unit by unit, before
they are summed*: the rounding is then part of what a unit contributes, and makes no norm larger.
The time that a draw takes depends on the noise; who can measure it is not covered.

[canonne2020] C. Canonne et al., The discrete Gaussian for differential privacy, NeurIPS 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, events

# Far from both ends of int64, whatever noise is added.
_LARGEST = 2**62
# 4 million contributions to one number stay below that.
_MOST_STEPS = 2**40
# Noise beyond it would mostly be cut off at the ends of int64.
_LARGEST_SCALE = 2.0**50


@dataclass(frozen=True)
class FixedPointGrid:
    """Multiples of ``step``: what one unit contributes, as whole numbers.

    Args:
        step: a power of two between 2^-900 and 2^900, chosen without looking at the data; less
            than it is lost a value and unit.

    Raises:
        PrivacyError: no such power of two.

    >>> grid = FixedPointGrid(0.25)
    >>> grid.steps([[0.6, -0.6], [1.0, 0.0]]).sum(axis=0)
    array([ 6, -2])
    >>> grid.values([6, -2])
    array([ 1.5, -0.5])
    """

    step: float

    def __post_init__(self) -> None:
        step = checks.number("step", self.step, at_least=2.0**-900, at_most=2.0**900)
        if math.frexp(step)[0] != 0.5:
            way_out = f"choose {2.0 ** math.floor(math.log2(step)):g}"
            raise PrivacyError("step", "a power of two", f"{step:g}", way_out)

    def steps(self, contributions: ArrayLike) -> np.ndarray:
        """trunc(contributions / step) as ``int64``: exact, and of no larger L1 or L2 norm.

        Sums of these over up to 4 million units are exact. A sensitivity c of the contributions is
        c / step (:meth:`in_steps`) for the sums. A sum of *reals* must not be rounded instead: that
        can move every value by a whole step more.

        Args:
            contributions: real numbers of any shape, below 2^40 steps in size.

        Raises:
            PrivacyError: values that are not finite or larger; none is shown, as they are private.
        """
        reals = np.asarray(contributions)
        if reals.dtype.kind not in "iuf":
            expected, found = "an array of real numbers", f"an array of {reals.dtype}"
            raise PrivacyError("contributions", expected, found, "correct it")
        # A division by a power of two is exact, or vanishes and is 0 steps either way.
        with np.errstate(over="ignore"):
            steps = reals.astype(np.float64) / self.step
        if not (np.abs(steps) <= _MOST_STEPS).all():  # false for nan
            expected = f"finite values of at most 2^40 steps, {_MOST_STEPS * self.step:g}"
            way_out = "clip every unit (privasr_k2.privacy.clipping), or choose a larger step"
            raise PrivacyError("contributions", expected, "others", way_out)
        return steps.astype(np.int64)  # towards zero

    def values(self, steps: ArrayLike) -> np.ndarray:
        """step * steps as float64; exact below 2^53 steps."""
        return whole_numbers("steps", steps, largest=2**63).astype(np.float64) * self.step

    def in_steps(self, sensitivity: float) -> float:
        """The L1 or L2 sensitivity of sums of :meth:`steps`, for contributions of this norm."""
        return checks.number("sensitivity", sensitivity, above=0) / self.step


@dataclass(frozen=True)
class DiscreteLaplaceNoise:
    """P(k) ~ exp(-abs(k) / scale) on every whole number, exact.

    Args:
        scale: above 0 and at most 2^50, in whole numbers or steps of a grid.

    >>> DiscreteLaplaceNoise(2.0).vector_event(l1_sensitivity=1.0)
    VectorLaplaceDpEvent(noise_multiplier=2.0)
    """

    scale: float

    def __post_init__(self) -> None:
        checks.number("scale", self.scale, above=0, at_most=_LARGEST_SCALE)

    def event(self, sensitivity: int) -> events.Event:
        """For *one* number that adding or removing one unit moves by at most ``sensitivity``."""
        return events.discrete_laplace(self.scale, sensitivity)

    def vector_event(self, *, l1_sensitivity: float) -> events.Event:
        """For all numbers together, whose L1 norm one unit moves by at most ``l1_sensitivity``."""
        norm = checks.number("l1_sensitivity", l1_sensitivity, above=0)
        return events.laplace_vector(self.scale / norm)

    def add(self, counts: ArrayLike) -> np.ndarray:
        """``counts`` with noise: fresh at every call, never to be replayed.

        Args:
            counts: whole numbers of an integer type, any shape, between -2^62 and 2^62.

        Returns:
            ``int64`` of the same shape. A result beyond int64 stays at its end: post-processing.

        Raises:
            PrivacyError: floats (see :class:`FixedPointGrid`), or numbers too large.

        >>> DiscreteLaplaceNoise(2.0).add([[3, 0], [12, 7]]).shape
        (2, 2)
        """
        return _add(counts, "make_laplace", self.scale)


@dataclass(frozen=True)
class DiscreteGaussianNoise:
    """P(k) ~ exp(-k^2 / (2 sigma^2)) on every whole number, exact.

    Args:
        sigma: above 0 and at most 2^50, in whole numbers or steps of a grid.

    >>> DiscreteGaussianNoise(5.0).event(2)
    DiscreteGaussianDpEvent(sigma=5.0, sensitivity=2)
    """

    sigma: float

    def __post_init__(self) -> None:
        checks.number("sigma", self.sigma, above=0, at_most=_LARGEST_SCALE)

    def event(self, sensitivity: int) -> events.Event:
        """For *one* number that adding or removing one unit moves by at most ``sensitivity``."""
        return events.discrete_gaussian(self.sigma, sensitivity)

    def vector_event(self, *, l2_sensitivity: float) -> events.Event:
        """For all numbers together, whose L2 norm one unit moves by at most ``l2_sensitivity``."""
        return events.discrete_gaussian_vector(self.sigma, l2_sensitivity)

    def add(self, counts: ArrayLike) -> np.ndarray:
        """``counts`` with noise, fresh at every call: as :meth:`DiscreteLaplaceNoise.add`.

        >>> DiscreteGaussianNoise(5.0).add([3, 0, 12]).dtype
        dtype('int64')
        """
        return _add(counts, "make_gaussian", self.sigma)


_Sampler: TypeAlias = Literal["make_laplace", "make_gaussian"]


def _add(counts: ArrayLike, make: _Sampler, scale: float) -> np.ndarray:
    numbers = whole_numbers("counts", counts, largest=_LARGEST)
    noisy = _sampler(make, scale)(numbers.reshape(-1).tolist())
    return np.array(noisy, dtype=np.int64).reshape(numbers.shape)


def _sampler(make: _Sampler, scale: float) -> Any:
    """OpenDP's measurement on a list of 64-bit integers."""
    # Here, because it takes a second.
    import opendp.prelude as opendp

    # For the whole process; it only lets these constructors be called.
    opendp.enable_features("contrib")
    l1, l2 = opendp.l1_distance(T="i64"), opendp.l2_distance(T="f64")
    distance = l1 if make == "make_laplace" else l2
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
    return getattr(opendp.m, make)(domain, distance, scale=float(scale))


def whole_numbers(name: str, values: ArrayLike, *, largest: int) -> np.ndarray:
    """``values`` as an array of an integer type, none beyond ``largest`` in size.

    Raises:
        PrivacyError: others; none is shown, as they are private.
    """
    array = np.asarray(values)
    if array.size == 0 and array.dtype.kind == "f":  # an empty list
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        found, way_out = f"an array of {array.dtype}", "give integers, or use a FixedPointGrid"
        raise PrivacyError(name, "an array of integers", found, way_out)
    if array.size and (int(array.max()) > largest or int(array.min()) < -largest):
        way_out = "clip every unit before the sum"
        raise PrivacyError(name, f"at most {largest} in size", "others", way_out)
    return array
