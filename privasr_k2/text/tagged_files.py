"""Tagged text in files: JSON Lines, cuts, and plain sentences without entities.

A line is ``{"id", "user", "document", "text", "cased", "entities"}`` (docs/formats.md) or a cut
with the same in its supervision, so ``cuts_<role>.jsonl.gz`` is tagged text too.
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
        DataError: with file and line: no text, bad spans, a duplicate id, or no text at all.
    """
    texts: dict[str, TaggedText] = {}
    paths = list(paths)
    for path in paths:
        for number, record in enumerate(read_jsonl(path), start=1):
            text = _text(f"{path}:{number}", record, nested)
            if text.id in texts:
                found = f"{text.id!r} as {texts[text.id].place}"
                raise DataError(text.place, "each id once", found, "rename one")
            texts[text.id] = text
    if not texts:
        place = " ".join(map(str, paths))
        raise DataError(place, "a text in each line", "no line", "give tagged text")
    return list(texts.values())


def read_sentences(
    path: Path, normalize: Callable[[Sequence[str]], Sequence[str]]
) -> list[TaggedText]:
    """Untagged text, a sentence a line, with line numbers as ids; without lines without a word."""
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
    custom = dict(supervision.get("custom") or {})
    custom["entities"] = [list(entity) for entity in text.entities or ()]
    if text.document:
        custom["document"] = text.document
    return {**cut, "supervisions": [{**supervision, "custom": custom}]}


def needs_entities(texts: Iterable[TaggedText], place: str) -> None:
    """Raise DataError for a text that was never tagged."""
    for text in texts:
        if text.entities is None:
            place, way_out = f"{place} ({text.id})", "tag it: bin.tag_entities"
            raise DataError(place, "entities, if only []", "none", way_out)


def _text(place: str, record: Mapping[str, Any], nested: bool) -> TaggedText:
    name = record.get("id")
    fields: Mapping[str, Any] = record
    custom: Mapping[str, Any] = record
    if "supervisions" in record:
        match record["supervisions"]:
            case [dict() as supervision] if isinstance(supervision.get("custom") or {}, dict):
                custom = supervision.get("custom") or {}
            case _:
                expected = "one supervision in a cut"
                raise DataError(f"{place} ({name})", expected, "others", "prepare the corpus again")
        own = {"user": supervision.get("speaker"), "document": custom.get("document")}
        fields = {**supervision, **own}
    text = fields.get("text")
    if not isinstance(name, (str, int)) or not isinstance(text, str):
        found = f"the keys {' '.join(record)}"
        raise DataError(place, "an id and a text", found, "write tagged text")
    words, entities = tuple(text.split()), custom.get("entities")
    if entities is not None:
        entities = checked(f"{place} ({name})", entities, len(words), nested=nested)
    user, document = (str(fields.get(key) or "") for key in ("user", "document"))
    cased = " ".join(str(custom.get("cased") or "").split())
    return TaggedText(str(name), words, entities, user, document, cased, place)
