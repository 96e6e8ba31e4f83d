"""Upper bound log_q on the log probability that noise changes the outcome of a vote.

For a histogram n with the largest count n_top, by a union bound over the other classes

    q = sum_{i != top} P[noise_i - noise_top >= n_top - n_i],

[papernot2018, proposition 7] with Gaussian noise and [papernot2017, lemma 4] with Laplace noise;
with discrete noise the same sum. As the most likely of C classes has probability 1/C or more, q is
never above 1 - 1/C. Probabilities depend on the gap n_top - n_i alone and come from a table. Sums
run in log space, since q is often far below the smallest float.

References: see :mod:`privasr_k2.privacy.pate`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.pate import tails

# Counts in one block: so few that gaps and their probabilities (2 MB each) stay in the cache.
_BLOCK = 250_000
# Gaps above this (more teachers than anybody has) are evaluated one by one.
_LARGEST_TABLE = 1 << 20


def gnmax_log_q(votes: ArrayLike, *, sigma: float, discrete: bool) -> np.ndarray:
    """log_q of the largest count after Gaussian noise on every count [papernot2018, proposition 7].

        q = 1/2 sum_{i != top} erfc((n_top - n_i) / (2 sigma))

    Args:
        votes: (Q, C) whole numbers.
        discrete: whether the noise is discrete Gaussian; its sums stand in the place of erfc.

    Returns:
        (Q,) natural logarithms, below 0.

    Raises:
        PrivacyError: no counts, an empty histogram, sigma of 0 or below.

    >>> gnmax_log_q([[10, 0, 0], [5, 5, 0]], sigma=2.0, discrete=False).round(4)
    array([-7.8068, -0.6189])
    """
    log_tail = tails.discrete_gaussian(sigma) if discrete else tails.gaussian(sigma)
    return log_q_by_gap(checked_votes(votes), log_tail)


def lnmax_log_q(votes: ArrayLike, *, scale: float, discrete: bool) -> np.ndarray:
    """log_q of the largest count after Laplace noise on every count [papernot2017, lemma 4].

        q = sum_{i != top} (2 + gap_i) / (4 exp(gap_i)),    gap_i = (n_top - n_i) / scale

    Args:
        scale: b of the density ``exp(-|x| / b) / (2 b)``, in votes (1/gamma of the paper).
        votes, discrete: as of :func:`gnmax_log_q`.

    >>> lnmax_log_q([[10, 0, 0], [5, 5, 0]], scale=2.0, discrete=False).round(4)
    array([-3.7472, -0.5237])
    """
    log_tail = tails.discrete_laplace(scale) if discrete else tails.laplace(scale)
    return log_q_by_gap(checked_votes(votes), log_tail)


def threshold_log_q(
    largest: np.ndarray, *, threshold: float, sigma: float, discrete: bool
) -> np.ndarray:
    """log_q of the check whether the largest count and Gaussian noise reach a threshold.

        p = P[largest + noise >= threshold],    q = min(p, 1 - p)

    Exact, not a bound: there are two outcomes, and q is the probability of the unlikely one.

    Args:
        largest: (Q,) the largest count of each query, whole numbers.

    Returns:
        (Q,) natural logarithms, at most log 1/2.

    Raises:
        PrivacyError: sigma of 0 or below, or a threshold that is no finite number.

    >>> threshold_log_q(np.array([10, 5]), threshold=8, sigma=2.0, discrete=False).round(4)
    array([-1.841 , -2.7059])
    """
    threshold = checks.number("threshold", threshold)
    sigma = checks.number("sigma", sigma, above=0)
    missing = threshold - largest
    if not discrete:
        return np.asarray(log_ndtr(-np.abs(missing) / sigma))
    # Noise of `needed` or more reaches the threshold: the unlikely outcome from 1 on. Else its
    # opposite is, noise of `needed - 1` or less, as likely as noise of `1 - needed` or more.
    needed = np.ceil(missing)
    return tails.discrete_gaussian_alone(sigma)(np.where(needed >= 1, needed, 1 - needed))


def checked_votes(votes: ArrayLike) -> np.ndarray:
    """(Q, C) whole numbers of one query or more.

    Raises:
        PrivacyError: as :func:`privasr_k2.privacy.checks.histograms`, and where there is no query.
    """
    checked = checks.histograms("votes", votes)
    if len(checked) == 0:
        way_out = "what was not asked has no cost to compute"
        raise PrivacyError("votes", "one query or more", "none", way_out)
    return checked


def log_q_by_gap(votes: np.ndarray, log_tail: tails.LogTail) -> np.ndarray:
    """log_q of checked votes (Q, C); ``log_tail`` gives log P[a class with this gap overtakes]."""
    largest = np.int64(votes.max())
    table = log_tail(np.arange(largest + 1.0)) if largest <= _LARGEST_TABLE else None
    rows = max(1, _BLOCK // votes.shape[1])
    log_q = np.empty(len(votes))
    for start in range(0, len(votes), rows):
        block = votes[start : start + rows]
        at = np.arange(len(block)), block.argmax(axis=1)
        gaps = (block[at][:, None] - block).astype(np.intp)  # (B, C)
        wide = gaps.astype(np.float64)
        log_tails = log_tail(wide) if table is None else table.take(gaps, mode="clip")
        log_tails[at] = -np.inf
        log_q[start : start + rows] = _log_sum(log_tails)
    return np.minimum(log_q, np.log1p(-1.0 / votes.shape[1]))


def _log_sum(logs: np.ndarray) -> np.ndarray:
    """log sum exp over the last axis; overwrites its argument. Rows of -inf stay -inf."""
    largest = np.maximum(logs.max(axis=1), -1e300)
    logs -= largest[:, None]
    np.exp(logs, out=logs)
    with np.errstate(divide="ignore"):
        return np.asarray(largest + np.log(logs.sum(axis=1)))
