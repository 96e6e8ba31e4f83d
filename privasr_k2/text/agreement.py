"""Agreement of found entities with gold ones, by spans and by words, class by class.

A span agrees where first word, last word and class are the same. ``covered`` counts gold words in a
found entity of *any* class, which sanitizing replaces; the rest is *residual*. Rates of spans are

    recall = agreed / gold,    precision = agreed / found,    F1 = 2 agreed / (gold + found),

each a ratio of sums over texts, so that whole documents can be drawn again for intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.text.entities import Entity, TaggedText


@dataclass(frozen=True)
class Agreement:
    """Counts of one class.

    Attributes:
        gold_spans, found_spans, agreed_spans: entities.
        gold_words, found_words, agreed_words: words inside them.
        covered_words: gold words inside a found entity of any class.
    """

    gold_spans: int
    found_spans: int
    agreed_spans: int
    gold_words: int
    found_words: int
    agreed_words: int
    covered_words: int

    def to_dict(self) -> dict[str, Any]:
        """Counts, and rates in percent; ``None`` where a denominator is 0."""
        return {
            **asdict(self),
            "span_recall_percent": _percent(self.agreed_spans, self.gold_spans),
            "span_precision_percent": _percent(self.agreed_spans, self.found_spans),
            "span_f1_percent": _percent(2 * self.agreed_spans, self.gold_spans + self.found_spans),
            "word_recall_percent": _percent(self.agreed_words, self.gold_words),
            "word_precision_percent": _percent(self.agreed_words, self.found_words),
            "residual_words": self.gold_words - self.covered_words,
            "residual_percent": _percent(self.gold_words - self.covered_words, self.gold_words),
        }


ALL = "all"
"""All classes together."""

Counts = Counter[tuple[str, str]]
"""Name of a count and class -> number."""


def agreement(
    gold: Sequence[TaggedText], found: Sequence[TaggedText], place: str
) -> dict[str, Agreement]:
    """Class -> counts, and :data:`ALL`.

    Args:
        gold: the annotated texts; those without annotation count nowhere.
        found: the same texts, tagged; others may be among them.
        place: of the gold texts, named in errors.

    Raises:
        DataError: a gold text that was not tagged or has other words, or no gold text at all.

    >>> gold = [TaggedText("u", ("ask", "ann", "hill"), (Entity(1, 3, "PER"),))]
    >>> tagged = (Entity(1, 2, "PER"), Entity(2, 3, "LOC"))
    >>> of_class = agreement(gold, [TaggedText("u", gold[0].words, tagged)], "here")["PER"]
    >>> of_class.agreed_spans, of_class.agreed_words, of_class.covered_words
    (0, 1, 2)
    """
    by_document = count_by_document(gold, found, place)
    return _of_classes(sum(by_document.values(), Counter()))


def sums(
    by_document: Mapping[str, Counts],
) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Class -> rate -> numerators and denominators, each (D,) of the documents, sorted by name.

    Rates are ``span_recall``, ``span_precision``, ``span_f1`` and ``residual``.

    Args:
        by_document: of :func:`count_by_document`.

    >>> counts = Counter({("gold_spans", "PER"): 4, ("agreed_spans", "PER"): 3})
    >>> part, whole = sums({"a": counts, "b": Counter()})["PER"]["span_recall"]
    >>> part.tolist(), whole.tolist()
    ([3, 0], [4, 0])
    """
    ordered = [by_document[name] for name in sorted(by_document)]
    labels = sorted({label for counts in ordered for _, label in counts})
    every = [*((label, [label]) for label in labels), (ALL, labels)]
    return {label: _sums([_of(counts, some) for counts in ordered]) for label, some in every}


def _sums(of_documents: Sequence[Agreement]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rate -> its numerators and denominators, each (D,) of D documents."""
    columns = {
        name: np.array([getattr(of, name) for of in of_documents], dtype=np.int64)
        for name in Agreement.__dataclass_fields__
    }
    gold, found, agreed = (columns[f"{kind}_spans"] for kind in ("gold", "found", "agreed"))
    words = columns["gold_words"]
    return {
        "span_recall": (agreed, gold),
        "span_precision": (agreed, found),
        "span_f1": (2 * agreed, gold + found),
        "residual": (words - columns["covered_words"], words),
    }


def count_by_document(
    gold: Sequence[TaggedText], found: Sequence[TaggedText], place: str
) -> dict[str, Counts]:
    """Document -> counts; a text without a document is its user's, else one of its own.

    Args and errors are those of :func:`agreement`.
    """
    by_id = {text.id: text for text in found}
    documents: dict[str, Counts] = {}
    for text in gold:
        if text.entities is None:
            continue
        counts = documents.setdefault(text.document or text.user or text.id, Counter())
        tagged = by_id.get(text.id)
        if tagged is None or len(tagged.words) != len(text.words):
            other = "none" if tagged is None else f"one of {len(tagged.words)} words"
            expected = f"a tagged text {text.id} of {len(text.words)} words"
            raise DataError(place, expected, other, "tag the texts that are annotated")
        found_entities = tagged.entities or ()
        gold_words, found_words = _words(text.entities), _words(found_entities)
        anywhere = {at for at, _ in found_words}
        counts.update(("gold_spans", e.label) for e in text.entities)
        counts.update(("found_spans", e.label) for e in found_entities)
        counts.update(("agreed_spans", e.label) for e in {*text.entities} & {*found_entities})
        counts.update(("gold_words", label) for _, label in gold_words)
        counts.update(("found_words", label) for _, label in found_words)
        counts.update(("agreed_words", label) for _, label in gold_words & found_words)
        counts.update(("covered_words", label) for at, label in gold_words if at in anywhere)
    if not documents:
        raise DataError(place, "texts with gold entities", "none", "name annotated text")
    return documents


def _of_classes(counts: Counts) -> dict[str, Agreement]:
    labels = sorted({label for _, label in counts})
    by_label = {label: _of(counts, [label]) for label in labels}
    return {**by_label, ALL: _of(counts, labels)}


def _of(counts: Counts, labels: Sequence[str]) -> Agreement:
    names = Agreement.__dataclass_fields__
    return Agreement(**{name: sum(counts[name, label] for label in labels) for name in names})


def _words(entities: Iterable[Entity]) -> set[tuple[int, str]]:
    return {(position, label) for first, end, label in entities for position in range(first, end)}


def _percent(part: int, whole: int) -> float | None:
    return round(100.0 * part / whole, 2) if whole else None
