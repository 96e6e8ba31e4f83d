"""The audit of noisy max on two neighbouring vote histograms [ding2018].

The code under audit is run many times on each of two histograms that differ in one teacher's vote.
The labels that speak most for the first histogram are chosen on one half of the draws; how often
they come on the other half gives the bound, by exact intervals. The bound is for *these*
histograms: it can show that a mechanism is broken, and how close a sound one comes to its claim
    there.

[ding2018] Z. Ding, Y. Wang, G. Wang, D. Zhang and D. Kifer, Detecting violations of differential
privacy, CCS 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.audit import inputs
from privasr_k2.privacy.audit.bounds import AuditBound
from privasr_k2.privacy.audit.intervals import bound_from_counts, epsilon_lower

#: Takes a histogram (C,) and a number of draws; returns as many labels, whole numbers. A label may
#: stand for "no answer". The draws must be independent: noise as in the release, not one stream
#: that begins again.
Mechanism: TypeAlias = Callable[[np.ndarray, int], np.ndarray]


def two_histograms_bound(
    mechanism: Mechanism,
    first: ArrayLike,
    second: ArrayLike,
    *,
    draws: int,
    delta: float,
    confidence: float,
) -> AuditBound:
    """The bound on the epsilon of one answered query.

    Args:
        mechanism: the code under audit.
        first: (C,) votes.
        second: (C,) votes, with the vote of one teacher changed, added or withdrawn.
        draws: how often the mechanism is run on each histogram; even, 2 or more.

    Returns:
        a bound from the ``draws`` runs (half on each histogram) that were not used to choose the
        labels.

    Raises:
        PrivacyError: histograms that are no neighbours, or a mechanism that returns no labels.

    >>> def noiseless(votes, count):
    ...     return np.full(count, votes.argmax())
    >>> found = two_histograms_bound(noiseless, [6, 5], [5, 6], draws=1000, delta=0.0, confidence=0.95)
    >>> found.epsilon_lower == found.largest_possible, round(found.epsilon_lower, 2)
    (True, 4.91)
    """
    votes = _neighbours(first, second)
    checks.whole("draws", draws, at_least=2)
    if draws % 2:
        raise PrivacyError("draws", "an even number, to be halved", str(draws), "add one")
    inputs.delta(delta)
    inputs.confidence(confidence)
    chosen_on = [_labels(mechanism, histogram, draws // 2) for histogram in votes]
    event = choose_event(chosen_on[0], chosen_on[1], delta=delta, confidence=confidence)
    counts = [
        int(np.count_nonzero(np.isin(_labels(mechanism, histogram, draws // 2), event)))
        for histogram in votes
    ]
    return bound_from_counts(
        true_positives=counts[0],
        positives=draws // 2,
        false_positives=counts[1],
        negatives=draws // 2,
        delta=delta,
        confidence=confidence,
        method="two histograms",
    )


def choose_event(
    first: np.ndarray, second: np.ndarray, *, delta: float, confidence: float
) -> np.ndarray:
    """The set of labels that speaks for the first histogram with the largest bound on these draws.

    At any delta the best set holds all labels whose ratio of probabilities is above some value
    (Neyman and Pearson), so only the sets of the highest ratios are compared. What speaks for the
    second histogram is the rest of the labels, which
    :func:`privasr_k2.privacy.audit.intervals.epsilon_lower` looks at as well.

    Args:
        first: (T,) labels drawn with the first histogram.
        second: (T,) labels drawn with the second.
    """
    draws = len(first)
    labels, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    counts = [np.bincount(half, minlength=labels.size) for half in np.split(codes.ravel(), [draws])]
    # Half a draw more for each, so that a label that one side never gave has a finite ratio.
    falling = np.argsort(np.log(counts[1] + 0.5) - np.log(counts[0] + 0.5), kind="stable")
    bounds = epsilon_lower(
        np.cumsum(counts[0][falling]),
        np.cumsum(counts[1][falling]),
        positives=draws,
        negatives=draws,
        delta=delta,
        confidence=confidence,
    )
    return labels[falling[: int(np.argmax(bounds)) + 1]]


def _labels(mechanism: Mechanism, histogram: np.ndarray, draws: int) -> np.ndarray:
    made = np.asarray(mechanism(histogram.copy(), draws))
    if made.shape != (draws,) or made.dtype.kind not in "iu":
        raise PrivacyError(
            "mechanism",
            f"{draws} labels as integers",
            f"an array of {made.dtype} of shape {made.shape}",
            "return one label a draw",
        )
    return made


def _neighbours(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """Both as (2, C)."""
    shapes = [np.shape(np.asarray(votes)) for votes in (first, second)]
    if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
        raise PrivacyError(
            "second", f"as many classes as first, {shapes[0]}", f"{shapes[1]}", "correct it"
        )
    votes = checks.histograms(
        "histograms", np.stack([np.asarray(first), np.asarray(second)])
    ).astype(np.int64)
    change = votes[1] - votes[0]
    gained, lost = int(change[change > 0].sum()), int(-change[change < 0].sum())
    if (gained, lost) not in {(1, 1), (1, 0), (0, 1)}:
        raise PrivacyError(
            "second",
            "first with one teacher's vote changed, added or withdrawn",
            f"{gained} votes more and {lost} fewer",
            "change one vote",
        )
    return votes
