"""What a class LM learns from: text in which names are marked or stand as tags, and lists of names.

Text is read in two forms. JSON Lines (``*.jsonl``, ``*.jsonl.gz``; cuts too) hold words and the spans of
names (:mod:`privasr_k2.text.tagged_files`). In plain text, a sentence a line, names may stand as tags
(``<PER>``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.lm.sub_lm import Name
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.name_lists import names_of, read_name_lists
from privasr_k2.text.tagged_files import read_tagged

_TAG = re.compile(r"<[A-Z][A-Z0-9_]*>")


def tag_of(class_name: str) -> str:
    """The symbol of a class in text and in the root model.

    >>> tag_of("PER")
    '<PER>'
    """
    return f"<{class_name}>"


def with_tags(text: TaggedText) -> list[str]:
    """The words of a text with one tag in place of each name.

    >>> from privasr_k2.text.entities import Entity
    >>> with_tags(TaggedText("1", ("ask", "ann", "lee", "now"), (Entity(1, 3, "PER"),)))
    ['ask', '<PER>', 'now']
    """
    found: list[str] = []
    place = 0
    for first, end, kind in text.entities or ():
        found += [*text.words[place:first], tag_of(kind)]
        place = end
    return found + list(text.words[place:])


def read_text(path: Path, classes: Collection[str] | None = None) -> list[TaggedText]:
    """The texts of a file; those without words are left out.

    Args:
        classes: None takes whatever is marked.

    Raises:
        DataError: with file and line or id: what is no text, spans that cannot be, a class that is none of
            ``classes``.
    """
    if not path.is_file():
        raise DataError(path, "text", "no such file", "correct the name")
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        places = ((f"{path} ({text.id})", text) for text in read_tagged([path]))
    else:
        lines = ((f"{path}:{number}", tuple(line.split())) for number, line in read_lines(path))
        places = ((place, TaggedText(place, words, None)) for place, words in lines)
    found = []
    for place, text in places:
        if classes is not None:
            _refuse_other_classes(place, text, classes)
        if text.words:
            found.append(text)
    return found


def read_texts(paths: Iterable[Path], classes: Collection[str] | None = None) -> list[TaggedText]:
    """The texts of several files, one after the other, as :func:`read_text` reads each.

    An id stands once in a file; other files may have it again, and a file that is named twice counts twice.
    """
    return [text for path in paths for text in read_text(path, classes)]


def read_words(paths: Iterable[Path]) -> list[list[str]]:
    """The words of all texts of several files; marked names are words like others."""
    return [list(text.words) for text in read_texts(paths)]


def _refuse_other_classes(place: str, text: TaggedText, classes: Collection[str]) -> None:
    tags = {word[1:-1] for word in text.words if word.startswith("<") and _TAG.fullmatch(word)}
    others = sorted((tags | {kind for _, _, kind in text.entities or ()}) - set(classes))
    if others:
        way_out = "add it to 'classes', or take the marks out"
        raise DataError(place, f"the classes {' '.join(classes)}", others[0], way_out)


def mentions(texts: Sequence[TaggedText]) -> dict[str, dict[Name, float]]:
    """For each class, how often each name is marked."""
    return {
        kind: {tuple(name.split()): float(count) for name, count in names.items()}
        for kind, names in names_of(texts).items()
    }


def read_lists(folder: Path, normalize: Callable[[str], str]) -> dict[str, Mapping[Name, float]]:
    """The lists of a folder (``per.txt``, ``org.txt``, ...): for each class names and their probabilities.

    Args:
        normalize: as the words of the text are.

    Raises:
        DataError: as :func:`privasr_k2.text.name_lists.read_name_lists`.
    """
    return {
        kind: {
            tuple(normalize(name).split()): weight
            for name, weight in zip(one.names, one.weights or [1.0 / len(one.names)] * len(one.names))
        }
        for kind, one in read_name_lists(folder, normalize).items()
    }
