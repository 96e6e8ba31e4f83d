"""Tagged text in files: JSON Lines of our own, cuts, and plain sentences without entities.

A line of a tagged text is ``{"id", "user", "document", "text", "cased", "entities"}``
(docs/formats.md); a cut has the same in its supervision. Both are told apart line by line, so every
reader of tagged text reads ``cuts_<role>.jsonl.gz`` as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl, read_lines, write_jsonl
from privasr_k2.text.entities import TaggedText, checked


def read_tagged(paths: Iterable[Path], *, nested: bool = False) -> list[TaggedText]:
    """The texts of several files, in order.

    Args:
        nested: whether entities may overlap, as those of annotated corpora do.

    Raises:
        DataError: with file and line: no text, spans that cannot be, an id that stands twice, or no
            text at all.
    """
    texts: list[TaggedText] = []
    seen: dict[str, str] = {}
    paths = list(paths)
    for path in paths:
        for number, record in enumerate(read_jsonl(path), start=1):
            text = _text(f"{path}:{number}", record, nested)
            if text.id in seen:
                raise DataError(
                    f"{path}:{number}",
                    "each id once",
                    f"{text.id!r} as {seen[text.id]}",
                    "rename one",
                )
            seen[text.id] = f"{path}:{number}"
            texts.append(text)
    if not texts:
        raise DataError(
            " ".join(map(str, paths)), "a text in each line", "no line", "give tagged text"
        )
    return texts


def read_sentences(
    path: Path, normalize: Callable[[Sequence[str]], Sequence[str]]
) -> list[TaggedText]:
    """Plain text, a sentence a line, not tagged; ids are line numbers. Lines without a word are
    left out.
    """
    texts = []
    for number, line in read_lines(path):
        tokens = line.split()
        words = tuple(normalize(tokens))
        if words:
            texts.append(TaggedText(f"{path.name}:{number}", words, None, cased=" ".join(tokens)))
    return texts


def write_tagged(path: Path, texts: Iterable[TaggedText]) -> None:
    """Write JSON Lines, gzipped where the name ends in ``.gz``, atomically."""
    write_jsonl(path, map(to_record, texts))


def to_record(text: TaggedText) -> dict[str, Any]:
    """A line of the file; empty fields are left out.

    >>> from privasr_k2.text.entities import Entity
    >>> to_record(TaggedText("1", ("hi", "ann"), (Entity(1, 2, "PER"),)))
    {'id': '1', 'text': 'hi ann', 'entities': [[1, 2, 'PER']]}
    """
    record: dict[str, Any] = {"id": text.id}
    record |= {name: value for name in ("user", "document") if (value := getattr(text, name))}
    record["text"] = " ".join(text.words)
    if text.cased:
        record["cased"] = text.cased
    if text.entities is not None:
        record["entities"] = [list(entity) for entity in text.entities]
    return record


def with_entities(cut: Mapping[str, Any], text: TaggedText) -> dict[str, Any]:
    """A cut, as it stands in its file, with the entities and the document of its text."""
    supervision = cut["supervisions"][0]
    custom = {
        **(supervision.get("custom") or {}),
        "entities": [list(e) for e in text.entities or ()],
    }
    if text.document:
        custom["document"] = text.document
    return {**cut, "supervisions": [{**supervision, "custom": custom}]}


def needs_entities(texts: Iterable[TaggedText], place: str) -> None:
    """Refuse texts that were never tagged: nothing would be replaced in them.

    Raises:
        DataError: naming the first.
    """
    for text in texts:
        if text.entities is None:
            raise DataError(
                f"{place} ({text.id})", "entities, if only []", "none", "tag it: bin.tag_entities"
            )


def _text(place: str, record: Mapping[str, Any], nested: bool) -> TaggedText:
    name = record.get("id")
    fields: Mapping[str, Any] = record
    custom: Mapping[str, Any] = record
    if "supervisions" in record:
        supervisions = record["supervisions"]
        supervision = (
            supervisions[0] if isinstance(supervisions, list) and len(supervisions) == 1 else None
        )
        if not isinstance(supervision, dict) or not isinstance(
            supervision.get("custom") or {}, dict
        ):
            raise DataError(
                f"{place} ({name})",
                "one supervision in a cut",
                "others",
                "prepare the corpus again",
            )
        custom = supervision.get("custom") or {}
        fields = {
            **supervision,
            "user": supervision.get("speaker"),
            "document": custom.get("document"),
        }
    words = fields.get("text")
    if not isinstance(name, (str, int)) or not isinstance(words, str):
        raise DataError(
            place, "an id and a text", f"the keys {' '.join(record)}", "write tagged text"
        )
    split = tuple(words.split())
    entities = custom.get("entities")
    spans = (
        None
        if entities is None
        else checked(f"{place} ({name})", entities, len(split), nested=nested)
    )
    return TaggedText(
        str(name),
        split,
        spans,
        str(fields.get("user") or ""),
        str(fields.get("document") or ""),
        " ".join(str(custom.get("cased") or "").split()),
        place,
    )
