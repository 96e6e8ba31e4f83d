"""``score_<role>``: error rates and names of one system, and data of its paired tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.report.measures import Context, Measure, Paired, Reading, Tested
from privasr_k2.scoring.align import align
from privasr_k2.scoring.bootstrap import (
    Interval,
    clusters_of,
    difference_over_speakers,
    ratio_difference,
)
from privasr_k2.scoring.corpus_info import PHONE
from privasr_k2.scoring.entities import ALL, EntityCounts, EntityScore
from privasr_k2.scoring.groups import GroupScore
from privasr_k2.scoring.matched_pairs import compare_slots, errors_by_slot
from privasr_k2.scoring.results import PartScore, Score, TwoTexts, read_score, read_scored_words
from privasr_k2.scoring.speaker_counts import SpeakerCounts

_SAME = "score both systems on the same data with the same options"


def score(path: str, context: Context) -> Reading:
    """A folder of verb ``wer``."""
    scored = read_score(Path(path))
    words = _Words(Path(path))
    measures = [measure for part in scored.parts for measure in _measures(scored, part)]
    pairs: dict[tuple[str, str], Paired] = {}
    for part, result in scored.parts.items():
        pairs[part, "wer"] = WordErrors(scored, part, words)
        if result.entities is not None and result.entities.speakers:
            pairs[part, "recall"] = Recall(scored, part, result.entities)
    return Reading(tuple(measures), pairs)


def rate_of(score: Score) -> str:
    """The metric of its error rate."""
    return "per" if score.unit == PHONE else "wer"


def _measures(score: Score, part: str) -> Iterator[Measure]:
    result = score.parts[part]
    yield from _counted(score, result, part)
    for group, of_group in result.groups.items():
        for value, of_value in of_group.items():
            yield from _counted(score, of_value, part, value, group)
    yield Measure("no_path", len(result.no_path), part=part)
    rates = [c.percent for c in result.speakers.values() if c.percent is not None]
    if rates:
        yield Measure("speaker_min", min(rates), part=part)
        yield Measure("speaker_max", max(rates), part=part)
    if result.oov is not None and result.ref_words:
        yield Measure("oov", 100 * result.oov / result.ref_words, part=part)
    if result.characters is not None:
        characters = result.characters
        yield _rate("cer", characters, part)
    yield from _entities(result, part)


def _counted(score: Score, result: PartScore | GroupScore, *where: str) -> Iterator[Measure]:
    """Errors of a part, or of a value of a group in it."""
    counts = result.counts
    yield _rate(rate_of(score), result, *where)
    for name in ("errors", "insertions", "deletions", "substitutions"):
        yield Measure(name, getattr(counts, name), None, None, *where)
    yield Measure("words", counts.ref_words, None, None, *where)
    yield Measure("utterances", result.utterances, None, None, *where)
    yield Measure("speakers", len(result.speakers), None, None, *where)


def _rate(metric: str, of: PartScore | SpeakerCounts, *where: str) -> Measure:
    """An error rate with its interval over speakers."""
    return Measure.drawn(metric, of.counts.percent, _ends(of.interval), _drawn_from(of), *where)


def _drawn_from(of: PartScore | SpeakerCounts) -> int:
    return clusters_of([counts.ref_words for counts in of.speakers.values()])


def _entities(result: PartScore, part: str) -> Iterator[Measure]:
    entities = result.entities
    if entities is None:
        return
    classes: dict[str, EntityCounts] = dict(entities.classes)
    if entities.together is not None:
        classes = {ALL: entities.together} | classes
    for label, counts in classes.items():
        name = "" if label == ALL else label
        shares = [None if s is None else 100 * s for s in (counts.recall, counts.precision)]
        ends, speakers = _ends(entities.intervals.get(label)), entities.of_speakers(label)
        clusters = clusters_of([of.ref_words for of in speakers]) if speakers else None
        yield Measure.drawn("recall", shares[0], ends, clusters, part, name)
        yield Measure("precision", shares[1], part=part, item=name)
        yield Measure("entity_words", counts.ref_words, part=part, item=name)
        yield Measure("hits", counts.hits, part=part, item=name)
        yield Measure("false_alarms", counts.false_alarms, part=part, item=name)


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (100 * interval.low, 100 * interval.high)


class _Words:
    """The scored words of a folder, read when a test first asks for them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def of_parts(self) -> Mapping[str, Mapping[str, TwoTexts]]:
        return read_scored_words(self._folder)


@dataclass(frozen=True)
class WordErrors:
    """One part's words: MAPSSWE, and the interval of the difference over speakers."""

    score: Score
    part: str
    words: _Words

    @cached_property
    def slots(self) -> dict[str, list[int]]:
        """Errors by slot of each utterance: a system that is compared often is aligned once."""
        of_part = self.words.of_parts.get(self.part, {})
        return {name: errors_by_slot(align(*pair)) for name, pair in of_part.items()}

    @cached_property
    def references(self) -> dict[str, tuple[str, ...]]:
        """Utterance -> its reference."""
        return {name: ref for name, (ref, _) in self.words.of_parts.get(self.part, {}).items()}

    def against(self, other: Paired) -> Tested | None:
        """MAPSSWE, two-sided; the value is the difference of the error rates in points."""
        if not isinstance(other, WordErrors):
            return None
        ours, theirs = self.score.parts[self.part], other.score.parts[other.part]
        if self.references != other.references or list(ours.speakers) != list(theirs.speakers):
            facts = "the utterances, references and speakers"
            expected = f"{facts} of {other.score.place} in {self.part}"
            raise DataError(self.score.place, expected, "others", _SAME)
        if self.score.options != other.score.options:
            expected = f"the options of {other.score.place}: {other.score.options}"
            raise DataError(self.score.place, expected, str(self.score.options), _SAME)
        test = compare_slots(self.slots.values(), (other.slots[name] for name in self.slots))
        options, ref_words = self.score.options, ours.counts.ref_words
        interval = difference_over_speakers(
            list(ours.speakers.values()),
            list(theirs.speakers.values()),
            stream(options.seed, "compare", self.part),
            num_replicates=options.num_replicates,
            confidence=options.confidence,
        )
        value = 100 * (ours.counts.errors - theirs.counts.errors) / ref_words if ref_words else None
        metric = f"{rate_of(self.score)}_difference"
        ends = _ends(interval) or (None, None)
        return Tested(metric, value, *ends, test.p_value, test.segments, _drawn_from(ours))


@dataclass(frozen=True)
class Recall:
    """The words of all names in one part, tested by draws of speakers."""

    score: Score
    part: str
    entities: EntityScore

    def against(self, other: Paired) -> Tested | None:
        """The difference of the recalls in points, by drawing speakers again."""
        if not isinstance(other, Recall):
            return None
        ours, theirs = self.entities.of_speakers(ALL), other.entities.of_speakers(ALL)
        words = [counts.ref_words for counts in ours]
        if words != [counts.ref_words for counts in theirs]:
            raise DataError(self.score.place, f"the names of {other.score.place}", "others", _SAME)
        options = self.score.options
        test = ratio_difference(
            np.array([a.hits - b.hits for a, b in zip(ours, theirs)], dtype=np.int64),
            np.array(words, dtype=np.int64),
            stream(options.seed, "recall", self.part),
            num_replicates=options.num_replicates,
            confidence=options.confidence,
        )
        if test is None:
            return None
        ends, speakers = _ends(test.interval) or (None, None), clusters_of(words)
        return Tested(
            "recall_difference", 100 * test.value, *ends, test.p_value, len(words), speakers
        )
