"""An interval for an error rate by drawing whole speakers again [bisani2004].

The utterances of one speaker are not independent, those of two speakers are: so speakers are drawn,
with replacement, and every replicate's rate is a ratio of sums,

    rate_b = sum_i errors_{s(b, i)} / sum_i ref_words_{s(b, i)},    s(b, i) a uniform speaker.

The interval lies between two percentiles of the replicates. Two systems are compared on the same
draws, so that what makes a speaker hard for both of them cancels:

    difference_b = sum_i (errors_{s(b, i)} - other_errors_{s(b, i)}) / sum_i ref_words_{s(b, i)}.

Twice the smaller share of the replicates on either side of 0 is a two-sided p-value: it is below
1 - confidence where the interval leaves 0 out. The data themselves count as one more replicate on
each side, so that no p-value is 0.

[bisani2004] M. Bisani and H. Ney, Bootstrap estimates for confidence intervals in ASR performance
evaluation, ICASSP 2004.

Below :data:`MIN_CLUSTERS` speakers, or groups of utterances in their place, nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privasr_k2.scoring.counts import ErrorCounts

MIN_CLUSTERS = 6
"""Speakers or groups from which intervals and p-values are drawn, at least.

With S of them, all better in one system, the exact test of signs has the two-sided p 2 / 2^S, which
is 0.0625 with five and 0.031 with six. Drawn p-values come near 0 whatever S is, so that five would
be called significant by the draws alone. Of 4,000 samples of normal rates the interval of 95 % held
the mean in 84 % with five speakers, in 85 % with six and in 94 % with thirty (1,000 draws each).
"""

# Replicates by speakers in one block of draws, which a cache holds: 65,536 counts are 512 kB.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Interval:
    """Rates (not per cent) between which a share ``confidence`` of the replicates lies.

    Attributes:
        low: lower end; of a rate it is 0 or more.
        high: upper end.
        confidence: between 0 and 1.
    """

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Difference:
    """A difference over speakers.

    Attributes:
        value: of the data themselves.
        interval: of the replicates; ``None`` with fewer than :data:`MIN_CLUSTERS` speakers.
        p_value: two-sided, from 2 / (1 + replicates) to 1; ``None`` as ``interval``.
    """

    value: float
    interval: Interval | None
    p_value: float | None


def clusters_of(denominators: Sequence[int] | np.ndarray) -> int:
    """How many speakers or groups can be drawn: those with a denominator above 0.

    >>> clusters_of([10, 0, 3])
    2
    """
    return int(np.count_nonzero(np.asarray(denominators)))


def interval_over_speakers(
    counts: Sequence[ErrorCounts],
    rng: np.random.Generator,
    *,
    num_replicates: int,
    confidence: float,
) -> Interval | None:
    """The percentile interval of the error rate over speakers.

    Args:
        counts: of each of S speakers, in a fixed order.
        rng: as :func:`privasr_k2.randomness.stream` makes them.
        num_replicates: how often S speakers are drawn; 1 or more.
        confidence: between 0 and 1.

    Returns:
        ``None`` with fewer than :data:`MIN_CLUSTERS` speakers with reference words. Replicates
        without reference words have no rate and are left out.

    >>> from privasr_k2.randomness import stream
    >>> speakers = [ErrorCounts(hits=90, deletions=10)] * 3 + [ErrorCounts(hits=70, deletions=30)]
    >>> draws = {"num_replicates": 1000, "confidence": 0.95}
    >>> interval_over_speakers([*speakers, *speakers], stream(1, "interval"), **draws)
    Interval(low=0.1, high=0.2, confidence=0.95)
    >>> interval_over_speakers(speakers, stream(1, "interval"), **draws) is None
    True
    """
    errors = np.array([c.errors for c in counts], dtype=np.int64)  # (S,)
    words = np.array([c.ref_words for c in counts], dtype=np.int64)  # (S,)
    return ratio_interval(errors, words, rng, num_replicates=num_replicates, confidence=confidence)


def difference_over_speakers(
    counts: Sequence[ErrorCounts],
    other: Sequence[ErrorCounts],
    rng: np.random.Generator,
    *,
    num_replicates: int,
    confidence: float,
) -> Interval | None:
    """The percentile interval of the difference of two systems' error rates over the same speakers.

    Args:
        counts, other: of each of S speakers, in the same order.
        rng, num_replicates, confidence: as for :func:`interval_over_speakers`.

    Returns:
        the rate of ``counts`` minus that of ``other``; ``None`` as :func:`interval_over_speakers`.

    Raises:
        ValueError: the two systems have not the same reference words.

    >>> from privasr_k2.randomness import stream
    >>> first = [ErrorCounts(hits=90 - n, deletions=10 + n) for n in range(6)]
    >>> second = [ErrorCounts(hits=85 - n, deletions=15 + n) for n in range(6)]
    >>> draws = {"num_replicates": 99, "confidence": 0.95}
    >>> difference_over_speakers(first, second, stream(1, "both"), **draws)
    Interval(low=-0.05, high=-0.05, confidence=0.95)
    """
    words = np.array([c.ref_words for c in counts], dtype=np.int64)  # (S,)
    if [c.ref_words for c in other] != words.tolist():
        raise ValueError("both systems need the same speakers with the same reference words")
    pairs = zip(counts, other, strict=True)
    errors = np.array([c.errors - o.errors for c, o in pairs], dtype=np.int64)
    return ratio_interval(errors, words, rng, num_replicates=num_replicates, confidence=confidence)


def ratio_interval(
    numerators: np.ndarray,
    denominators: np.ndarray,
    rng: np.random.Generator,
    *,
    num_replicates: int,
    confidence: float,
) -> Interval | None:
    """The percentile interval of any ratio of two sums over speakers.

    Args:
        numerators: (S,) counts, or differences of counts.
        denominators: (S,) counts.
        rng, num_replicates, confidence: as for :func:`interval_over_speakers`.

    Returns:
        ``None`` where fewer than :data:`MIN_CLUSTERS` speakers have a denominator above 0.
    """
    if num_replicates < 1:
        raise ValueError(f"num_replicates must be 1 or more, got {num_replicates}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    if clusters_of(denominators) < MIN_CLUSTERS:
        return None
    rates = replicate_rates(numerators, denominators, rng, num_replicates)
    return percentiles(rates, confidence)


def ratio_difference(
    differences: np.ndarray,
    denominators: np.ndarray,
    rng: np.random.Generator,
    *,
    num_replicates: int,
    confidence: float,
) -> Difference | None:
    """Whether a ratio of two sums differs between two systems, both on the same draws of speakers.

    Args:
        differences: (S,) numerator of the first system minus that of the second.
        denominators: (S,) counts, the same for both.
        rng, num_replicates, confidence: as for :func:`interval_over_speakers`.

    Returns:
        the difference, without interval and p-value where fewer than :data:`MIN_CLUSTERS` speakers
        have a denominator above 0; ``None`` where no speaker has one.

    >>> from privasr_k2.randomness import stream
    >>> more_hits, words = np.array([3, 1, 2, 4, 2, 3]), np.full(6, 10)
    >>> draws = {"num_replicates": 999, "confidence": 0.95}
    >>> difference = ratio_difference(more_hits, words, stream(1, "pair"), **draws)
    >>> difference.value, difference.p_value
    (0.25, 0.002)
    >>> ratio_difference(more_hits[:5], words[:5], stream(1, "pair"), **draws)
    Difference(value=0.24, interval=None, p_value=None)
    """
    if not clusters_of(denominators):
        return None
    value = float(differences.sum() / denominators.sum())
    if clusters_of(denominators) < MIN_CLUSTERS:
        return Difference(value, None, None)
    rates = replicate_rates(differences, denominators, rng, num_replicates)
    return difference_of(value, rates, confidence)


def difference_of(value: float, replicates: np.ndarray, confidence: float) -> Difference:
    """A difference from its replicates, (B,), B of 1 or more."""
    fewer = min(np.count_nonzero(replicates <= 0), np.count_nonzero(replicates >= 0))
    p_value = min(1.0, 2.0 * (1 + fewer) / (1 + len(replicates)))
    return Difference(value, percentiles(replicates, confidence), float(p_value))


def percentiles(rates: np.ndarray, confidence: float) -> Interval:
    """The interval between the percentiles of replicates, (B,), B of 1 or more."""
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(rates, [tail, 1.0 - tail])
    return Interval(float(low), float(high), confidence)


def replicate_rates(
    errors: np.ndarray, words: np.ndarray, rng: np.random.Generator, num_replicates: int
) -> np.ndarray:
    """The rates of the replicates that have reference words.

    Args:
        errors: (S,) errors of each speaker, or differences of two systems' errors.
        words: (S,) reference words of each speaker.
        num_replicates: B, 1 or more.

    Returns:
        at most B rates.
    """
    both = np.stack([errors, words], axis=1)  # (S, 2)
    sums = [drawn @ both for drawn in speaker_draws(len(errors), rng, num_replicates)]
    replicates = np.concatenate(sums)  # (B, 2)
    replicates = replicates[replicates[:, 1] > 0]
    return replicates[:, 0] / replicates[:, 1]


def speaker_draws(
    num_speakers: int, rng: np.random.Generator, num_replicates: int
) -> Iterator[np.ndarray]:
    """How often each of S speakers is in each replicate: blocks (b, S) of multinomial counts.

    Counted from draws of speakers: numpy's multinomial draws a binomial number for each speaker,
    which takes longer (``benchmarks/scoring.py``).
    """
    block = max(1, _BLOCK // num_speakers)
    for start in range(0, num_replicates, block):
        size = min(block, num_replicates - start)
        drawn = rng.integers(0, num_speakers, size=(size, num_speakers), dtype=np.int64)
        drawn += num_speakers * np.arange(size)[:, np.newaxis]
        yield np.bincount(drawn.ravel(), minlength=size * num_speakers).reshape(size, num_speakers)
