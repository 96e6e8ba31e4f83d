"""Gaussian and Laplace noise for sums of model updates, whose low bits tell nothing of the sum.

Noise that is drawn and added in floating point gives the input away: only some floats can be the
logarithm of a random number of 53 bits, and which they are depends on what they are added to
[mironov2012]. Here the noisy sum is rounded to a grid of a power of two that follows from the scale
of the noise alone,

    grid = 2^(floor(log2(scale)) - 8),    add(x) = grid * round((x + scale * z) / grid),

with ``scale`` = sigma for the Gaussian. A step of the grid is at most 1/256 of the scale, and adds
1.3e-6 or less to its variance.

What is argued. For real numbers x + scale * z is the mechanism of the event, and rounding it is
post-processing. For floats:

- x / grid is exact (a power of two), and so is splitting it into a whole number and the rest: only
  the rest, at most 1/2, is added to the noise, and whole numbers are added to whole numbers. No
  error depends on the size of x.
- z comes from uniforms in (0, 1] whose relative resolution is 2^-53 down to 2^-106. Beyond 12.1
  sigma (73.4 scales for the Laplace), which has probability 2^-106, it is coarser, and it ends at
  14.8 (110), where the ideal noise goes on.
- With logarithm, root, sine and cosine right to 4 units in the last place, z of the Gaussian errs
  by at most 2^-47 max(r, 1/r), r being the length of the pair it is drawn in, and z of the Laplace
  by 2^-50 plus 2^-50 times its size. Then the rounded value differs from that of the real mechanism
  with the same randomness in a share of draws below 2^-35, and up to 12.1 sigma (73.4 scales) the
  probability of any one result differs by a factor within 1 +- 2^-32.
- Every multiple of the grid up to there is reached from x, each by more than 2^36 pairs of
  uniforms.

Not proven: the errors of numpy's functions (tests compare them with 50-digit arithmetic), that
ChaCha20 cannot be told from randomness, and anything about the time that a call takes. The event
does not include the differences above. For D values of all rounds together, they add D * 2^-31 to
epsilon at worst (0.0005 for a million) and D * 2^-105 to delta; by advanced composition
[dwork2010, Theorem III.3], for 1e-10 of delta, no more than 2^-31 (sqrt(46.1 D) + D * 2^-31):
0.0005 for 20 million values in each of 1,000 rounds.

One unit must move the sum by no more than the sensitivity in floating point too: see
:mod:`privasr_k2.privacy.clipping`. The stream's secret and name must belong to these inputs alone:
the same noise on two sums cancels in their difference.

[dwork2010] C. Dwork, G. Rothblum, S. Vadhan, Boosting and differential privacy, FOCS 2010.
[mironov2012] I. Mironov, On significance of the least significant bits for differential privacy,
CCS 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, events
from privasr_k2.randomness import NoiseStream

_GRID_LOG2 = 8
# In steps of the grid: below it all sums are whole numbers that float64 holds.
_LARGEST = 2.0**50
_LEAST_SCALE, _LARGEST_SCALE = 1e-250, 1e250
# Values drawn at a time: a few arrays of 8 MB.
_BLOCK = 1_000_000


@dataclass(frozen=True, kw_only=True)
class GaussianNoise:
    """Noise with standard deviation ``noise_multiplier`` * ``l2_sensitivity`` on every value.

    Args:
        l2_sensitivity: the L2 norm by which adding or removing one unit can move the sum.

    Raises:
        PrivacyError: values of 0 or below, or out of range.

    >>> noise = GaussianNoise(noise_multiplier=1.5, l2_sensitivity=2.0)
    >>> noise.sigma, noise.grid
    (3.0, 0.0078125)
    >>> noise.event()
    GaussianDpEvent(noise_multiplier=1.5)
    """

    noise_multiplier: float
    l2_sensitivity: float

    def __post_init__(self) -> None:
        checks.number("noise_multiplier", self.noise_multiplier, above=0)
        checks.number("l2_sensitivity", self.l2_sensitivity, above=0)
        checks.number("sigma", self.sigma, at_least=_LEAST_SCALE, at_most=_LARGEST_SCALE)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise."""
        return self.noise_multiplier * self.l2_sensitivity

    @property
    def grid(self) -> float:
        """Grid step: every result is a multiple of it."""
        return _grid(self.sigma)

    def event(self) -> events.Event:
        """Event of one call of :meth:`add`, for all values of one sum together."""
        return events.gaussian(self.noise_multiplier)

    def add(self, vector: ArrayLike, stream: NoiseStream) -> np.ndarray:
        """``vector`` with noise, rounded to :attr:`grid`.

        Args:
            vector: float16 to float64 of any shape; below 2^50 grids.
            stream: of :func:`privasr_k2.randomness.noise_stream`; is moved on.

        Returns:
            float64 of the same shape.

        Raises:
            PrivacyError: whole numbers (see :mod:`privasr_k2.privacy.discrete`), values that are
                not finite or too large, or a generator whose numbers can be guessed.

        >>> from privasr_k2.randomness import new_secret, noise_stream
        >>> noise = GaussianNoise(noise_multiplier=1.5, l2_sensitivity=2.0)
        >>> noise.add(np.zeros((2, 3)), noise_stream(new_secret(), "doctest")).shape
        (2, 3)
        """
        checked = unpredictable(stream)
        return _add(vector, lambda count: standard_normal(checked, count), self.sigma)

    def add_drawn(self, vector: ArrayLike, normal: np.ndarray) -> np.ndarray:
        """As :meth:`add` with normal values that are drawn already.

        Args:
            normal: one for each value of ``vector``, from :func:`standard_normal_vector`, or
                correlated as :mod:`privasr_k2.privacy.correlated` has it, whose event then holds.

        >>> noise = GaussianNoise(noise_multiplier=1.5, l2_sensitivity=2.0)
        >>> noise.add_drawn(np.zeros(2), np.array([1.0, -0.5]))
        array([ 3. , -1.5])
        """
        values = iter(np.split(normal, range(_BLOCK, len(normal), _BLOCK)))
        return _add(vector, lambda count: next(values), self.sigma)


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise:
    """Noise with density exp(-abs(x) / scale) / (2 scale) on every value.

    Args:
        scale: the standard deviation is sqrt(2) times that.
        l1_sensitivity: the L1 norm by which adding or removing one unit can move the sum.

    Raises:
        PrivacyError: values of 0 or below, or out of range.

    >>> LaplaceNoise(scale=4.0, l1_sensitivity=2.0).event()
    VectorLaplaceDpEvent(noise_multiplier=2.0)
    """

    scale: float
    l1_sensitivity: float

    def __post_init__(self) -> None:
        checks.number("scale", self.scale, at_least=_LEAST_SCALE, at_most=_LARGEST_SCALE)
        checks.number("l1_sensitivity", self.l1_sensitivity, above=0)

    @property
    def grid(self) -> float:
        """Grid step: every result is a multiple of it."""
        return _grid(self.scale)

    def event(self) -> events.Event:
        """Event of one call of :meth:`add`, for all values of one sum together."""
        return events.laplace_vector(self.scale / self.l1_sensitivity)

    def add(self, vector: ArrayLike, stream: NoiseStream) -> np.ndarray:
        """``vector`` with noise, rounded to :attr:`grid`: as :meth:`GaussianNoise.add`."""
        checked = unpredictable(stream)
        return _add(vector, lambda count: _standard_laplace(checked, count), self.scale)


def _grid(scale: float) -> float:
    _, exponent = math.frexp(scale)  # scale = m * 2^exponent with 0.5 <= m < 1
    return math.ldexp(1.0, exponent - 1 - _GRID_LOG2)


def unpredictable(stream: NoiseStream) -> NoiseStream:
    """``stream`` itself.

    Raises:
        PrivacyError: another generator, whose numbers can be guessed.
    """
    if not isinstance(stream, NoiseStream):
        way_out = "make one by privasr_k2.randomness.noise_stream: other generators can be guessed"
        raise PrivacyError("stream", "a NoiseStream", type(stream).__name__, way_out)
    return stream


def _add(vector: ArrayLike, draw: Callable[[int], np.ndarray], scale: float) -> np.ndarray:
    array = np.asarray(vector)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        found, way_out = f"an array of {array.dtype}", "whole numbers take discrete noise"
        raise PrivacyError("vector", "an array of floats", found, way_out)
    grid = _grid(scale)
    flat = array.reshape(-1).astype(np.float64)
    # The comparison is false for nan. No value is shown: they are private.
    if not (np.abs(flat) <= _LARGEST * grid).all():
        expected = f"finite values of at most {_LARGEST * grid:g}"
        way_out = "clip every unit before the sum (privasr_k2.privacy.clipping)"
        raise PrivacyError("vector", expected, "others", way_out)
    noisy = np.empty_like(flat)
    for start in range(0, len(flat), _BLOCK):
        steps = flat[start : start + _BLOCK] / grid
        whole = np.rint(steps)
        moved = whole + np.rint(steps - whole + draw(len(steps)) * (scale / grid))
        # A zero has no sign: -0.0 would tell that the sum was negative.
        noisy[start : start + _BLOCK] = (moved + 0.0) * grid
    return noisy.reshape(array.shape)


def standard_normal_vector(stream: NoiseStream, size: int) -> np.ndarray:
    """The normal values of :meth:`GaussianNoise.add` for ``size`` values, for ``add_drawn``."""
    values, checked = np.empty(size), unpredictable(stream)
    for start in range(0, size, _BLOCK):
        values[start : start + _BLOCK] = standard_normal(checked, min(_BLOCK, size - start))
    return values


def standard_normal(stream: NoiseStream, count: int) -> np.ndarray:
    """Normal values by Box and Muller's transform: two from a length and an angle.

    Not to be added to anything private as they are: :class:`GaussianNoise` rounds what comes out.
    """
    pairs = (count + 1) // 2
    length = np.sqrt(-2.0 * np.log(_positive_uniform(stream, pairs)))
    angle = 2.0 * np.pi * stream.uniform(pairs)
    return np.concatenate([length * np.cos(angle), length * np.sin(angle)])[:count]


def _standard_laplace(stream: NoiseStream, count: int) -> np.ndarray:
    """An exponential with a random sign."""
    size = -np.log(_positive_uniform(stream, count))
    return np.where(stream.uniform(count) < 0.5, -size, size)


def _positive_uniform(stream: NoiseStream, count: int) -> np.ndarray:
    """Floats in (0, 1] of 159 random bits each: small ones have as high a relative resolution."""
    high, middle, low = stream.uniform((3, count))
    return high + (middle + (1.0 - low) * 2.0**-53) * 2.0**-53
