"""Recall, precision and errors of the words inside entities, class by class.

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
:mod:`.name_errors` says which word errors lie inside.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl
from privasr_k2.scoring.align import Pair
from privasr_k2.scoring.counts import ErrorCounts, count_pairs
from privasr_k2.scoring.entity_scores import ALL, OUTSIDE, EntityCounts, EntityScore
from privasr_k2.scoring.name_errors import divide

Classes = frozenset[str]
"""The classes of one word; entities may lie inside others."""

_NONE: Classes = frozenset()
_AGAIN = "prepare the corpus again"


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
    speakers, errors = {}, {}
    for speaker, tally in sorted(by_speaker.items()):
        counts = {name: tally.counts(name) for name in (ALL, *entities.names)}
        speakers[speaker] = {
            name: c for name, c in counts.items() if name == ALL or c != EntityCounts()
        }
        wrong = {name: tally.errors(name) for name in (ALL, OUTSIDE, *entities.names)}
        errors[speaker] = {
            name: c for name, c in wrong.items() if name in (ALL, OUTSIDE) or c != ErrorCounts()
        }
    return EntityScore(utterances, classes, speakers, errors)


class _Tally:
    """The running counts of one speaker."""

    def __init__(self) -> None:
        self._hits: Counter[str] = Counter()
        self._ref_words: Counter[str] = Counter()
        self._false_alarms: Counter[str] = Counter()
        self._errors: defaultdict[str, ErrorCounts] = defaultdict(ErrorCounts)

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
        inside, outside = divide(pairs, [bool(classes) for classes in of_words])
        self._errors[ALL] += count_pairs(inside)
        self._errors[OUTSIDE] += count_pairs(outside)
        for name in {name for classes in of_words for name in classes}:
            inside, _ = divide(pairs, [name in classes for classes in of_words])
            self._errors[name] += count_pairs(inside)

    def counts(self, name: str) -> EntityCounts:
        """Of one class, or of :data:`ALL`."""
        hits = self._hits[name]
        return EntityCounts(hits, self._ref_words[name], hits + self._false_alarms[name])

    def errors(self, name: str) -> ErrorCounts:
        """Of one class, of :data:`ALL` or of :data:`OUTSIDE`."""
        return self._errors[name]


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
    return 0 <= first < end <= num_words and label not in ("", ALL, OUTSIDE)
