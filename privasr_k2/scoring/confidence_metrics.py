"""How good the confidences of recognized words are: NCE, ECE and AUC, with intervals over speakers.

With N words, of which n are correct, and the confidence c_i in [0, 1] that word i is correct:

    NCE = 1 - H(c) / H_max,  H(c) = - sum_correct log2 c_i - sum_wrong log2 (1 - c_i),
          H_max = - n log2 (n/N) - (N - n) log2 (1 - n/N)  [siu1999]
    ECE = sum_b |sum_{i in b} (correct_i - c_i)| / N  [naeini2015]
    AUC = P(c of a correct word > c of a wrong one) + 1/2 P(they are equal)

NCE is 1 for an oracle, 0 where n/N is every word's confidence, below 0 for less. A wrong confidence
of 0 or 1 would make it minus infinity, so that confidences are clipped for it. The bins b of ECE
are of equal width in [0, 1], or hold equally many words; words of one confidence are in one bin.

Intervals: percentiles over draws of speakers with replacement, as for error rates. Every value of a
draw comes from sums over its speakers (for AUC, over pairs of speakers).

[siu1999] M. Siu and H. Gish, Evaluation of word confidence for speech recognition systems, Computer
Speech and Language 13, 1999; NIST's sclite reports the same.
[naeini2015] M. P. Naeini, G. Cooper and M. Hauskrecht, Obtaining well calibrated probabilities
using Bayesian binning, AAAI 2015.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Gt, Lt

from privasr_k2.constraints import Checked, Count, Delta
from privasr_k2.scoring.bootstrap import (
    MIN_CLUSTERS,
    Interval,
    clusters_of,
    percentiles,
    speaker_draws,
)

NCE, ECE_WIDTH, ECE_MASS, AUC = "nce", "ece_width", "ece_mass", "auc"
METRICS = (NCE, ECE_WIDTH, ECE_MASS, AUC)

# Pairs of values and speakers in one block of the sums for AUC: 4 M doubles are 32 MB.
_BLOCK = 4_000_000


@dataclass(frozen=True)
class MetricOptions(Checked):
    """How confidences are evaluated; defaults in ``conf/confidence.yaml#evaluate_confidence``.

    Args:
        clip: confidences are moved into [clip, 1 - clip] for NCE.
        num_bins: of ECE and of the reliability plot.
        num_replicates: draws of speakers.
        confidence: share of the draws within the interval.
        seed: of the draws.
    """

    clip: Annotated[float, Gt(0), Lt(0.5)]
    num_bins: Count
    num_replicates: Count
    confidence: Delta
    seed: int


def width_bins(confidences: np.ndarray, num_bins: int) -> np.ndarray:
    """(N,) the bin of each confidence; bins of equal width, the last one closed at 1.

    >>> width_bins(np.array([0.0, 0.49, 0.5, 1.0]), 2).tolist()
    [0, 0, 1, 1]
    """
    return np.minimum((confidences * num_bins).astype(np.int64), num_bins - 1)


def mass_bins(confidences: np.ndarray, num_bins: int) -> np.ndarray:
    """(N,) the bin of each confidence; bins of equally many words, but for equal confidences.

    Word i in increasing order is in bin ``floor(i * num_bins / N)``; words of one confidence are
    all in the bin of their middle one.

    >>> mass_bins(np.array([0.1, 0.9, 0.2, 0.9]), 2).tolist()
    [0, 1, 0, 1]
    """
    _, where, counts = np.unique(confidences, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) // 2
    return (middle * num_bins // len(confidences))[where]


class ConfidenceSums:
    """Sufficient statistics of one system's metrics, as sums for each speaker.

    Args:
        confidences: (N,) in [0, 1].
        correct: (N,) whether each word is correct.
        speakers: (N,) the number of each word's speaker, from 0.
        num_speakers: S.
        options: clipping and bins.

    Raises:
        ValueError: no word, or a confidence outside [0, 1].
    """

    def __init__(
        self,
        confidences: np.ndarray,
        correct: np.ndarray,
        speakers: np.ndarray,
        num_speakers: int,
        options: MetricOptions,
    ) -> None:
        if not len(confidences):
            raise ValueError("no words to evaluate")
        if confidences.min() < 0 or confidences.max() > 1:
            raise ValueError("confidences must lie in [0, 1]")
        correct = correct.astype(bool)
        clipped = np.clip(confidences, options.clip, 1 - options.clip)
        bits = -np.log2(np.where(correct, clipped, 1 - clipped))

        def by_speaker(weights: np.ndarray) -> np.ndarray:
            return np.bincount(speakers, weights, num_speakers)

        self.words = by_speaker(np.ones(len(confidences)))
        self.hits = by_speaker(correct)
        self.bits = by_speaker(bits)
        num_bins, gaps = options.num_bins, correct - confidences
        self.gaps = {}
        for name, bins_of in ((ECE_WIDTH, width_bins), (ECE_MASS, mass_bins)):
            cells = speakers * num_bins + bins_of(confidences, num_bins)
            sums = np.bincount(cells, gaps, num_speakers * num_bins)
            self.gaps[name] = sums.reshape(num_speakers, num_bins)
        self.wins = _pairwise_wins(confidences, correct, speakers, num_speakers)

    def metrics(self, draws: np.ndarray) -> dict[str, np.ndarray]:
        """Every metric for draws of speakers; NaN where all words of a draw are correct, or none.

        Args:
            draws: (B, S) how often each speaker is in each draw.

        Returns:
            metric -> (B,).
        """
        words, hits, bits = draws @ self.words, draws @ self.hits, draws @ self.bits
        with np.errstate(divide="ignore", invalid="ignore"):
            share = hits / words
            most = -hits * np.log2(share) - (words - hits) * np.log2(1 - share)
            values = {NCE: np.where(most > 0, 1 - bits / most, np.nan)}
            for name, gaps in self.gaps.items():
                values[name] = np.abs(draws @ gaps).sum(axis=1) / words
            pairs = hits * (words - hits)
            wins = ((draws @ self.wins) * draws).sum(axis=1)
            values[AUC] = np.where(pairs > 0, wins / pairs, np.nan)
        return values


def _pairwise_wins(
    confidences: np.ndarray, correct: np.ndarray, speakers: np.ndarray, num_speakers: int
) -> np.ndarray:
    """(S, S) pairs of a correct word of i and a less confident wrong one of j; equal ones half."""
    values, ranks = np.unique(confidences, return_inverse=True)
    wins = np.zeros((num_speakers, num_speakers))
    size = max(1, _BLOCK // len(values))
    for first in range(0, num_speakers, size):
        last = min(first + size, num_speakers)
        here = ~correct & (speakers >= first) & (speakers < last)
        at = np.zeros((len(values), last - first))
        np.add.at(at, (ranks[here], speakers[here] - first), 1.0)
        below = np.cumsum(at, axis=0) - 0.5 * at
        for speaker in np.unique(speakers[correct]).tolist():
            hits = np.bincount(ranks[correct & (speakers == speaker)], minlength=len(values))
            wins[speaker, first:last] = hits @ below
    return wins


@dataclass(frozen=True)
class Measured:
    """A metric of one system, or a difference of two systems' metrics.

    Attributes:
        value: over all words; NaN where all words are correct, or none.
        interval: over speakers; ``None`` with fewer than
            :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` speakers.
    """

    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Drawn:
    """The metrics of one system.

    Attributes:
        values: metric -> its value over all words.
        draws: metric -> (B,) its values over draws; B is 0 with fewer than
            :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` speakers.
    """

    values: Mapping[str, float]
    draws: Mapping[str, np.ndarray]

    def measured(self, confidence: float, baseline: Drawn | None = None) -> dict[str, Measured]:
        """Every metric, or its difference from that of ``baseline`` on the same draws."""
        by_metric = {}
        for metric in METRICS:
            value, draws = self.values[metric], self.draws[metric]
            if baseline is not None:
                value, draws = value - baseline.values[metric], draws - baseline.draws[metric]
            by_metric[metric] = Measured(value, _interval(draws, confidence))
        return by_metric


def draw_metrics(
    systems: Sequence[ConfidenceSums], rng: np.random.Generator, num_replicates: int
) -> list[Drawn]:
    """Every metric of several systems, over all words and over the same draws of speakers.

    Args:
        systems: with the same speakers in the same order; they may have other words.
        rng: where the draws come from.
        num_replicates: B.
    """
    num_speakers = len(systems[0].words)
    blocks: list[np.ndarray] = [np.zeros((0, num_speakers))]
    if clusters_of(systems[0].words) >= MIN_CLUSTERS:
        blocks += speaker_draws(num_speakers, rng, num_replicates)
    replicates = []
    for system in systems:
        everyone = system.metrics(np.ones((1, num_speakers)))
        of_blocks = [system.metrics(draws) for draws in blocks]
        draws = {name: np.concatenate([block[name] for block in of_blocks]) for name in METRICS}
        replicates.append(Drawn({name: float(v[0]) for name, v in everyone.items()}, draws))
    return replicates


def _interval(drawn: np.ndarray, confidence: float) -> Interval | None:
    drawn = drawn[np.isfinite(drawn)]
    return percentiles(drawn, confidence) if len(drawn) else None
