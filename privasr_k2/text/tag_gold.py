"""Annotated entities: CoNLL files and the gold words of Earnings-21, in the corpus's own labels.

Those of AMI and ``mini`` stand in the cuts (:func:`privasr_k2.text.tagged_files.read_tagged`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.text.entities import Entity, TaggedText, moved

_EARNINGS21 = ("idx", "token", "speaker", "punct", "entities")
_SENTENCE_END = frozenset(".?!")
_MARK = re.compile(r"\d+:[A-Z_]+")


@dataclass(frozen=True)
class GoldText:
    """A sentence as it is written, with entities in the corpus's own labels."""

    id: str
    tokens: tuple[str, ...]
    entities: tuple[Entity, ...]
    user: str = ""
    document: str = ""
    first: int = 0
    """Number of its first token in the document."""


def conll_files(given: Iterable[Path]) -> dict[str, Path]:
    """Name (up to the first dot) -> file, for files and for those beneath folders, sorted.

    Raises:
        DataError: a folder without such a file, or two files of one name.
    """
    files: dict[str, Path] = {}
    for path in given:
        listed = sorted(filter(_is_conll, path.rglob("*.conll*"))) if path.is_dir() else [path]
        if not listed:
            expected = "*.conll or *.conll.txt, maybe .gz"
            raise DataError(path, expected, "none beneath", "correct the folder")
        for file in listed:
            first = files.setdefault(file.name.split(".")[0], file)
            if first != file:
                found = f"the name of {first}"
                raise DataError(file, "files of different names", found, "rename one")
    return files


def _is_conll(path: Path) -> bool:
    return re.search(r"\.conll(\.txt)?(\.gz)?$", path.name) is not None


def tagged(
    gold: Iterable[GoldText], normalize: Callable[[Sequence[str]], Sequence[str]]
) -> list[TaggedText]:
    """Texts with normalized words and spans of these; texts without a word are left out."""
    texts = []
    for text in gold:
        words = tuple(normalize(text.tokens))
        entities = moved(text.tokens, text.entities, len(words), normalize)
        if words:
            cased = " ".join(text.tokens)
            texts.append(TaggedText(text.id, words, entities, text.user, text.document, cased))
    return texts


def read_conll(path: Path) -> Iterator[GoldText]:
    """Sentences of a CoNLL file: a token and, last, its tag on each line, blank lines between.

    Tags are ``O``, ``B-label`` and ``I-label``, as IOB2 (WNUT17) or IOB1 (wikigold, CoNLL-2003).
    ``-DOCSTART-`` lines begin documents; without them sentences have no document.

    Raises:
        DataError: with line: no two columns, or another tag.
    """
    tokens: list[str] = []
    tags: list[str] = []
    number = start = 1
    document = ""

    def sentence() -> GoldText:
        name = f"{path.name}:{start}"
        return GoldText(name, tuple(tokens), _spans(tags), document=document)

    for number, line in read_lines(path):
        columns = line.split()
        if not columns or columns[0] == "-DOCSTART-":
            if tokens:
                yield sentence()
            tokens, tags, start = [], [], number + 1
            if columns:
                document = f"{path.name}:{number}"
            continue
        if len(columns) < 2 or not (columns[-1] == "O" or columns[-1][:2] in ("B-", "I-")):
            expected = "a token and one of the tags O, B-label, I-label"
            raise DataError(f"{path}:{number}", expected, repr(line)[:60], "correct the line")
        tokens.append(columns[0])
        tags.append(columns[-1])
    if tokens:
        yield sentence()


def _spans(tags: Sequence[str]) -> tuple[Entity, ...]:
    """Runs of tags; ``I`` after another label begins an entity, too.

    >>> [tuple(span) for span in _spans(["I-LOC", "I-LOC", "B-LOC", "O", "I-ORG"])]
    [(0, 2, 'LOC'), (2, 3, 'LOC'), (4, 5, 'ORG')]
    """
    spans: list[Entity] = []
    for position, tag in enumerate(tags):
        kind, label = tag[:1], tag[2:]
        if kind == "I" and spans and spans[-1].end == position and spans[-1].label == label:
            spans[-1] = spans[-1]._replace(end=position + 1)
        elif kind != "O":
            spans.append(Entity(position, position + 1, label))
    return tuple(spans)


def read_earnings21(path: Path) -> list[GoldText]:
    """Sentences of one call: they end at ``.?!``, or with the speaker, and outside of entities.

    Entities may nest (``third quarter`` holds an ordinal); all are given.

    Raises:
        DataError: with line: other columns, or an entity that is not ``id:LABEL``.
    """
    rows: list[list[str]] = []
    for place, row in earnings21_rows(path):
        for mark in row[4].split():
            if not _MARK.fullmatch(mark):
                raise DataError(place, "entities as id:LABEL", repr(mark), "correct the line")
        rows.append(row)
    return list(_sentences(path.name.split(".")[0], rows))


def earnings21_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """``file:line`` and ``idx token speaker punct entities`` of every token of a call.

    Raises:
        DataError: with line: other columns.
    """
    for number, line in read_lines(path):
        row = line.split("\t")
        if len(row) != len(_EARNINGS21) or (number == 1 and tuple(row) != _EARNINGS21):
            expected = f"the columns {' '.join(_EARNINGS21)}"
            raise DataError(f"{path}:{number}", expected, repr(line)[:60], "correct the line")
        if number > 1:
            yield f"{path}:{number}", row


def _sentences(call: str, rows: Sequence[Sequence[str]]) -> Iterator[GoldText]:
    marks = [frozenset(row[4].split()) for row in rows]
    start = 0
    for position, row in enumerate(rows):
        following = rows[position + 1] if position + 1 < len(rows) else None
        inside = following is not None and not marks[position].isdisjoint(marks[position + 1])
        ends = following is None or row[3] in _SENTENCE_END or following[2] != row[2]
        if inside or not ends:
            continue
        part, of_part = rows[start : position + 1], marks[start : position + 1]
        yield GoldText(
            f"{call}-{start:06d}",
            tuple(token + mark for _, token, _, mark, _ in part),
            _marked(of_part),
            user=f"{call}_{part[0][2]}",
            document=call,
            first=start,
        )
        start = position + 1


def _marked(marks: Sequence[frozenset[str]]) -> tuple[Entity, ...]:
    """From each token's marks, ``id:LABEL``, to spans: first to last token with the mark."""
    places: dict[str, list[int]] = {}
    for position, of_token in enumerate(marks):
        for mark in of_token:
            places.setdefault(mark, []).append(position)
    spans = (Entity(at[0], at[-1] + 1, mark.partition(":")[2]) for mark, at in places.items())
    return tuple(sorted(spans))
