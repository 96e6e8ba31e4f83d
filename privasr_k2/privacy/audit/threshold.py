"""The bound on epsilon of scores from independent runs of a release.

Each score comes from a run of its own: the whole release with the unit, or without it. The rule is
"the unit was there if the score is at least the threshold". A threshold chosen on the trials that
are counted would overstate the bound, so the trials are split.
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
        scores_with: (P,) scores of runs with the unit, larger where it seems to be there; P >= 2,
            in the order of the runs, not sorted by score.
        scores_without: (N,) scores of runs without it; N >= 2.

    Raises:
        PrivacyError: fewer than two scores of a kind, NaN, or delta or confidence out of range.

    >>> from privasr_k2.randomness import stream
    >>> noise = stream(1, "runs").normal(size=(2, 4000))
    >>> bound = split_bound(1 + noise[0], noise[1], delta=0.0, confidence=0.95)
    >>> 0.8 < bound.epsilon_lower < bound.largest_possible, bound.trials
    (True, 4000)
    """
    named = {"scores_with": scores_with, "scores_without": scores_without}
    both = [inputs.scores(name, scores) for name, scores in named.items()]
    setting = {"delta": inputs.delta(delta), "confidence": inputs.confidence(confidence)}
    for name, scores in zip(named, both):
        if scores.size < 2:
            raise PrivacyError(name, "two scores or more, to be split", "1", "run more releases")
    first = [scores[: scores.size // 2] for scores in both]
    threshold = best_threshold(first[0], first[1], **setting)
    with_unit, without = (scores[scores.size // 2 :] for scores in both)
    return bound_from_counts(
        true_positives=int(np.count_nonzero(with_unit >= threshold)),
        positives=with_unit.size,
        false_positives=int(np.count_nonzero(without >= threshold)),
        negatives=without.size,
        method="threshold on half the runs",
        **setting,
    )


def best_threshold(
    scores_with: np.ndarray, scores_without: np.ndarray, *, delta: float, confidence: float
) -> float:
    """The threshold with the largest bound on these scores; take other scores for a valid bound.

    Raises:
        PrivacyError: NaN or nothing to choose from.
    """
    every = [inputs.scores("with", scores_with), inputs.scores("without", scores_without)]
    cuts = np.unique(np.concatenate(every))
    bounds = epsilon_lower(
        scores_with.size - np.searchsorted(np.sort(scores_with), cuts),
        scores_without.size - np.searchsorted(np.sort(scores_without), cuts),
        positives=scores_with.size,
        negatives=scores_without.size,
        delta=delta,
        confidence=confidence,
    )
    return float(cuts[np.argmax(bounds)])
