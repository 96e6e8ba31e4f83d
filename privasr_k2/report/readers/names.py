"""Names in ``score_<role>``: their figures, and data of their paired tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.report.measures import Measure, Paired, Tested
from privasr_k2.report.readers.words import SAME, WordErrors, ends_of
from privasr_k2.scoring.align import Pair
from privasr_k2.scoring.bootstrap import (
    Interval,
    clusters_of,
    difference_over_speakers,
    ratio_difference,
)
from privasr_k2.scoring.counts import ErrorCounts, total
from privasr_k2.scoring.entity_scores import ALL, OUTSIDE, EntityCounts, EntityScore
from privasr_k2.scoring.matched_pairs import compare_slots, errors_by_slot
from privasr_k2.scoring.name_errors import inside_slots
from privasr_k2.scoring.names import read_inside
from privasr_k2.scoring.results import Score

#: Metric of error rates -> which words they are of.
RATES = {"name_wer": ALL, "other_wer": OUTSIDE}
_THOUSAND = 1000


def name_measures(entities: EntityScore | None, part: str) -> Iterator[Measure]:
    """The figures of all names and of each class; what is outside of names stands with all."""
    if entities is None:
        return
    classes: dict[str, EntityCounts] = dict(entities.classes)
    if entities.together is not None:
        classes = {ALL: entities.together} | classes
    for label, counts in classes.items():
        name = "" if label == ALL else label
        shares = [None if s is None else 100 * s for s in (counts.recall, counts.precision)]
        ends, speakers = ends_of(entities.intervals.get(label)), entities.of_speakers(label)
        clusters = clusters_of([of.ref_words for of in speakers]) if speakers else None
        yield Measure.drawn("recall", shares[0], ends, clusters, part, name)
        yield Measure("precision", shares[1], part=part, item=name)
        yield Measure("entity_words", counts.ref_words, part=part, item=name)
        yield Measure("hits", counts.hits, part=part, item=name)
        yield Measure("false_alarms", counts.false_alarms, part=part, item=name)
        if entities.errors:
            yield _rate("name_wer", entities, label, part, name)
            yield _false_alarm_rate(entities, label, counts.false_alarms, part, name)
    if entities.errors:
        yield Measure("other_words", total(entities.errors_of(OUTSIDE)).ref_words, part=part)
        yield _rate("other_wer", entities, OUTSIDE, part)


def _rate(metric: str, entities: EntityScore, label: str, *where: str) -> Measure:
    counts = entities.errors_of(label)
    ends, clusters = ends_of(entities.error_intervals.get(label)), _clusters(counts)
    return Measure.drawn(metric, total(counts).percent, ends, clusters, *where)


def _false_alarm_rate(entities: EntityScore, label: str, false_alarms: int, *where: str) -> Measure:
    words = entities.words_of_speakers()
    value = _THOUSAND * false_alarms / sum(words) if sum(words) else None
    ends = ends_of(entities.false_alarm_intervals.get(label), _THOUSAND)
    return Measure.drawn("false_alarm_rate", value, ends, clusters_of(words), *where)


def _clusters(counts: Sequence[ErrorCounts]) -> int:
    return clusters_of([of.ref_words for of in counts])


def name_pairs(score: Score, part: str, words: WordErrors) -> dict[str, Paired]:
    """What paired tests of names need, by metric; nothing where none are annotated."""
    entities = score.parts[part].entities
    if entities is None or not entities.speakers:
        return {}
    pairs: dict[str, Paired] = {"recall": ByWord("recall", score, part, entities)}
    if entities.errors:
        names = _Names(score.place)
        pairs |= {metric: NameErrors(metric, words, entities, names) for metric in RATES}
        pairs["false_alarm_rate"] = ByWord("false_alarm_rate", score, part, entities)
    return pairs


class _Names:
    """Which scored words of a folder lie inside names, read when a test first asks for them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def of_parts(self) -> Mapping[str, Mapping[str, Sequence[bool] | None]]:
        return read_inside(self._folder)


@dataclass(frozen=True)
class NameErrors:
    """Word errors inside, or outside, names in one part: MAPSSWE of these errors alone."""

    metric: str
    words: WordErrors
    entities: EntityScore
    names: _Names

    @cached_property
    def inside(self) -> Mapping[str, Sequence[bool] | None]:
        """Utterance -> whether each reference word lies inside a name; ``None``: not annotated."""
        return self.names.of_parts.get(self.words.part, {})

    def counted(self, name: str) -> list[int]:
        """The errors by slot of an utterance that are tested; none where it is not annotated."""
        pairs, inside = self.words.pairs[name], self.inside.get(name)
        return _counted(pairs, inside, RATES[self.metric] == ALL)

    def against(self, other: Paired) -> Tested | None:
        """MAPSSWE, two-sided; the value is the difference of the error rates in points."""
        if not isinstance(other, NameErrors):
            return None
        self.words.check(other.words)
        score, part = self.words.score, self.words.part
        label = RATES[self.metric]
        ours, theirs = (of.entities.errors_of(label) for of in (self, other))
        words = [counts.ref_words for counts in ours]
        if self.inside != other.inside or words != [counts.ref_words for counts in theirs]:
            found = f"the names of {other.words.score.place} in {part}"
            raise DataError(score.place, found, "others", SAME)
        ids = list(self.words.slots)
        test = compare_slots(
            (self.words.slots[name] for name in ids),
            (other.words.slots[name] for name in ids),
            map(self.counted, ids),
            map(other.counted, ids),
        )
        interval = difference_over_speakers(
            ours,
            theirs,
            stream(score.options.seed, "compare", part),
            num_replicates=score.options.num_replicates,
            confidence=score.options.confidence,
        )
        errors = total(ours).errors - total(theirs).errors
        value, ends = (100 * errors / sum(words) if sum(words) else None), ends_of(interval)
        figures = value, *(ends or (None, None)), test.p_value, test.segments
        return Tested(f"{self.metric}_difference", *figures, clusters_of(words))


def _counted(pairs: Sequence[Pair], inside: Sequence[bool] | None, wanted: bool) -> list[int]:
    slots = errors_by_slot(pairs)
    if inside is None:
        return [0] * len(slots)
    lies = inside_slots(pairs, inside)
    return [errors if of == wanted else 0 for errors, of in zip(slots, lies, strict=True)]


@dataclass(frozen=True)
class ByWord:
    """Recall of all names, or their false alarms, in one part: tested by draws of speakers."""

    metric: str
    score: Score
    part: str
    entities: EntityScore

    @property
    def counts(self) -> tuple[list[int], list[int]]:
        """Hits and words of names, or false alarms and all words, by speaker."""
        of = self.entities.of_speakers(ALL)
        if self.metric == "recall":
            return [counts.hits for counts in of], [counts.ref_words for counts in of]
        return [counts.false_alarms for counts in of], self.entities.words_of_speakers()

    def against(self, other: Paired) -> Tested | None:
        """The difference of recalls in points, of false alarms by 1,000 words."""
        if not isinstance(other, ByWord) or other.metric != self.metric:
            return None
        (ours, words), (theirs, same) = self.counts, other.counts
        if words != same:
            raise DataError(self.score.place, f"the names of {other.score.place}", "others", SAME)
        options, scale = self.score.options, 100 if self.metric == "recall" else _THOUSAND
        test = ratio_difference(
            np.array([a - b for a, b in zip(ours, theirs)], dtype=np.int64),
            np.array(words, dtype=np.int64),
            stream(options.seed, "recall", self.part),
            num_replicates=options.num_replicates,
            confidence=options.confidence,
        )
        if test is None:
            return None
        interval: Interval | None = test.interval
        ends, speakers = ends_of(interval, scale) or (None, None), clusters_of(words)
        figures = scale * test.value, *ends, test.p_value, len(words)
        return Tested(f"{self.metric}_difference", *figures, speakers)
