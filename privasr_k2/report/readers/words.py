"""Words in ``score_<role>``: data of the paired tests of error rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.report.measures import Paired, Tested
from privasr_k2.scoring.align import Pair, align
from privasr_k2.scoring.bootstrap import Interval, clusters_of, difference_over_speakers
from privasr_k2.scoring.corpus_info import PHONE
from privasr_k2.scoring.matched_pairs import compare_slots, errors_by_slot
from privasr_k2.scoring.results import Score, TwoTexts, read_scored_words

SAME = "score both systems on the same data with the same options"


def rate_of(score: Score) -> str:
    """The metric of its error rate."""
    return "per" if score.unit == PHONE else "wer"


def ends_of(interval: Interval | None, scale: float = 100) -> tuple[float, float] | None:
    """Both ends of an interval of a rate, in per cent or another unit."""
    return None if interval is None else (scale * interval.low, scale * interval.high)


class Words:
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
    words: Words

    @cached_property
    def pairs(self) -> dict[str, tuple[Pair, ...]]:
        """The alignment of each utterance: a system that is compared often is aligned once."""
        of_part = self.words.of_parts.get(self.part, {})
        return {name: align(*pair) for name, pair in of_part.items()}

    @cached_property
    def slots(self) -> dict[str, list[int]]:
        """Errors by slot of each utterance."""
        return {name: errors_by_slot(pairs) for name, pairs in self.pairs.items()}

    @cached_property
    def references(self) -> dict[str, tuple[str, ...]]:
        """Utterance -> its reference."""
        return {name: ref for name, (ref, _) in self.words.of_parts.get(self.part, {}).items()}

    def check(self, other: WordErrors) -> None:
        """Refuse a system that was scored on other data, or with other options.

        Raises:
            DataError: which of both.
        """
        ours, theirs = self.score.parts[self.part], other.score.parts[other.part]
        if self.references != other.references or list(ours.speakers) != list(theirs.speakers):
            facts = "the utterances, references and speakers"
            expected = f"{facts} of {other.score.place} in {self.part}"
            raise DataError(self.score.place, expected, "others", SAME)
        if self.score.options != other.score.options:
            expected = f"the options of {other.score.place}: {other.score.options}"
            raise DataError(self.score.place, expected, str(self.score.options), SAME)

    def against(self, other: Paired) -> Tested | None:
        """MAPSSWE, two-sided; the value is the difference of the error rates in points."""
        if not isinstance(other, WordErrors):
            return None
        self.check(other)
        ours, theirs = self.score.parts[self.part], other.score.parts[other.part]
        test = compare_slots(self.slots.values(), (other.slots[name] for name in self.slots))
        drawn = [counts.ref_words for counts in ours.speakers.values()]
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
        ends = ends_of(interval) or (None, None)
        return Tested(metric, value, *ends, test.p_value, test.segments, clusters_of(drawn))
