"""Exposure of canaries: the rank of a planted secret among its alternatives [carlini2019].

A canary is a secret drawn uniformly out of ``space`` candidates and planted as one unit of the
private data. Ranked by the model's loss (1 is the smallest),

    exposure = log2(space) - log2(rank)    bits, between 0 and log2(space).

[carlini2019] N. Carlini et al., The secret sharer: evaluating and testing unintended memorization
in neural networks, USENIX Security 2019.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import binom

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.audit import inputs
from privasr_k2.privacy.audit.bounds import AuditBound
from privasr_k2.privacy.audit.search import largest_rejected


def ranks(canary_losses: ArrayLike, candidate_losses: ArrayLike) -> np.ndarray:
    """The rank of each canary among its candidates, (K,): 1 for the smallest loss, ties last.

    Args:
        canary_losses: (K,) loss, or log perplexity, of each canary.
        candidate_losses: (K, R - 1) losses of each canary's candidates that were *not* drawn, or of
            a uniform sample of them; R is then the ``space`` of all else here.

    Raises:
        PrivacyError: NaN, or shapes that do not fit.

    >>> ranks([0.5, 2.0], [[1.0, 2.0, 0.7], [2.0, 1.0, 3.0]])
    array([1, 3])
    """
    canaries = inputs.scores("canary_losses", canary_losses)
    others = np.asarray(candidate_losses)
    fits = others.dtype.kind in "iuf" and others.ndim == 2 and len(others) == canaries.size
    if not fits or others.size == 0:
        place = "candidate_losses"
        found = f"an array of {others.dtype} of shape {others.shape}"
        way_out = "give each canary the losses of its own candidates"
        raise PrivacyError(place, f"shape ({canaries.size}, candidates) of numbers", found, way_out)
    others = inputs.without_nan("candidate_losses", others.astype(np.float64))
    return 1 + np.count_nonzero(others <= canaries[:, None], axis=1)


def exposure(rank: ArrayLike, *, space: int) -> np.ndarray:
    """log2(space) - log2(rank), in bits.

    Raises:
        PrivacyError: ranks that are no integers between 1 and ``space``.

    >>> exposure([1, 4, 1024], space=1024)
    array([10.,  8.,  0.])
    """
    return math.log2(checks.whole("space", space, at_least=2)) - np.log2(_ranks(rank, space))


def bound_in_one_run(
    rank: ArrayLike, *, space: int, top: int, delta: float, confidence: float
) -> AuditBound:
    """The bound of K canaries in one run, each a unit of its own, drawn independently.

    The number W of canaries among their ``top`` first has, for adding or removing one unit,

        P[W >= v] <= P[Binomial(K, p) >= v] + K delta,
        p = k e^(2 epsilon) / (k e^(2 epsilon) + space - k),    k = top.

    Proof. Let y be the release, r_i the secret of canary i, T its ``top`` first in y, and B the set
    of (y, r_1 ... r_(i-1)) for which P[r_i in T | y, r_1 ... r_(i-1)] > p. Let A = P[B] in a run
    without canary i, where r_i is independent of y. Then

        P[r_i in T, B] <= e^epsilon A k / space + delta
        A (1 - k / space) <= e^epsilon P[r_i not in T, B] + delta

    and, A eliminated, P[r_i in T, B] <= p P[B] + delta. So the chance of canary i exceeds p by at
    most delta on average. Coupled one canary after the other, W <= Binomial(K, p) + F where F
    counts the excess and P[F >= 1] <= K delta.

    Args:
        rank: (K,) from :func:`ranks`, all from one release.
        space: number of candidates, the canary among them; 2 or more.
        top: fixed before the ranks were seen; between 1 and space - 1.

    Raises:
        PrivacyError: values outside their ranges.

    >>> bound = bound_in_one_run([1] * 30, space=1000, top=1, delta=1e-6, confidence=0.95)
    >>> round(bound.epsilon_lower, 2)
    4.58
    """
    return _in_one_run(rank, space, top, delta, confidence, steps=2)


def bound_of_replacing(rank: ArrayLike, *, space: int, top: int, confidence: float) -> AuditBound:
    """The bound of K canaries in one run, for replacing one canary's secret by another, delta 0.

    As :func:`bound_in_one_run`, with one step between neighbours in place of two:

        P[W >= v] <= P[Binomial(K, p) >= v],    p = k e^epsilon / (k e^epsilon + space - k).

    Proof. Given r_1 ... r_(i-1), the density of y is f(y | r_i), as the other secrets are
    independent of r_i, and f(y | a) <= e^epsilon f(y | b) for all a and b. So the secrets in T have
    posterior odds of k e^epsilon / (space - k) at most, whatever y and r_1 ... r_(i-1) are.

    Args:
        rank, space, top: of :func:`bound_in_one_run`.

    Raises:
        PrivacyError: values outside their ranges.

    >>> bound = bound_of_replacing([1] * 30, space=1000, top=1, confidence=0.95)
    >>> round(bound.epsilon_lower, 2)
    9.16
    """
    return _in_one_run(rank, space, top, 0.0, confidence, steps=1)


def _in_one_run(
    rank: ArrayLike, space: int, top: int, delta: float, confidence: float, *, steps: int
) -> AuditBound:
    """Of odds of k e^(steps epsilon) / (space - k) for each canary at most."""
    checked = _ranks(rank, space)
    size = checked.size
    checks.whole("top", top, at_least=1, at_most=space - 1)
    inputs.delta(delta)
    error = 1 - inputs.confidence(confidence)
    log_odds = math.log(top) - math.log(space - top)  # of a guess at random

    def rejected(successes: int) -> float:
        def p_value(epsilon: float) -> float:
            tail = binom.sf(successes - 1, size, expit(steps * epsilon + log_odds))
            return float(tail) + size * delta

        return largest_rejected(p_value, error=error)

    lower = rejected(int(np.count_nonzero(checked <= top)))
    return AuditBound(lower, confidence, delta, rejected(size), size, "exposure in one run")


def _ranks(values: ArrayLike, space: int) -> np.ndarray:
    rank = np.asarray(values)
    checks.whole("space", space, at_least=2)
    if rank.dtype.kind not in "iu" or rank.ndim != 1 or rank.size == 0:
        actual = f"an array of {rank.dtype} of shape {rank.shape}"
        raise PrivacyError("rank", "ranks as integers of shape (K,)", actual, "correct it")
    for at in np.flatnonzero((rank < 1) | (rank > space)):
        expected = f"a rank between 1 and {space}"
        raise PrivacyError(f"rank[{at}]", expected, str(rank[at]), "count the canary in")
    return rank
