"""What came of the words of names in one part: counts by class and speaker, and intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from privasr_k2.scoring.bootstrap import Interval
from privasr_k2.scoring.counts import ErrorCounts, total

ALL = "all"
"""All classes together; no class has this name."""
OUTSIDE = "outside"
"""All words that lie in no name; no class has this name."""

Intervals = Mapping[str, "Interval | None"]
"""By class; ``None``: too few speakers with words of it."""


@dataclass(frozen=True)
class EntityCounts:
    """How the words of one class came out. Counts of disjoint texts are added with ``+``.

    Attributes:
        hits: reference words inside entities of the class that were recognized.
        ref_words: reference words inside entities of the class.
        hyp_words: recognized words taken for words of the class: hits and false alarms.

    >>> counts = EntityCounts(hits=6, ref_words=8, hyp_words=7) + EntityCounts(ref_words=4)
    >>> counts.recall, counts.false_alarms
    (0.5, 1)
    >>> print(EntityCounts().precision)
    None
    """

    hits: int = 0
    ref_words: int = 0
    hyp_words: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= min(self.ref_words, self.hyp_words):
            raise ValueError(f"hits must lie between 0 and both numbers of words, got {self}")

    @property
    def false_alarms(self) -> int:
        """Wrong words that are words of the class."""
        return self.hyp_words - self.hits

    @property
    def recall(self) -> float | None:
        """Share of the class's reference words that was recognized; ``None`` without any."""
        return self.hits / self.ref_words if self.ref_words else None

    @property
    def precision(self) -> float | None:
        """Share of the class's recognized words that is right; ``None`` without any."""
        return self.hits / self.hyp_words if self.hyp_words else None

    def __add__(self, other: EntityCounts) -> EntityCounts:
        if not isinstance(other, EntityCounts):
            return NotImplemented
        pairs = zip(astuple(self), astuple(other))
        return EntityCounts(*(own + others for own, others in pairs))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the rates follow from the counts."""
        return {
            **asdict(self),
            "recall_percent": 100.0 * self.hits / self.ref_words if self.ref_words else None,
            "precision_percent": 100.0 * self.hits / self.hyp_words if self.hyp_words else None,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EntityCounts:
        """Read the output of :meth:`to_dict`; other keys are ignored."""
        return cls(values["hits"], values["ref_words"], values["hyp_words"])


@dataclass(frozen=True)
class EntityScore:
    """The entities of one part.

    Attributes:
        utterances: how many of its utterances are annotated, also those without an entity.
        classes: counts by class, sorted by name.
        speakers: speaker, sorted -> counts of :data:`ALL` and of classes that are not 0; may be
            empty in older results.
        errors: speaker, sorted -> word errors of :data:`ALL`, of :data:`OUTSIDE`, and of classes
            that are not 0, as :mod:`privasr_k2.scoring.name_errors` divides them; empty in older
            results.
        intervals: of the recall of :data:`ALL` and of each class; ``None`` where fewer than
            :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` speakers have words of it; empty
            where none were computed.
        error_intervals: the same of the error rates, of :data:`OUTSIDE`, too.
        false_alarm_intervals: the same of false alarms by annotated reference word.
    """

    utterances: int
    classes: Mapping[str, EntityCounts]
    speakers: Mapping[str, Mapping[str, EntityCounts]] = field(default_factory=dict)
    errors: Mapping[str, Mapping[str, ErrorCounts]] = field(default_factory=dict)
    intervals: Intervals = field(default_factory=dict)
    error_intervals: Intervals = field(default_factory=dict)
    false_alarm_intervals: Intervals = field(default_factory=dict)

    @property
    def together(self) -> EntityCounts | None:
        """All classes and speakers together; ``None`` in results without speakers."""
        return sum(self.of_speakers(ALL), EntityCounts()) if self.speakers else None

    def of_speakers(self, name: str) -> list[EntityCounts]:
        """The counts of one class, or of :data:`ALL`, for every speaker."""
        return [counts.get(name, EntityCounts()) for counts in self.speakers.values()]

    def errors_of(self, name: str) -> list[ErrorCounts]:
        """The word errors of one class, of :data:`ALL` or :data:`OUTSIDE`, for every speaker."""
        return [counts.get(name, ErrorCounts()) for counts in self.errors.values()]

    def words_of_speakers(self) -> list[int]:
        """The annotated reference words of every speaker, inside and outside names."""
        both = zip(self.errors_of(ALL), self.errors_of(OUTSIDE), strict=True)
        return [inside.ref_words + outside.ref_words for inside, outside in both]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``wer.json``."""
        record: dict[str, Any] = {
            "utterances": self.utterances,
            "classes": {name: counts.to_dict() for name, counts in self.classes.items()},
        }
        if self.speakers:
            record["speakers"] = _lists(self.speakers)
        if self.intervals:
            record["recall_intervals"] = _plain(self.intervals)
        if self.errors:
            names = (ALL, OUTSIDE, *self.classes)
            record["wer_percent"] = {name: total(self.errors_of(name)).percent for name in names}
            record["errors"] = _lists(self.errors)
            record["wer_intervals"] = _plain(self.error_intervals)
            record["false_alarm_intervals"] = _plain(self.false_alarm_intervals)
        return record

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EntityScore:
        """Read the output of :meth:`to_dict`."""
        classes = {
            name: EntityCounts.from_dict(counts) for name, counts in values["classes"].items()
        }
        kinds: tuple[tuple[str, type[Any]], ...] = (
            ("speakers", EntityCounts),
            ("errors", ErrorCounts),
        )
        of_speakers = {
            key: {
                speaker: {name: kind(*numbers) for name, numbers in counts.items()}
                for speaker, counts in values.get(key, {}).items()
            }
            for key, kind in kinds
        }
        keys = ("recall_intervals", "wer_intervals", "false_alarm_intervals")
        intervals = (
            {name: i and Interval(**i) for name, i in values.get(key, {}).items()} for key in keys
        )
        counts = of_speakers["speakers"], of_speakers["errors"]
        return cls(values["utterances"], classes, *counts, *intervals)


def _lists(speakers: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, list[int]]]:
    return {
        speaker: {name: list(astuple(counts)) for name, counts in of_speaker.items()}
        for speaker, of_speaker in speakers.items()
    }


def _plain(intervals: Intervals) -> dict[str, Any]:
    return {name: interval and asdict(interval) for name, interval in intervals.items()}
