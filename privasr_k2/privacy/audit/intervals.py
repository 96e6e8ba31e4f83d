"""Exact intervals for a rate, and the bound on epsilon of one decision rule's two counts.

[clopper1934] C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits illustrated
in the case of the binomial, Biometrika 26 (1934).
[kairouz2015] P. Kairouz et al., The composition theorem for differential privacy, ICML 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from privasr_k2.privacy import checks
from privasr_k2.privacy.audit import inputs
from privasr_k2.privacy.audit.bounds import AuditBound


@dataclass(frozen=True)
class Interval:
    """Interval that holds a rate with at least ``confidence``."""

    low: float
    high: float
    confidence: float


def clopper_pearson(successes: int, trials: int, *, confidence: float) -> Interval:
    """The two-sided interval of a rate [clopper1934]; each end errs with (1 - confidence) / 2.

    Raises:
        PrivacyError: no trials, more successes than trials, or a confidence outside (0, 1).

    >>> interval = clopper_pearson(0, 100, confidence=0.95)
    >>> interval.low, round(interval.high, 4)
    (0.0, 0.0362)
    """
    _check_counts("successes", successes, "trials", trials)
    error = (1 - inputs.confidence(confidence)) / 2
    low, high = lower_end(successes, trials, error=error), upper_end(successes, trials, error=error)
    return Interval(float(low), float(high), confidence)


def lower_end(successes: np.ndarray | int, trials: np.ndarray | int, *, error: float) -> np.ndarray:
    """The rate at which ``successes`` or more have probability ``error``: a one-sided lower end.

    It is the ``error`` quantile of Beta(successes, trials - successes + 1); 0 without a success.

    >>> float(lower_end(1, 1, error=0.05))
    0.05
    """
    k, n = np.asarray(successes), np.asarray(trials)
    return np.where(k > 0, beta.ppf(error, np.maximum(k, 1), n - k + 1), 0.0)


def upper_end(successes: np.ndarray | int, trials: np.ndarray | int, *, error: float) -> np.ndarray:
    """The rate at which ``successes`` or fewer have probability ``error``: a one-sided upper end.

    It is the 1 - ``error`` quantile of Beta(successes + 1, trials - successes); 1 without failure.

    >>> float(upper_end(0, 1, error=0.05))
    0.95
    """
    k, n = np.asarray(successes), np.asarray(trials)
    return np.where(k < n, beta.isf(error, k + 1, np.maximum(n - k, 1)), 1.0)


def epsilon_lower(
    true_positives: np.ndarray | int,
    false_positives: np.ndarray | int,
    *,
    positives: int,
    negatives: int,
    delta: float,
    confidence: float,
) -> np.ndarray:
    """The bound on epsilon of one decision rule, for each of many pairs of counts.

    An (epsilon, delta)-private release gives every rule tpr <= e^epsilon fpr + delta, and for the
    opposite answer 1 - fpr <= e^epsilon (1 - tpr) + delta [kairouz2015, section 2]. So

        epsilon_lower = max(0, ln((tpr_low - delta) / fpr_high),
                            ln((1 - fpr_high - delta) / (1 - tpr_low)))

    where tpr_low and fpr_high each err with probability at most (1 - confidence) / 2. Both
    inequalities use the same two ends.

    Args:
        true_positives: how often the rule said "there" where the unit was, of ``positives`` trials.
        false_positives: how often it said so where the unit was not, of ``negatives`` trials.

    Returns:
        bounds in the shape of the counts. The largest of several is no bound at this confidence.
    """
    error = (1 - confidence) / 2
    tpr_low = lower_end(true_positives, positives, error=error)
    fpr_high = upper_end(false_positives, negatives, error=error)
    with np.errstate(divide="ignore"):  # ln 0: that inequality shows nothing
        there = np.log(np.maximum(tpr_low - delta, 0)) - np.log(fpr_high)
        not_there = np.log(np.maximum(1 - fpr_high - delta, 0)) - np.log1p(-tpr_low)
    return np.maximum(0.0, np.maximum(there, not_there))


def bound_from_counts(
    *,
    true_positives: int,
    positives: int,
    false_positives: int,
    negatives: int,
    delta: float,
    confidence: float,
    method: str,
) -> AuditBound:
    """The bound of one rule that was fixed before its trials were seen; see :func:`epsilon_lower`.

    The trials must be independent runs of the release, with and without the unit. Scores of many
    examples of *one* model are not independent: use :mod:`privasr_k2.privacy.audit.one_run`.

    Args:
        method: name of the audit in the result.

    Raises:
        PrivacyError: no trials, more positives than trials, or delta or confidence out of range.

    >>> counts = dict(true_positives=900, positives=1000, false_positives=100, negatives=1000)
    >>> bound = bound_from_counts(**counts, delta=0.0, confidence=0.95, method="fixed rule")
    >>> round(bound.epsilon_lower, 2), round(bound.largest_possible, 2)
    (1.99, 5.6)
    """
    _check_counts("true_positives", true_positives, "positives", positives)
    _check_counts("false_positives", false_positives, "negatives", negatives)
    inputs.delta(delta)
    inputs.confidence(confidence)
    lower, perfect = epsilon_lower(
        np.array([true_positives, positives]),
        np.array([false_positives, 0]),
        positives=positives,
        negatives=negatives,
        delta=delta,
        confidence=confidence,
    )
    trials = positives + negatives
    return AuditBound(float(lower), confidence, delta, float(perfect), trials, method)


def _check_counts(name: str, successes: int, of: str, trials: int) -> None:
    checks.whole(of, trials, at_least=1)
    checks.whole(name, successes, at_least=0, at_most=trials)
