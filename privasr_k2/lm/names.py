"""Training data of a class LM: text in which names are marked or stand as tags, and lists of names.

JSON Lines (``*.jsonl``, ``*.jsonl.gz``; cuts too) hold words and the spans of names
(:mod:`privasr_k2.text.tagged_files`). In plain text, a sentence a line, names may stand as tags
(``<PER>``).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.lm.sub_lm import Name
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.name_lists import names_of, read_name_lists
from privasr_k2.text.tagged_files import read_tagged
from privasr_k2.text.tags import is_tag, tag_of

log = logging.getLogger(__name__)

_SHOWN = 5


def read_text(path: Path, classes: Collection[str] | None = None) -> list[TaggedText]:
    """The texts of a file that have words.

    Args:
        classes: the classes that may be marked; None: any.

    Raises:
        DataError: with file and line or id: no text, impossible spans, a tag inside a name, a class
            outside ``classes``.
    """
    if not path.is_file():
        raise DataError(path, "text", "no such file", "correct the name")
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        places = ((f"{text.place} ({text.id})", text) for text in read_tagged([path]))
    else:
        lines = ((f"{path}:{number}", tuple(line.split())) for number, line in read_lines(path))
        places = ((where, TaggedText(where, words, None, place=where)) for where, words in lines)
    tagged = []
    for where, text in places:
        _refuse_nested(where, text)
        if classes is not None:
            _refuse_other_classes(where, text, classes)
        if text.words:
            tagged.append(text)
    return tagged


def read_texts(paths: Iterable[Path], classes: Collection[str] | None = None) -> list[TaggedText]:
    """The texts of several files, as :func:`read_text`; a file named twice counts twice."""
    return [text for path in paths for text in read_text(path, classes)]


def read_words(paths: Iterable[Path]) -> list[list[str]]:
    """The words of all texts of several files; marked names are words like others."""
    return [list(text.words) for text in read_texts(paths)]


def _refuse_other_classes(place: str, text: TaggedText, classes: Collection[str]) -> None:
    tags = {word[1:-1] for word in text.words if is_tag(word)}
    others = sorted((tags | {kind for _, _, kind in text.entities or ()}) - set(classes))
    if others:
        way_out = "add it to 'classes', or take the marks out"
        raise DataError(place, f"the classes {' '.join(classes)}", others[0], way_out)


def _refuse_nested(place: str, text: TaggedText) -> None:
    """Classes are not nested; a span that is its own class's tag is that class again."""
    for first, end, kind in text.entities or ():
        words = text.words[first:end]
        if words != (tag_of(kind),) and any(map(is_tag, words)):
            expected = f"words in a name of {kind} (classes are not nested)"
            raise DataError(place, expected, " ".join(words), "take the tag out of the name")


def mentions(texts: Sequence[TaggedText]) -> dict[str, dict[Name, float]]:
    """For each class, how often each name is marked; a span of its own tag is no name."""
    counts: dict[str, dict[Name, float]] = {}
    for kind, names in names_of(texts).items():
        for name, count in names.items():
            if name != tag_of(kind):
                counts.setdefault(kind, {})[tuple(name.split())] = float(count)
    return counts


def mention_places(texts: Sequence[TaggedText]) -> dict[str, dict[Name, str]]:
    """For each class, file and line where each name is marked first.

    >>> from privasr_k2.text.entities import Entity
    >>> mention_places([TaggedText("1", ("ask", "ann"), (Entity(1, 2, "PER"),), place="a.jsonl:7")])
    {'PER': {('ann',): 'a.jsonl:7'}}
    """
    places: dict[str, dict[Name, str]] = {}
    for text in texts:
        for first, end, kind in text.entities or ():
            places.setdefault(kind, {}).setdefault(text.words[first:end], text.place)
    return places


def read_lists(folder: Path, normalize: Callable[[str], str]) -> dict[str, Mapping[Name, float]]:
    """For each class, the names in a folder's lists (``per.txt``, ``org.txt``, ...) and their P.

    Args:
        normalize: as the words of the text.

    Raises:
        DataError: as :func:`privasr_k2.text.name_lists.read_name_lists`.
    """
    return {
        kind: dict(zip(_words(listed.names, normalize), listed.weights or itertools.repeat(even)))
        for kind, listed in read_name_lists(folder, normalize).items()
        for even in [1.0 / max(1, len(listed.names))]
    }


def list_places(folder: Path, normalize: Callable[[str], str]) -> dict[str, dict[Name, str]]:
    """For each class, file and line of each name of :func:`read_lists`."""
    return {
        kind: dict(zip(_words(listed.names, normalize), listed.places))
        for kind, listed in read_name_lists(folder, normalize).items()
    }


def _words(names: Sequence[str], normalize: Callable[[str], str]) -> list[Name]:
    return [tuple(normalize(name).split()) for name in names]


def check_spoken(
    kind: str, names: Mapping[Name, float], spoken: Collection[str], places: Mapping[Name, str]
) -> None:
    """Log the names, with probabilities, of a class with words outside the lexicon ``spoken``.

    ``places`` (file and line of names) also orders them.

    Raises:
        DataError: no name is left; with file and line of the first.
    """
    lost = [name for name in names if not all(word in spoken for word in name)]
    if not lost:
        return
    rank = {name: number for number, name in enumerate(places)}
    lost.sort(key=lambda name: rank.get(name, len(rank)))
    where = [places.get(name) or "the text" for name in lost[:_SHOWN]]
    shown = "; ".join(
        f"{place}: {' '.join(name)!r} ({' '.join(word for word in name if word not in spoken)})"
        for place, name in zip(where, lost)
    )
    if len(lost) == len(names):
        expected = f"a name of {kind} with all its words in words.txt"
        found = f"words that it lacks, in brackets: {shown}"
        raise DataError(where[0], expected, found, "add words to the lexicon, or names to the list")
    mass = 100 * sum(names[name] for name in lost)
    counts = f"{len(lost)} of {len(names)} names ({mass:.1f} % in mass)"
    log.warning("class %s: %s with words outside words.txt are left out: %s", kind, counts, shown)
