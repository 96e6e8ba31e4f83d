"""Recall and precision of the words inside entities, class by class.

References tell which of their words lie inside an entity; hypotheses do not. Both rates come from
the alignment that gives the word errors. For a class c:

    recall    = hits / ref_words,    ref_words: reference words inside entities of class c,
    precision = hits / hyp_words,    hits:      those of them that were recognized,
                                     hyp_words: hits and false alarms.

A right word has the class of the reference word beside it: the month of May is no false alarm of a
person called May. A wrong word (substituted or inserted) is a false alarm of class c if more than
half of its occurrences in annotated references lie inside entities of class c: a name that nobody
said counts, the "of" of a wrong "University of" does not.

These references are those of the scored role, of the corpus's public roles, and of named files.
Training text is not among them unless it is named: where it is private, a table of results would
depend on it without noise. Wrong names that occur in none of these references are no false alarms,
so that precision is an upper bound, and a loose one without further references.

:data:`ALL` stands for all classes together: a word inside two nested entities counts once, and a
wrong word is a false alarm if more than half of its occurrences lie inside entities of any class.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl
from privasr_k2.scoring.align import Pair
from privasr_k2.scoring.bootstrap import Interval

Classes = frozenset[str]
"""The classes of one word; entities may lie inside others."""

ALL = "all"
"""All classes together; no class has this name."""

_NONE: Classes = frozenset()
_AGAIN = "prepare the corpus again"


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
        intervals: of the recall of :data:`ALL` and of each class; ``None`` where fewer than
            :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` speakers have words of it; empty
            where none were computed.
    """

    utterances: int
    classes: Mapping[str, EntityCounts]
    speakers: Mapping[str, Mapping[str, EntityCounts]] = field(default_factory=dict)
    intervals: Mapping[str, Interval | None] = field(default_factory=dict)

    @property
    def together(self) -> EntityCounts | None:
        """All classes and speakers together; ``None`` in results without speakers."""
        return sum(self.of_speakers(ALL), EntityCounts()) if self.speakers else None

    def of_speakers(self, name: str) -> list[EntityCounts]:
        """The counts of one class, or of :data:`ALL`, for every speaker."""
        return [counts.get(name, EntityCounts()) for counts in self.speakers.values()]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``wer.json``."""
        record: dict[str, Any] = {
            "utterances": self.utterances,
            "classes": {name: counts.to_dict() for name, counts in self.classes.items()},
        }
        if self.speakers:
            record["speakers"] = {
                speaker: {name: [c.hits, c.ref_words, c.hyp_words] for name, c in counts.items()}
                for speaker, counts in self.speakers.items()
            }
        if self.intervals:
            record["recall_intervals"] = {
                name: i and asdict(i) for name, i in self.intervals.items()
            }
        return record

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EntityScore:
        """Read the output of :meth:`to_dict`."""
        classes = {
            name: EntityCounts.from_dict(counts) for name, counts in values["classes"].items()
        }
        speakers = {
            speaker: {name: EntityCounts(*numbers) for name, numbers in counts.items()}
            for speaker, counts in values.get("speakers", {}).items()
        }
        intervals = {n: i and Interval(**i) for n, i in values.get("recall_intervals", {}).items()}
        return cls(values["utterances"], classes, speakers, intervals)


@dataclass(frozen=True)
class Entities:
    """The entities in the manifests.

    Attributes:
        words: id of an annotated utterance -> classes of each scored word of its reference.
        typical: scored word -> the classes in which more than half of its occurrences lie.
        names: all classes, sorted.
        any_class: scored words with more than half of their occurrences inside any entity.
    """

    words: Mapping[str, tuple[Classes, ...]]
    typical: Mapping[str, Classes]
    names: tuple[str, ...]
    any_class: frozenset[str]


def read_entities(
    manifests: Path,
    role: str,
    scored_units: Mapping[str, str],
    public_roles: Iterable[str] = (),
    more_cuts: Iterable[Path] = (),
) -> Entities | None:
    """Read the entities of one role, and how words are used there and in other references.

    Args:
        manifests: the folder with ``cuts_<role>.jsonl.gz``. Annotations are lists of
            ``[first_word, last_word_exclusive, class]`` in a supervision's ``custom["entities"]``.
        role: whose utterances are to be scored.
        scored_units: as for :func:`privasr_k2.scoring.align.to_scored_units`.
        public_roles: roles whose references may be looked at; their files may be missing.
        more_cuts: further ``cuts_*.jsonl.gz`` to look at.

    Returns:
        ``None`` where no utterance of the role is annotated.

    Raises:
        DataError: an entity that is no such list, or lies outside its text.
    """
    source = manifests / f"cuts_{role}.jsonl.gz"
    words = {name: tuple(c for _, c in tagged) for name, tagged in _annotated(source, scored_units)}
    if not words:
        return None
    uses: Counter[str] = Counter()
    inside: Counter[tuple[str, str]] = Counter()
    public = (manifests / f"cuts_{other}.jsonl.gz" for other in public_roles)
    paths = [source, *(path for path in public if path.is_file()), *more_cuts]
    for path in {path.resolve(): path for path in paths}.values():  # each file once
        for _, tagged in _annotated(path, scored_units):
            uses.update(unit for unit, _ in tagged)
            inside.update(
                (unit, name) for unit, classes in tagged for name in (classes and {*classes, ALL})
            )
    names = tuple(sorted({name for _, name in inside} - {ALL}))
    mostly = [(unit, name) for (unit, name), count in inside.items() if 2 * count > uses[unit]]
    any_class = (unit for unit, name in mostly if name == ALL)
    typical: dict[str, Classes] = {}
    for unit, name in mostly:
        if name != ALL:
            typical[unit] = typical.get(unit, _NONE) | {name}
    return Entities(words, typical, names, frozenset(any_class))


def score_entities(
    alignments: Iterable[tuple[str, str, Sequence[Pair]]], entities: Entities
) -> EntityScore | None:
    """Count the words of entities in the alignments of one part.

    Args:
        alignments: id, speaker and alignment of each utterance, in scored units; only annotated
            ones count.
        entities: of the role.

    Returns:
        counts of all classes of the corpus; ``None`` where no utterance is annotated.

    Raises:
        DataError: a reference that has not the words of the manifests.

    >>> pairs = [("ask", "ask"), ("may", "may"), ("in", "in"), ("may", "may"), (None, "rose")]
    >>> person = frozenset({"PER"})
    >>> of_words = {"u": (frozenset(), person, frozenset(), frozenset())}
    >>> known = Entities(of_words, {"rose": person}, ("PER",), frozenset({"rose"}))
    >>> found = score_entities([("u", "speaker", pairs)], known)
    >>> found.classes
    {'PER': EntityCounts(hits=1, ref_words=1, hyp_words=2)}
    """
    by_speaker: defaultdict[str, _Tally] = defaultdict(_Tally)
    utterances = 0
    for name, speaker, pairs in alignments:
        of_words = entities.words.get(name)
        if of_words is None:
            continue
        utterances += 1
        if sum(ref is not None for ref, _ in pairs) != len(of_words):
            expected = f"a reference of {len(of_words)} words"
            raise DataError(name, expected, "another one", "decode again")
        by_speaker[speaker].add(pairs, of_words, entities)
    if not utterances:
        return None
    classes = {
        name: sum((tally.counts(name) for tally in by_speaker.values()), EntityCounts())
        for name in entities.names
    }
    speakers = {}
    for speaker in sorted(by_speaker):
        counts = {name: by_speaker[speaker].counts(name) for name in (ALL, *entities.names)}
        speakers[speaker] = {
            name: c for name, c in counts.items() if name == ALL or c != EntityCounts()
        }
    return EntityScore(utterances, classes, speakers)


class _Tally:
    """The running counts of one speaker."""

    def __init__(self) -> None:
        self._hits: Counter[str] = Counter()
        self._ref_words: Counter[str] = Counter()
        self._false_alarms: Counter[str] = Counter()

    def add(self, pairs: Sequence[Pair], of_words: Sequence[Classes], entities: Entities) -> None:
        """Count one utterance."""
        position = 0
        for ref, hyp in pairs:
            if ref is not None:
                classes = of_words[position]
                names = (*classes, ALL) if classes else ()
                self._ref_words.update(names)
                if ref == hyp:
                    self._hits.update(names)
                position += 1
            if hyp is not None and ref != hyp:
                self._false_alarms.update(entities.typical.get(hyp, _NONE))
                self._false_alarms[ALL] += hyp in entities.any_class

    def counts(self, name: str) -> EntityCounts:
        """Of one class, or of :data:`ALL`."""
        hits = self._hits[name]
        return EntityCounts(hits, self._ref_words[name], hits + self._false_alarms[name])


def _annotated(
    path: Path, scored_units: Mapping[str, str]
) -> Iterator[tuple[str, list[tuple[str, Classes]]]]:
    """Id, and scored words with their classes, of each annotated utterance."""
    for number, cut in enumerate(read_jsonl(path), start=1):
        supervision = (cut.get("supervisions") or [{}])[0]
        spans = (supervision.get("custom") or {}).get("entities")
        if spans is None:
            continue
        name, words = str(cut.get("id")), str(supervision.get("text", "")).split()
        classes: list[Classes] = [_NONE] * len(words)
        for span in spans:
            if not _is_span(span, len(words)):
                expected = f"[first_word, last_word_exclusive, class] within {len(words)} words"
                raise DataError(f"{path}:{number} ({name})", expected, repr(span), _AGAIN)
            first, end, label = span
            classes[first:end] = [known | {label} for known in classes[first:end]]
        units = [scored_units.get(word, word) for word in words]
        yield name, [(unit, found) for unit, found in zip(units, classes, strict=True) if unit]


def _is_span(span: Any, num_words: int) -> bool:
    if not isinstance(span, list) or len(span) != 3:
        return False
    first, end, label = span
    if [type(value) for value in span] != [int, int, str]:
        return False
    return 0 <= first < end <= num_words and label not in ("", ALL)
