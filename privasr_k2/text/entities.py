"""Named entities as spans of words, and the interface of taggers.

A tagger has labels of its own; :func:`fold` maps them to the four classes of CoNLL-2003, on which
turan2022 (section 2.1) bases its classes. Taggers read text with capitals and language models read
normalized text: :func:`moved` carries the spans over.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from privasr_k2.errors import DataError

CLASSES = ("PER", "ORG", "LOC", "MISC")


class Entity(NamedTuple):
    """Words ``first`` to ``end - 1`` of a text."""

    first: int
    end: int
    label: str


@dataclass(frozen=True)
class TaggedText:
    """One text with its entities.

    Attributes:
        id: of the utterance, or a number.
        words: normalized, as language models read them.
        entities: sorted spans of ``words`` that do not nest; ``None``: never tagged.
        user: whose text it is; may be empty.
        document: meeting or call; empty: all texts of the user are one document.
        cased: the text as it was written; empty where it is not known.
        place: file and line, for messages.
    """

    id: str
    words: tuple[str, ...]
    entities: tuple[Entity, ...] | None
    user: str = ""
    document: str = ""
    cased: str = ""
    place: str = field(default="", compare=False)


class Tagger(Protocol):
    """Finds entities in text as it is written."""

    def tag(self, texts: Sequence[Sequence[str]]) -> list[tuple[Entity, ...]]:
        """Entities of each text, in the tagger's own labels.

        Args:
            texts: blank-parted tokens; marks may stick to words or stand apart.
        """


def fold(
    entities: Iterable[Sequence[Any]], classes: Mapping[str, str], place: str | Path
) -> tuple[Entity, ...]:
    """Entities in the classes of the recipe, without overlaps.

    Args:
        entities: ``(first, end, label)``; capitals and hyphens of labels do not count.
        classes: label -> class; the empty class leaves entities of the label out.
        place: named in errors.

    Raises:
        DataError: a label that ``classes`` lacks.

    >>> fold([(0, 1, "GPE"), (2, 5, "creative-work"), (3, 4, "DATE")],
    ...      {"GPE": "LOC", "CREATIVE_WORK": "MISC", "DATE": ""}, "here")
    (Entity(first=0, end=1, label='LOC'), Entity(first=2, end=5, label='MISC'))
    """
    folded = []
    for first, end, label in entities:
        name = label.upper().replace("-", "_")
        if name not in classes:
            way_out = f"map it to a class, or to nothing to leave it out: --set classes.{name}=MISC"
            raise DataError(place, f"labels out of {' '.join(classes)}", label, way_out)
        if classes[name]:
            folded.append(Entity(first, end, classes[name]))
    return outermost(folded)


def outermost(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Sorted entities without overlaps: the longer one stays, else the earlier.

    >>> outermost([Entity(4, 5, "MISC"), Entity(2, 5, "ORG"), Entity(1, 3, "PER")])
    (Entity(first=2, end=5, label='ORG'),)
    """
    kept: list[Entity] = []
    taken: set[int] = set()
    for entity in sorted(entities, key=lambda e: (e.first - e.end, e)):
        words = range(entity.first, entity.end)
        if taken.isdisjoint(words):
            taken.update(words)
            kept.append(entity)
    return tuple(sorted(kept))


def united(first: Sequence[Entity], second: Iterable[Entity]) -> tuple[Entity, ...]:
    """All of ``first``, and those of ``second`` that overlap none of them.

    >>> united([Entity(0, 2, "PER")], [Entity(1, 3, "LOC"), Entity(3, 4, "LOC")])
    (Entity(first=0, end=2, label='PER'), Entity(first=3, end=4, label='LOC'))
    """
    taken = {word for entity in first for word in range(entity.first, entity.end)}
    more = (e for e in second if taken.isdisjoint(range(e.first, e.end)))
    return tuple(sorted([*first, *more]))


def moved(
    tokens: Sequence[str],
    entities: Iterable[Sequence[Any]],
    num_words: int,
    normalize: Callable[[Sequence[str]], Sequence[str]],
) -> tuple[Entity, ...]:
    """Entities in ``tokens``, as spans of the ``num_words`` words that these become.

    A span begins after the words of the tokens before it and ends before those of the tokens behind
    it, so a ``normalize`` that looks at neighbours (``$40 million``) is allowed. Empty spans are
    dropped.

    >>> tokens = ["Mr.", "Smith-Jones", ",", "hello"]
    >>> moved(tokens, [(1, 3, "PER"), (2, 3, "ORG")], 4,
    ...       lambda part: " ".join(part).replace("-", " ").replace(",", "").split())
    (Entity(first=1, end=3, label='PER'),)
    """
    spans = (
        Entity(len(normalize(tokens[:first])), num_words - len(normalize(tokens[end:])), label)
        for first, end, label in entities
    )
    return tuple(e for e in spans if 0 <= e.first < e.end <= num_words)


def checked(
    place: str | Path, entities: Any, num_words: int, *, nested: bool = False
) -> tuple[Entity, ...]:
    """Spans as they stand in a file, sorted.

    Args:
        nested: whether entities may overlap, as annotations do before :func:`fold`.

    Raises:
        DataError: anything but ``[first_word, last_word_exclusive, label]`` inside the words, or an
            overlap.

    >>> checked("here", [[1, 2, "PER"]], 2)
    (Entity(first=1, end=2, label='PER'),)
    """
    if not isinstance(entities, list):
        raise DataError(place, "a list of entities", type(entities).__name__, "tag the text again")
    accepted = []
    for span in entities:
        good = isinstance(span, list) and len(span) == 3 and all(type(n) is int for n in span[:2])
        if not good or not isinstance(span[2], str) or not 0 <= span[0] < span[1] <= num_words:
            expected = f"[first_word, last_word_exclusive, label] within {num_words} words"
            raise DataError(place, expected, repr(span), "correct it, or tag the text again")
        accepted.append(Entity(*span))
    accepted.sort()
    for before, entity in itertools.pairwise(accepted):
        if entity.first < before.end and not nested:
            found = f"{list(before)} and {list(entity)}"
            way_out = "fold the labels: bin.tag_entities --set taggers=[gold]"
            raise DataError(place, "entities that do not overlap", found, way_out)
    return tuple(accepted)
