"""Noisy answers to queries: noise is added to the counts of all queries at once."""

from __future__ import annotations

import numpy as np

from privasr_k2.pate.mechanisms import Setting
from privasr_k2.privacy.discrete import DiscreteGaussianNoise
from privasr_k2.privacy.pate.mechanisms import mechanism
from privasr_k2.randomness import NoiseStream

UNANSWERED = -1


def winners(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(Q,) the class with the largest count of each query, the first among equals.

    Args:
        counts: of all classes of all queries, one after the other.
        sizes: (Q,) classes of each, 1 or more.

    >>> winners(np.array([1, 5, 5, 3, 2]), np.array([3, 2]))
    array([1, 0])
    """
    if not len(sizes):
        return np.zeros(0, dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    best = np.flatnonzero(counts == np.repeat(np.maximum.reduceat(counts, starts), sizes))
    return best[np.searchsorted(best, starts)] - starts


def noisy_winners(
    counts: np.ndarray, sizes: np.ndarray, setting: Setting, ties: NoiseStream | None
) -> np.ndarray:
    """(Q,) the answers; :data:`UNANSWERED` where the check fails or the cap is reached.

    All queries are asked in their order; at most ``setting.max_answers`` are answered. Noise is
    fresh at every call: write the result before it is used, and never draw it again.

    Args:
        counts: int64, private.
        sizes: (Q,).
        setting: a mechanism on votes.
        ties: breaks ties between noisy counts, or chooses the winners; None without noise.
    """
    if setting.event is None:
        within = np.arange(len(sizes)) < setting.max_answers
        return np.where(within, winners(counts, sizes), UNANSWERED)
    chosen = mechanism(setting.mechanism)
    answers = np.full(len(sizes), UNANSWERED)
    passed = np.ones(len(sizes), dtype=bool)
    if chosen.needs_threshold and len(sizes):
        largest = np.maximum.reduceat(counts, np.cumsum(sizes) - sizes)
        passed = DiscreteGaussianNoise(setting.threshold_noise).add(largest) >= setting.threshold
    answered = passed & (np.cumsum(passed) <= setting.max_answers)
    assert ties is not None
    of_answered = counts[np.repeat(answered, sizes)]
    if chosen.choose is not None:
        answers[answered] = chosen.choose(of_answered, sizes[answered], setting.noise, ties)
    elif chosen.noise is not None:
        noisy = chosen.noise(of_answered, setting.noise, 1.0, ties)
        answers[answered] = winners(noisy, sizes[answered])
    return answers


def noisy_posteriors(
    values: np.ndarray,
    sizes: np.ndarray,
    setting: Setting,
    largest_weight: float,
    stream: NoiseStream | None,
) -> np.ndarray:
    """The sums of posteriors [yang2022, eq. 4] with noise on every entry, in votes.

    Args:
        values: float64 of all queries, one after the other, on a grid.
        setting: a mechanism on posteriors, for Q answers or more.
        largest_weight: of a teacher, in votes.
        stream: of the release; None without noise.
    """
    if setting.event is None:
        return values
    noise = mechanism(setting.mechanism).noise
    assert noise is not None and stream is not None and len(sizes) <= setting.max_answers
    return noise(values, setting.noise, largest_weight, stream)


def on_simplex(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Project the values of each query onto the probability simplex (least squares).

    Duchi et al. (2008), "Efficient projections onto the l1-ball for learning in high dimensions",
    figure 1.

    >>> on_simplex(np.array([0.9, 0.3, -0.4, 2.0, 0.0]), np.array([3, 2]))
    array([0.8, 0.2, 0. , 1. , 0. ])
    """
    owners = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((-values, owners))
    falling, starts = values[order], np.cumsum(sizes) - sizes
    sums = np.cumsum(falling)
    before = np.where(starts > 0, sums[starts - 1], 0.0)
    ranks = np.arange(len(values)) - starts[owners] + 1
    levels = (sums - before[owners] - 1.0) / ranks
    kept = np.bincount(owners, falling > levels, minlength=len(sizes)).astype(int)
    return np.maximum(values - levels[starts + kept - 1][owners], 0.0)
