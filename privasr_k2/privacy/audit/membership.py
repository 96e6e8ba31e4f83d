"""Membership inference against one model: ROC, area, and true positives where false ones are rare.

Scores are larger where an example seems to be a member. The figures describe *this* model on two
populations, whose examples count as independent draws [carlini2022]. No bound on epsilon follows,
as members of one model are not independent: see :mod:`privasr_k2.privacy.audit.threshold` and
:mod:`privasr_k2.privacy.audit.one_run`.

[carlini2022] N. Carlini et al., Membership inference attacks from first principles, IEEE S&P 2022.
[hoeffding1963] W. Hoeffding, Probability inequalities for sums of bounded random variables, JASA 58
(1963).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.privacy import checks
from privasr_k2.privacy.audit import inputs
from privasr_k2.privacy.audit.intervals import Interval, clopper_pearson, upper_end


@dataclass(frozen=True)
class Roc:
    """Counts for every threshold, from "nobody is a member" to "everybody is".

    Attributes:
        thresholds: (K,) falling, the first infinite; members are those at or above it.
        true_positives: (K,) of ``members``.
        false_positives: (K,) of ``non_members``.
    """

    thresholds: np.ndarray
    true_positives: np.ndarray
    false_positives: np.ndarray
    members: int
    non_members: int

    @property
    def tpr(self) -> np.ndarray:
        """(K,) true-positive rates."""
        return self.true_positives / self.members

    @property
    def fpr(self) -> np.ndarray:
        """(K,) false-positive rates."""
        return self.false_positives / self.non_members

    @property
    def auc(self) -> float:
        """Chance that a member's score is above a non-member's, a tie counting half."""
        heights = (self.tpr[1:] + self.tpr[:-1]) / 2
        return float(np.sum(np.diff(self.fpr) * heights))


def roc(member_scores: ArrayLike, non_member_scores: ArrayLike) -> Roc:
    """The receiver operating characteristic over all distinct scores.

    Raises:
        PrivacyError: no scores of a kind, or NaN.

    >>> curve = roc([3, 2, 2], [2, 1])
    >>> curve.thresholds, curve.true_positives, curve.false_positives
    (array([inf,  3.,  2.,  1.]), array([0, 1, 3, 3]), array([0, 0, 1, 2]))
    >>> round(curve.auc, 4)
    0.8333
    """
    members, others = _both(member_scores, non_member_scores)
    every = np.concatenate([members, others])
    falling = np.argsort(-every, kind="stable")
    ordered = every[falling]
    last_of_tie = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), every.size - 1)
    true_positives = np.cumsum(falling < members.size)[last_of_tie]
    return Roc(
        np.append(np.inf, ordered[last_of_tie]),
        np.append(0, true_positives),
        np.append(0, last_of_tie + 1 - true_positives),
        members.size,
        others.size,
    )


def auc_interval(curve: Roc, *, confidence: float) -> Interval:
    """An interval of the populations' area, by Hoeffding's inequality [hoeffding1963, section 5b].

    The area is a mean over pairs, of which min(M, N) are disjoint:

        half width = sqrt(ln(2 / (1 - confidence)) / (2 min(M, N))).

    >>> auc_interval(roc(range(50, 150), range(100)), confidence=0.95).low < 0.8
    True
    """
    error = 1 - inputs.confidence(confidence)
    width = math.sqrt(math.log(2 / error) / (2 * min(curve.members, curve.non_members)))
    return Interval(max(0.0, curve.auc - width), min(1.0, curve.auc + width), confidence)


@dataclass(frozen=True)
class LowFprPoint:
    """True positives at a threshold that only few non-members exceed.

    Attributes:
        threshold: examples with a score *above* it are called members.
        tpr: interval of the true-positive rate.
        fpr_high: upper end of the population's false-positive rate; it errs with probability at
            most 1 - confidence.
    """

    threshold: float
    true_positives: int
    members: int
    false_positives: int
    non_members: int
    tpr: Interval
    fpr_high: float


def at_low_fpr(
    member_scores: ArrayLike, non_member_scores: ArrayLike, *, fpr: float, confidence: float
) -> LowFprPoint | None:
    """The true positives at the lowest threshold that at most ``fpr`` of the non-members exceed.

    The threshold is the (floor(fpr N) + 1)th largest score of a non-member. Members have no part in
    its choice, so that Clopper and Pearson's interval holds for them. It holds for the non-members
    too, by order statistics: the population's rate above the (b + 1)th largest of N is
    Beta(b + 1, N - b), or less where scores are tied.

    Returns:
        ``None`` where N fpr < 1: so few non-members cannot show a rate that low.

    Raises:
        PrivacyError: no scores, NaN, or ``fpr`` or ``confidence`` not inside (0, 1).

    >>> point = at_low_fpr(range(1, 201), range(100), fpr=0.01, confidence=0.95)
    >>> point.threshold, point.true_positives, point.false_positives, round(point.fpr_high, 3)
    (98.0, 102, 1, 0.047)
    """
    members, others = _both(member_scores, non_member_scores)
    checks.number("fpr", fpr, above=0, below=1)
    error = 1 - inputs.confidence(confidence)
    allowed = math.floor(fpr * others.size * (1 + 1e-12))  # 0.001 of 1000 is 1, whatever floats say
    if allowed < 1:
        return None
    threshold = np.partition(others, others.size - 1 - allowed)[others.size - 1 - allowed]
    true_positives = int(np.count_nonzero(members > threshold))
    return LowFprPoint(
        float(threshold),
        true_positives,
        members.size,
        int(np.count_nonzero(others > threshold)),
        others.size,
        clopper_pearson(true_positives, members.size, confidence=confidence),
        float(upper_end(allowed, others.size, error=error)),
    )


def _both(member_scores: ArrayLike, non_member_scores: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    others = inputs.scores("non_member_scores", non_member_scores)
    return inputs.scores("member_scores", member_scores), others
