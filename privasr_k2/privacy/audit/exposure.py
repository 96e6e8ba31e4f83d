"""Exposure of canaries: how far up a planted secret stands among its alternatives [carlini2019].

A canary is a secret that was drawn uniformly out of a list of ``space`` candidates and planted as
one unit of the private data. Ranked by the model's loss (1 is the smallest),

    exposure = log2(space) - log2(rank)    bits, between 0 and log2(space).

Exposure itself is no epsilon. "The secret is among the ``top`` first" is a guess that comes true
with probability top / space where the secret was not planted, and two bounds follow:

- :func:`bound_over_runs`: one canary in each of several independent runs of the release.
- :func:`bound_in_one_run`: many canaries in one run. Their ranks come out of one model and are not
  independent, so exact intervals over them would be a heuristic; what holds is proven in that
  function's docstring. It pays for that by a factor of up to two in epsilon. Canaries that coins
  may leave out go to :mod:`privasr_k2.privacy.audit.one_run` instead, with their losses as scores.

[carlini2019] N. Carlini, C. Liu, Ú. Erlingsson, J. Kos and D. Song, The secret sharer: evaluating
and testing unintended memorization in neural networks, USENIX Security 2019.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import binom, skewnorm

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.audit import inputs
from privasr_k2.privacy.audit.bounds import AuditBound
from privasr_k2.privacy.audit.intervals import lower_end
from privasr_k2.privacy.audit.search import largest_rejected


def ranks(canary_losses: ArrayLike, candidate_losses: ArrayLike) -> np.ndarray:
    """The rank of each canary among its candidates, 1 for the smallest loss; ties count against the
    canary.

    With the worst rank of a tie no leak is seen that is not there: a model that gives all
    candidates one loss has told nothing.

    Args:
        canary_losses: (K,) loss, or log perplexity, of each canary.
        candidate_losses: (K, R - 1) losses of the candidates that were *not* drawn, for each canary
            its own; or a uniform sample of them, with R - 1 as its size and R as the ``space`` of
            all else here.

    Returns:
        (K,) between 1 and R.

    Raises:
        PrivacyError: NaN, or shapes that do not fit.

    >>> ranks([0.5, 2.0], [[1.0, 2.0, 0.7], [2.0, 1.0, 3.0]])
    array([1, 3])
    """
    canaries = inputs.scores("canary_losses", canary_losses)
    others = np.asarray(candidate_losses)
    if (
        others.dtype.kind not in "iuf"
        or others.ndim != 2
        or others.shape[0] != canaries.size
        or others.size == 0
    ):
        raise PrivacyError(
            "candidate_losses",
            f"shape ({canaries.size}, candidates) of numbers",
            f"an array of {others.dtype} of shape {others.shape}",
            "give each canary the losses of its own candidates",
        )
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


def extrapolated_exposure(canary_losses: ArrayLike, candidate_losses: ArrayLike) -> np.ndarray:
    """Exposure where the space is too large to rank: a skew normal is fitted to a sample of
    candidates.

        exposure = -log2 P[loss of a candidate <= loss of the canary]    [carlini2019, section 4.3]

    It may exceed the log2 of the sample's size, and rests on the fit: no bound on epsilon follows
    from it.

    Args:
        canary_losses: (K,).
        candidate_losses: (R,) losses of candidates that were not planted, shared by the canaries;
            100 or more, not all equal.

    Returns:
        (K,) bits, 0 or more; infinite where the fitted tail underflows.

    Raises:
        PrivacyError: NaN, infinite losses, or too few candidates to fit.
    """
    canaries = inputs.scores("canary_losses", canary_losses)
    sample = inputs.scores("candidate_losses", candidate_losses)
    if sample.size < 100 or not np.isfinite(sample).all() or np.ptp(sample) == 0:
        raise PrivacyError(
            "candidate_losses",
            "100 or more finite losses that are not all equal",
            f"{sample.size} between {sample.min():g} and {sample.max():g}",
            "rank the canaries instead",
        )
    return np.maximum(0.0, -skewnorm.logcdf(canaries, *skewnorm.fit(sample)) / math.log(2))


def bound_over_runs(
    rank: ArrayLike, *, space: int, top: int, delta: float, confidence: float
) -> AuditBound:
    """The bound of one canary in each of K independent runs of the release.

    Without the canary its secret is independent of the release, so it is among the first ``top``
    with probability chance = top / space, known exactly. For adding or removing one unit

        P[rank <= top] <= e^epsilon chance + delta    and    1 - chance <= e^epsilon P[rank > top] +
        delta

    and with rate_low, the one-sided lower end of P[rank <= top],

        epsilon_lower = max(0, ln((rate_low - delta) / chance), ln((1 - chance - delta) / (1 -
        rate_low))).

    Args:
        rank: (K,) from :func:`ranks`, each from a run of its own.
        space: number of candidates, the canary among them; 2 or more.
        top: fixed before the ranks were seen; between 1 and space - 1.

    Raises:
        PrivacyError: values outside their ranges.

    >>> found = bound_over_runs([1] * 30, space=1000, top=1, delta=0.0, confidence=0.95)
    >>> round(found.epsilon_lower, 2)
    6.81
    """
    made = _ranks(rank, space)
    chance = checks.whole("top", top, at_least=1, at_most=space - 1) / space
    inputs.delta(delta)
    error = 1 - inputs.confidence(confidence)

    def bound(successes: int) -> float:
        rate_low = float(lower_end(successes, made.size, error=error))
        found = max(rate_low - delta, 0.0) / chance, max(1 - chance - delta, 0.0) / (1 - rate_low)
        return math.log(max(1.0, *found))

    successes = int(np.count_nonzero(made <= top))
    return AuditBound(
        bound(successes), confidence, delta, bound(made.size), made.size, "exposure over runs"
    )


def bound_in_one_run(
    rank: ArrayLike, *, space: int, top: int, delta: float, confidence: float
) -> AuditBound:
    """The bound of K canaries in one run, each a unit of its own, drawn independently.

    The number W of canaries among their ``top`` first has, for adding or removing one unit,

        P[W >= v] <= P[Binomial(K, p) >= v] + K delta,    p = k e^(2 epsilon) / (k e^(2 epsilon) +
        space - k),

    with k = top. Proof. Let y be the release, r_i the secret of canary i, T its ``top`` first in y,
    and B the set of (y, r_1 ... r_(i-1)) for which P[r_i in T | y, r_1 ... r_(i-1)] > p. Let A =
    P[B] in a run without canary i, where r_i is independent of y. Then

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

    >>> found = bound_in_one_run([1] * 30, space=1000, top=1, delta=1e-6, confidence=0.95)
    >>> round(found.epsilon_lower, 2)
    4.58
    """
    made = _ranks(rank, space)
    checks.whole("top", top, at_least=1, at_most=space - 1)
    inputs.delta(delta)
    error = 1 - inputs.confidence(confidence)
    log_odds = math.log(top) - math.log(space - top)  # of a guess at random

    def rejected(successes: int) -> float:
        return largest_rejected(
            lambda epsilon: (
                float(binom.sf(successes - 1, made.size, expit(2 * epsilon + log_odds)))
                + made.size * delta
            ),
            error=error,
        )

    successes = int(np.count_nonzero(made <= top))
    return AuditBound(
        rejected(successes),
        confidence,
        delta,
        rejected(made.size),
        made.size,
        "exposure in one run",
    )


def _ranks(values: ArrayLike, space: int) -> np.ndarray:
    made = np.asarray(values)
    checks.whole("space", space, at_least=2)
    if made.dtype.kind not in "iu" or made.ndim != 1 or made.size == 0:
        raise PrivacyError(
            "rank",
            "ranks as integers of shape (K,)",
            f"an array of {made.dtype} of shape {made.shape}",
            "correct it",
        )
    wrong = np.flatnonzero((made < 1) | (made > space))
    if wrong.size:
        raise PrivacyError(
            f"rank[{wrong[0]}]",
            f"a rank between 1 and {space}",
            str(made[wrong[0]]),
            "count the canary in",
        )
    return made
