"""Several systems' confidences on the same recordings: metrics with intervals, points of a plot.

A system is a folder ``GROUP/SYSTEM/nbest_<role>``; the systems of a group have the same words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2 import randomness
from privasr_k2.confidence.targets import Targets, targets_of
from privasr_k2.errors import DataError
from privasr_k2.scoring.confidence_metrics import (
    METRICS,
    ConfidenceSums,
    Measured,
    MetricOptions,
    draw_metrics,
    width_bins,
)
from privasr_k2.scoring.nbest_lists import NbestLists, read_nbest


@dataclass(frozen=True)
class Reliability:
    """The K bins of a reliability plot that have words.

    Attributes:
        confidence, correct: (K,) mean confidence and share of correct words.
        words: (K,) counts.
    """

    confidence: np.ndarray
    correct: np.ndarray
    words: np.ndarray


@dataclass(frozen=True)
class SystemResult:
    """The result of one system.

    Attributes:
        words, correct: scored words, and how many of them are correct.
        speakers: users with words.
        wer: word error rate of the recognizer.
        metrics: by :data:`privasr_k2.scoring.confidence_metrics.METRICS`.
        differences: from other systems of the group, by their names.
    """

    group: str
    system: str
    words: int
    correct: int
    speakers: int
    wer: float
    metrics: Mapping[str, Measured]
    differences: Mapping[str, Mapping[str, Measured]]
    reliability: Reliability

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``confidence_metrics.json``."""
        fields = ("group", "system", "words", "correct", "speakers", "wer")
        return {
            **{name: getattr(self, name) for name in fields},
            "metrics": _plain(self.metrics),
            "differences": {other: _plain(values) for other, values in self.differences.items()},
            "reliability": {
                name: values.tolist() for name, values in vars(self.reliability).items()
            },
        }


def evaluate(
    folders: Sequence[Path],
    scored_units: Mapping[str, str],
    options: MetricOptions,
    baselines: Sequence[str] = (),
) -> list[SystemResult]:
    """Evaluate systems, in the order in which they are given.

    Args:
        folders: ``GROUP/SYSTEM/nbest_<role>``.
        scored_units: as for :func:`privasr_k2.scoring.align.to_scored_units`.
        baselines: systems that the others of their group are compared with; default: the first.

    Raises:
        DataError: hypotheses without confidences, no reference, no word, other words or users than
            the group's first system, or a system of the same name twice.
    """
    groups: dict[str, list[tuple[str, Targets, np.ndarray]]] = {}
    for folder in folders:
        group, system = folder.resolve().parts[-3:-1]
        lists = read_nbest(folder)
        targets = targets_of(lists, scored_units)
        values = _confidences(lists)[targets.scored]
        if not len(values):
            raise DataError(folder, "recognized words", "none", "look at the first pass")
        known = groups.setdefault(group, [])
        if system in [name for name, _, _ in known]:
            expected = f"systems of different names in {group}"
            raise DataError(folder, expected, f"{system} again", "rename its folder")
        if known and not _same(known[0][1], targets):
            expected = f"the words and users of {known[0][0]}, the first system of {group}"
            raise DataError(folder, expected, "others", "put another recognizer's in another group")
        known.append((system, targets, values))
    results = []
    for group, members in groups.items():
        names = [system for system, _, _ in members]
        if missing := [name for name in baselines if name not in names]:
            expected = f"the systems {' '.join(baselines)} of {group}"
            raise DataError(folders[0], expected, f"no {missing[0]}", "add its lists")
        results += _evaluate_group(group, members, options, list(baselines) or names[:1])
    return results


def _evaluate_group(
    group: str,
    systems: Sequence[tuple[str, Targets, np.ndarray]],
    options: MetricOptions,
    baselines: Sequence[str],
) -> list[SystemResult]:
    sums = []
    for _, targets, values in systems:
        kept = targets.scored
        correct, speakers = targets.correct[kept] == 1, targets.speakers[kept]
        sums.append(ConfidenceSums(values, correct, speakers, len(targets.speaker_names), options))
    rng = randomness.stream(options.seed, "confidence", group)
    metrics = draw_metrics(sums, rng, options.num_replicates)
    drawn = dict(zip((system for system, _, _ in systems), metrics))
    results = []
    for system, targets, values in systems:
        # A baseline is compared with those before it, so that no pair comes twice.
        others = baselines[: baselines.index(system)] if system in baselines else baselines
        correct = targets.correct[targets.scored] == 1
        measured = drawn[system].measured
        results.append(
            SystemResult(
                group, system, len(values), int(correct.sum()),
                len(np.unique(targets.speakers[targets.scored])),
                targets.errors / targets.ref_words if targets.ref_words else math.nan,
                measured(options.confidence),
                {other: measured(options.confidence, drawn[other]) for other in others},
                reliability(values, correct, options.num_bins),
            )
        )  # fmt: skip
    return results


def reliability(confidences: np.ndarray, correct: np.ndarray, num_bins: int) -> Reliability:
    """The bins of equal width that have words."""
    bins = width_bins(confidences, num_bins)
    words = np.bincount(bins, minlength=num_bins)
    used = words > 0
    sums = np.bincount(bins, confidences, num_bins), np.bincount(bins, correct, num_bins)
    mean, share = (total[used] / words[used] for total in sums)
    return Reliability(mean, share, words[used])


def _confidences(lists: NbestLists) -> np.ndarray:
    confidences: list[float] = []
    for nbest in lists.lists:
        for hyp in nbest.hyps[:1]:
            if hyp.words and hyp.confidences is None:
                place, found = lists.lines[nbest.id], f"none for {nbest.id}"
                raise DataError(place, "word confidences", found, "give lists of apply_confidence")
            confidences.extend(hyp.confidences or ())
    return np.array(confidences, dtype=np.float64)


def _same(first: Targets, other: Targets) -> bool:
    return (
        first.speaker_names == other.speaker_names
        and np.array_equal(first.correct, other.correct)
        and np.array_equal(first.speakers, other.speakers)
    )


def _plain(metrics: Mapping[str, Measured]) -> dict[str, Any]:
    plain = {}
    for name in METRICS:
        value, interval = metrics[name].value, metrics[name].interval
        plain[name] = {
            "value": value if math.isfinite(value) else None,
            "interval": None if interval is None else [interval.low, interval.high],
        }
    return plain
