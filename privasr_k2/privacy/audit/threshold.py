"""The bound on epsilon of scores from independent runs of a release: where to put the threshold,
honestly.

Each score comes from a run of its own: the whole release with the unit, or without it. The rule is
"the unit was there if the score is at least the threshold". A threshold that is chosen on the very
trials whose counts then give the bound overstates it; so either the trials are split
(:func:`split_bound`), or a few thresholds are fixed beforehand and share the confidence
(:func:`bound_over_thresholds`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit import inputs
from privasr_k2.privacy.audit.bounds import AuditBound
from privasr_k2.privacy.audit.intervals import bound_from_counts, epsilon_lower


def split_bound(
    scores_with: ArrayLike, scores_without: ArrayLike, *, delta: float, confidence: float
) -> AuditBound:
    """The bound on the second half of the runs, at the threshold that was best on the first half.

    Args:
        scores_with: (P,) scores of runs with the unit, larger where it seems to have been there; P
            >= 2, in the order of the runs, which must not have been sorted by score.
        scores_without: (N,) scores of runs without it; N >= 2.

    Raises:
        PrivacyError: fewer than two scores of a kind, NaN, or a delta or confidence outside its
            range.

    >>> from privasr_k2.randomness import stream
    >>> noise = stream(1, "runs").normal(size=(2, 4000))
    >>> found = split_bound(1 + noise[0], noise[1], delta=0.0, confidence=0.95)
    >>> 0.8 < found.epsilon_lower < found.largest_possible, found.trials
    (True, 4000)
    """
    with_unit, without = (
        inputs.scores("scores_with", scores_with),
        inputs.scores("scores_without", scores_without),
    )
    inputs.delta(delta)
    inputs.confidence(confidence)
    for name, made in (("scores_with", with_unit), ("scores_without", without)):
        if made.size < 2:
            raise PrivacyError(
                name, "two scores or more, to be split", "1", "run the release more often"
            )
    half_with, half_without = with_unit.size // 2, without.size // 2
    threshold = best_threshold(
        with_unit[:half_with], without[:half_without], delta=delta, confidence=confidence
    )
    return _bound_at(
        threshold,
        with_unit[half_with:],
        without[half_without:],
        delta,
        confidence,
        "threshold on half the runs",
    )


def bound_over_thresholds(
    scores_with: ArrayLike,
    scores_without: ArrayLike,
    thresholds: ArrayLike,
    *,
    delta: float,
    confidence: float,
) -> AuditBound:
    """The largest bound of K thresholds, each at the confidence 1 - (1 - confidence) / K.

    By the union bound over the thresholds none of the K bounds is wrong with more than 1 -
    confidence.

    Args:
        scores_with: (P,) scores of runs with the unit, larger where it seems to have been there.
        scores_without: (N,) scores of runs without it.
        thresholds: (K,) fixed before these scores were seen.

    Raises:
        PrivacyError: nothing to count, NaN, or a delta or confidence outside its range.
    """
    with_unit, without = (
        inputs.scores("scores_with", scores_with),
        inputs.scores("scores_without", scores_without),
    )
    fixed = inputs.scores("thresholds", thresholds)
    inputs.delta(delta)
    each = 1 - (1 - inputs.confidence(confidence)) / fixed.size
    bounds = [_bound_at(cut, with_unit, without, delta, each, "fixed thresholds") for cut in fixed]
    best = max(bounds, key=lambda bound: bound.epsilon_lower)
    return AuditBound(
        best.epsilon_lower,
        confidence,
        delta,
        best.largest_possible,
        best.trials,
        "fixed thresholds",
    )


def best_threshold(
    scores_with: np.ndarray, scores_without: np.ndarray, *, delta: float, confidence: float
) -> float:
    """The threshold with the largest bound on these scores.

    Its bound on the same scores is not valid: take others.

    Raises:
        PrivacyError: NaN or nothing to choose from.
    """
    cuts = np.unique(
        np.concatenate(
            [inputs.scores("with", scores_with), inputs.scores("without", scores_without)]
        )
    )
    true_positives = scores_with.size - np.searchsorted(np.sort(scores_with), cuts)
    false_positives = scores_without.size - np.searchsorted(np.sort(scores_without), cuts)
    bounds = epsilon_lower(
        true_positives,
        false_positives,
        positives=scores_with.size,
        negatives=scores_without.size,
        delta=delta,
        confidence=confidence,
    )
    return float(cuts[np.argmax(bounds)])


def _bound_at(
    threshold: float,
    with_unit: np.ndarray,
    without: np.ndarray,
    delta: float,
    confidence: float,
    method: str,
) -> AuditBound:
    return bound_from_counts(
        true_positives=int(np.count_nonzero(with_unit >= threshold)),
        positives=with_unit.size,
        false_positives=int(np.count_nonzero(without >= threshold)),
        negatives=without.size,
        delta=delta,
        confidence=confidence,
        method=method,
    )
