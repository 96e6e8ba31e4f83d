"""Does a teacher's vote show in the labels that were released? Lower bounds on epsilon.

The two data sets differ in one unit, for which one teacher votes otherwise, or abstains, in every
query. The attack makes that vote count most: the other votes are tied, or at the threshold below
which nothing is answered. The code that is run is that of the release. Labels that speak for the
first histogram come at rates between exact ends p_low and q_high
(:mod:`privasr_k2.privacy.audit.two_histograms`). Then

- *one answer* has ln((p_low - delta) / q_high), and the same of the other labels;
- *a whole release* of Q answers, whose noises are independent, has the epsilon at which
  Binomial(Q, p_low) and Binomial(Q, q_high) are (epsilon, delta)-indistinguishable: the counts of
  such labels are at least as far apart. (Coins of two chances between q and p come out of the
  answers' own coins, p > q, by turning some over again: p_low and q_high only make it less.)

An audit counts only beside the same attack on the release with the noise divided, which must exceed
the claim, and without noise (:mod:`privasr_k2.privacy.audit.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from privasr_k2.attack.settings import VoteAuditConfig
from privasr_k2.errors import PrivacyError
from privasr_k2.plugins import Registry
from privasr_k2.privacy import checks
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.audit.bounds import AuditBound, judged
from privasr_k2.privacy.audit.intervals import bound_from_counts, lower_end, upper_end
from privasr_k2.privacy.audit.search import largest_rejected
from privasr_k2.privacy.audit.two_histograms import event_counts
from privasr_k2.privacy.events import Event
from privasr_k2.privacy.pate.mechanisms import TWO_HISTOGRAMS
from privasr_k2.privacy.pate.sensitivity import Change

#: (Q, C) votes and a share of the noise to (Q,) labels, whole numbers; -1: not answered. A share of
#: 1 is the release, 0 has no noise.
Answers = Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class VoteClaim:
    """The claim of a release of labels: events of one answer, and of all, ``answers`` at most."""

    one: Event
    all: Event
    answers: int
    delta: float
    relation: Relation


def neighbours(
    teachers: int, threshold: int | None = None, change: Change = Change.MOVES
) -> tuple[np.ndarray, np.ndarray]:
    """Two histograms (2,) of two classes: a vote of the first is moved to the second, or missing.

    Args:
        threshold: of the largest count, which falls below it in the second; None: about tied.

    Raises:
        PrivacyError: no teacher, or a threshold that no count can reach or that is always reached.

    >>> neighbours(15)
    (array([8, 7]), array([7, 8]))
    >>> neighbours(15, threshold=11), neighbours(15, change=Change.GIVEN)
    ((array([11,  4]), array([10,  5])), (array([8, 7]), array([7, 7])))
    """
    checks.whole("teachers", teachers, at_least=1)
    if threshold is not None and not teachers / 2 + 1 <= threshold <= teachers:
        expected = f"between {teachers / 2 + 1:g} and {teachers}"
        raise PrivacyError("threshold", expected, str(threshold), "audit the tie")
    first = (teachers + 1) // 2 if threshold is None else threshold
    second = teachers - first + (change is Change.MOVES)
    return np.array([first, teachers - first]), np.array([first - 1, second])


def audit_votes(
    answers: Answers, pair: tuple[np.ndarray, np.ndarray], claim: VoteClaim, config: VoteAuditConfig
) -> dict[str, Any]:
    """Both audits on a pair of histograms of :func:`neighbours`, as plain values."""
    shares = {"sound": 1.0, "broken": 1 / config.broken, "noise_free": 0.0}
    bounds = {name: _bounds(answers, pair, share, claim, config) for name, share in shares.items()}
    of_one, of_all = ({name: both[n] for name, both in bounds.items()} for n in (0, 1))

    def against(bounds: dict[str, AuditBound], event: Event) -> dict[str, Any]:
        epsilon = account(event, claim.relation, claim.delta).value
        return judged(bounds, claimed_epsilon=epsilon, claimed_delta=claim.delta)

    return {
        "histograms": [pair[0].tolist(), pair[1].tolist()],
        "one_answer": against(of_one, claim.one),
        "whole_release": {"answers": claim.answers, **against(of_all, claim.all)},
    }


#: Audits of mechanisms, by the name that a mechanism gives; all are called as :func:`audit_votes`.
AUDITS = Registry[Callable[..., dict[str, Any]]]("audit")
AUDITS.add(TWO_HISTOGRAMS, audit_votes)


def _bounds(
    answers: Answers,
    pair: tuple[np.ndarray, np.ndarray],
    share: float,
    claim: VoteClaim,
    config: VoteAuditConfig,
) -> tuple[AuditBound, AuditBound]:
    """Of one answer, and of all."""
    half, given = config.draws // 2, {"delta": claim.delta, "confidence": config.confidence}
    first, second = (answers(np.tile(histogram, (config.draws, 1)), share) for histogram in pair)
    counts = event_counts(first, second, **given)
    of_one = bound_from_counts(
        true_positives=counts[0], positives=half, false_positives=counts[1], negatives=half,
        method="two histograms", **given,
    )  # fmt: skip
    return of_one, composed_bound(*counts, draws=half, answers=claim.answers, **given)


def composed_bound(
    first: int, second: int, *, draws: int, answers: int, delta: float, confidence: float
) -> AuditBound:
    """The bound of independent answers, from an event's counts in ``draws`` of each histogram.

    >>> bound = composed_bound(600, 400, draws=1000, answers=100, delta=1e-5, confidence=0.95)
    >>> 6 < bound.epsilon_lower < 100 * 0.41
    True
    """
    error = (1 - confidence) / 2

    def bound(true: int, false: int) -> float:
        low, high = lower_end(true, draws, error=error), upper_end(false, draws, error=error)
        return coins_epsilon(float(low), float(high), answers, delta)

    lower, method = bound(first, second), "two histograms, composed"
    return AuditBound(lower, confidence, delta, bound(draws, 0), 2 * draws, method)


def coins_epsilon(first: float, second: float, flips: int, delta: float) -> float:
    """The epsilon at which ``flips`` coins of two chances are (epsilon, delta)-indistinguishable.

    With P and Q the two binomials it is where the larger of sum(max(0, P - e^epsilon Q)) and the
    same of Q and P comes down to delta; 0 where the first chance is not above the second.

    >>> bool(round(coins_epsilon(0.75, 0.25, 2, 0.0), 6) == round(2 * np.log(3), 6))
    True
    """
    if first <= second:
        return 0.0
    heads = np.arange(flips + 1)
    log_p, log_q = binom.logpmf(heads, flips, first), binom.logpmf(heads, flips, second)

    def beyond(epsilon: float) -> float:
        """Minus the larger hockey-stick divergence: it rises with epsilon."""
        return -max(_hockey_stick(log_p, log_q, epsilon), _hockey_stick(log_q, log_p, epsilon))

    if delta == 0:
        return float(np.abs(log_p - log_q).max())
    return largest_rejected(beyond, error=-delta)


def _hockey_stick(log_p: np.ndarray, log_q: np.ndarray, epsilon: float) -> float:
    """Sum of max(0, P - e^epsilon Q), without a difference of large numbers."""
    kept = log_p > log_q + epsilon
    if not kept.any():
        return 0.0
    return float(np.exp(logsumexp(log_p[kept], b=-np.expm1(log_q[kept] + epsilon - log_p[kept]))))


def audit_lines(name: str, audit: dict[str, Any]) -> list[str]:
    """For people: the claim, and under it the bounds and the verdict."""
    lower, trials = audit["epsilon_lower"], f"{audit['trials']:,} trials"
    by_noise = (
        f"at least {lower['sound']:.4g} as it is, {lower['broken']:.4g} with the noise divided,"
        f" {lower['noise_free']:.4g} without"
    )
    possible = f"{trials} could have shown {audit['largest_possible']:.4g}"
    return [
        f"{name}: claimed epsilon {audit['claimed_epsilon']:.4g} at delta {audit['delta']:g}",
        f"  {by_noise} (confidence {audit['confidence']:g}; {possible})",
        f"  the audit: {audit['verdict']}",
    ]
