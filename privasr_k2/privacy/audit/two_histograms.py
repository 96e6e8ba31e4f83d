"""The audit of noisy max on two neighbouring vote histograms [ding2018].

The code under audit draws labels for two histograms that differ in one teacher's vote. The labels
that speak most for the first are chosen on half of the draws and counted in the other half. The
bound is for *these* histograms.

[ding2018] Z. Ding et al., Detecting violations of differential privacy, CCS 2018.
"""

from __future__ import annotations

import numpy as np

from privasr_k2.privacy.audit.intervals import epsilon_lower


def event_counts(
    first: np.ndarray, second: np.ndarray, *, delta: float, confidence: float
) -> tuple[int, int]:
    """How often the second halves of both have labels that were chosen on the first halves.

    Args:
        first: (T,) independent labels drawn with the first histogram, whole numbers; T even.
        second: (T,) labels drawn with the second.

    >>> event_counts(np.zeros(10, int), np.ones(10, int), delta=0.0, confidence=0.95)
    (5, 0)
    """
    half = len(first) // 2
    event = choose_event(first[:half], second[:half], delta=delta, confidence=confidence)
    counts = [int(np.count_nonzero(np.isin(labels[half:], event))) for labels in (first, second)]
    return counts[0], counts[1]


def choose_event(
    first: np.ndarray, second: np.ndarray, *, delta: float, confidence: float
) -> np.ndarray:
    """The set of labels that speaks for the first histogram with the largest bound on these draws.

    At any delta the best set holds all labels whose ratio of probabilities is above some value
    (Neyman and Pearson). So only the sets of the highest ratios are compared.
    :func:`privasr_k2.privacy.audit.intervals.epsilon_lower` looks at their complements as well.

    Args:
        first: (T,) labels drawn with the first histogram.
        second: (T,) labels drawn with the second.
    """
    draws = len(first)
    labels, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    counts = [np.bincount(half, minlength=labels.size) for half in np.split(codes.ravel(), [draws])]
    # Half a draw more for each, so that a label that one side never gave has a finite ratio.
    falling = np.argsort(np.log(counts[1] + 0.5) - np.log(counts[0] + 0.5), kind="stable")
    cumulated = (np.cumsum(count[falling]) for count in counts)
    setting = {"positives": draws, "negatives": draws, "delta": delta, "confidence": confidence}
    bounds = epsilon_lower(*cumulated, **setting)  # type: ignore[arg-type]
    return labels[falling[: int(np.argmax(bounds)) + 1]]
