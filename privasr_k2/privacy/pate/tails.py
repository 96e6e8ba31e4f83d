"""Log probability that the noise of two counts closes a gap: log P[noise_i - noise_top >= gap].

Each function gives another one, from gaps (whole numbers from 0) to logarithms. With discrete noise
a gap that is just closed leaves a tie, which counts as lost. Sums run over the integers, as far as
a float shows terms beside the first one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr

from privasr_k2.privacy import checks

LogTail = Callable[[np.ndarray], np.ndarray]

# So many standard deviations further, terms are below e^-800 of the first.
_FAR = 40.0


def gaussian(sigma: float) -> LogTail:
    """1/2 erfc(gap / (2 sigma)): the difference of two normal numbers has the variance 2 sigma^2.

    >>> gaussian(1.0)(np.array([0.0, 2.0])).round(4)
    array([-0.6931, -2.5428])
    """
    sigma = checks.number("sigma", sigma, above=0)

    def log_tail(gaps: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray(log_ndtr(-(gaps / sigma) / np.sqrt(2.0)))

    return log_tail


def laplace(scale: float) -> LogTail:
    """(2 + x) / (4 e^x) with x = gap / scale [papernot2017, lemma 4].

    >>> laplace(1.0)(np.array([0.0, 2.0])).round(4)
    array([-0.6931, -2.    ])
    """
    scale = checks.number("scale", scale, above=0)
    return lambda gaps: np.log(2.0 + gaps / scale) - np.log(4.0) - gaps / scale


def discrete_gaussian(sigma: float) -> LogTail:
    """The difference of two discrete normal numbers: P[d] = exp(-d^2 / (4 sigma^2)) s_d / z^2.

    Completing the square leaves s_d = sum_k exp(-(k + d/2)^2 / sigma^2), which depends on whether d
    is even alone; z = sum_k exp(-k^2 / (2 sigma^2)).

    >>> discrete_gaussian(1.0)(np.array([0.0, 2.0])).round(4)
    array([-0.4446, -1.9714])
    """
    sigma = checks.number("sigma", sigma, above=0)
    integers = np.arange(-_reach(sigma), _reach(sigma) + 1.0)
    log_z = np.log(np.exp(-((integers / sigma) ** 2) / 2.0).sum())
    # Out of the sum: the largest term, which is exp(-1 / (4 sigma^2)) where d is odd.
    squares = [integers**2, integers * (integers + 1.0)]
    log_s = np.log([np.exp(-square / sigma / sigma).sum() for square in squares])

    def log_tail(gaps: np.ndarray) -> np.ndarray:
        difference = np.arange(gaps.max() + _reach(sigma) + 1.0)
        odd = difference.astype(np.int64) % 2
        squared = (difference / sigma / 2.0) ** 2 + odd * (0.5 / sigma) ** 2
        return _from_here(log_s[odd] - squared - 2.0 * log_z)[gaps.astype(np.int64)]

    return log_tail


def discrete_laplace(scale: float) -> LogTail:
    """The difference of two discrete Laplace numbers, with r = e^(-1 / scale), summed from the gap
    on.

        P[d] = ((1 - r) / (1 + r))^2 r^d (d + 1 + 2 r^2 / (1 - r^2))

    >>> discrete_laplace(1.0)(np.array([0.0, 2.0])).round(4)
    array([-0.446 , -1.7255])
    """
    scale = checks.number("scale", scale, above=0)
    r, rest = np.exp(-1.0 / scale), -np.expm1(-1.0 / scale)
    further = r / rest**2 + 2.0 * r**2 / (rest**2 * (1.0 + r))
    log_factor = 2.0 * np.log(rest / (1.0 + r))
    return lambda gaps: log_factor - gaps / scale + np.log((gaps + 1.0) / rest + further)


def discrete_gaussian_alone(sigma: float) -> LogTail:
    """log P[noise >= gap] for one discrete normal number: the check of one count.

    >>> discrete_gaussian_alone(1.0)(np.array([0.0, 1.0])).round(4)
    array([-0.3574, -1.2022])
    """
    sigma = checks.number("sigma", sigma, above=0)
    integers = np.arange(-_reach(sigma), _reach(sigma) + 1.0)
    log_z = np.log(np.exp(-((integers / sigma) ** 2) / 2.0).sum())

    def log_tail(gaps: np.ndarray) -> np.ndarray:
        values = np.arange(gaps.max() + _reach(sigma) + 1.0)
        return _from_here(-((values / sigma) ** 2) / 2.0 - log_z)[gaps.astype(np.int64)]

    return log_tail


def _reach(sigma: float) -> float:
    return float(np.ceil(_FAR * sigma) + 2.0)


def _from_here(log_probs: np.ndarray) -> np.ndarray:
    """log of the sum from each place to the end."""
    return np.logaddexp.accumulate(log_probs[::-1])[::-1]
