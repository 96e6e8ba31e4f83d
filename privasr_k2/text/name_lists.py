"""Public name lists: a folder with one file per class, ``per.txt org.txt loc.txt misc.txt``.

A line is a name and, in all lines of a file or none, a tab and its probability in the class. Lists
must be public: one made from private text is a release of its own.
"""

from __future__ import annotations

import calendar
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.text.entities import TaggedText

_SUM_WITHIN = 1e-6
_UNSAID = re.compile("[^A-Za-z\u00c0-\u024f' ]")  # figures, other scripts
_MARKS = re.compile(r"[<>{}\[\]]")
_DATE_WORDS = (
    "today tomorrow yesterday tonight morning afternoon evening night noon midnight week weekend"
    " month quarter year day hour minute second spring summer autumn winter o'clock last next first"
    " third fourth fifth twentieth one two three four five six seven eight nine ten eleven twelve"
    " fifteen twenty thirty forty fifty hundred thousand"
)


@dataclass(frozen=True)
class NameList:
    """The names of one class.

    Attributes:
        names: as they stand in the file, different after normalization.
        weights: their probabilities, or ``None``.
        places: file and line of each.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...] | None
    places: tuple[str, ...]


def read_name_lists(folder: Path, normalize: Callable[[str], str]) -> dict[str, NameList]:
    """Class -> names, sorted by class.

    Raises:
        DataError: no list in the folder, or, with line: a name without a word, with a marker
            (``<ORG>``, ``{x}``) or a duplicate after ``normalize``; bad or missing weights; an
            empty file.
    """
    lists = {path.stem.upper(): _read(path, normalize) for path in sorted(folder.glob("*.txt"))}
    if not lists:
        expected = "name lists: per.txt org.txt loc.txt misc.txt"
        raise DataError(folder, expected, "none", "name their folder")
    return lists


def _read(path: Path, normalize: Callable[[str], str]) -> NameList:
    lines: dict[str, int] = {}
    names, weights, places = [], [], []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        name, tab, weight = line.partition("\t")
        if mark := _MARKS.search(name):
            found = f"{mark.group()!r} in {name!r}"
            raise DataError(place, "a name of words: no class or marker inside", found, "remove it")
        words = normalize(name)
        if not words:
            raise DataError(place, "a name", repr(line), "remove the line")
        if words in lines:
            found = f"{name!r}, which is {words!r} as line {lines[words]}"
            raise DataError(place, "each name once", found, "remove one of the lines")
        lines[words] = number
        names.append(" ".join(name.split()))
        places.append(place)
        if tab:
            weights.append(_weight(place, weight))
        if weights and len(weights) != len(names):
            expected = "a weight in all lines or in none"
            raise DataError(place, expected, repr(line), "complete the file")
    if not names:
        way_out = "give names, or remove the file"
        raise DataError(path, "a name in each line", "an empty class", way_out)
    if weights and abs(math.fsum(weights) - 1) > _SUM_WITHIN:
        found = f"{math.fsum(weights):.9g}"
        raise DataError(path, "weights that sum to 1", found, "divide them by their sum")
    return NameList(tuple(names), tuple(weights) or None, tuple(places))


def _weight(place: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise DataError(place, "a weight above 0 and at most 1", repr(text), "correct it")
    return value


def names_of(texts: Iterable[TaggedText]) -> dict[str, Counter[str]]:
    """Class -> how often each name stands in tagged text, in normalized words.

    >>> from privasr_k2.text.entities import Entity
    >>> names_of([TaggedText("1", ("ask", "ann"), (Entity(1, 2, "PER"),))])
    {'PER': Counter({'ann': 1})}
    """
    names: dict[str, Counter[str]] = {}
    for text in texts:
        for first, end, label in text.entities or ():
            names.setdefault(label, Counter())[" ".join(text.words[first:end])] += 1
    return dict(sorted(names.items()))


def choose_names(counts: Mapping[str, int], *, at_least: int, most_words: int) -> list[str]:
    """The names with enough mentions, sorted alphabetically so that the order shows no counts.

    A final possessive goes; names with figures or in other scripts, which have no known
    pronunciation, are left out.

    >>> counts = {"ann": 1, "ann's": 1, "bob": 1, "a very long name": 9, "s60": 3}
    >>> choose_names(counts, at_least=2, most_words=2)
    ['ann']
    """
    merged: Counter[str] = Counter()
    for name, count in counts.items():
        merged[name.removesuffix("'s")] += count
    return sorted(
        name
        for name, count in merged.items()
        if name and count >= at_least and name.count(" ") < most_words and not _UNSAID.search(name)
    )


def date_words() -> list[str]:
    """Words of dates and times, which turan2022 counts as ``MISC``."""
    days = [*calendar.day_name, *(name for name in calendar.month_name if name)]
    return sorted({*map(str.lower, days), *_DATE_WORDS.split()})


def split_suffix(word: str) -> tuple[str, str]:
    """A word of a name and its possessive suffix; only the first is replaced.

    >>> split_suffix("ann's"), split_suffix("jones"), split_suffix("o'neill")
    (('ann', "'s"), ('jones', ''), ("o'neill", ''))
    """
    core = word.removesuffix("'s")
    return (core, word[len(core) :]) if core else (word, "")


def words_of(
    lists: Mapping[str, NameList], normalize: Callable[[str], str]
) -> dict[str, list[str]]:
    """Class -> the different words of its names, normalized, without possessives, sorted.

    Raises:
        DataError: a class with fewer than two words, where no other word could replace one.
    """
    words: dict[str, list[str]] = {}
    for label, of_class in lists.items():
        split = (word for name in of_class.names for word in normalize(name).split())
        stems = {split_suffix(word)[0] for word in split}
        if len(stems) < 2:
            expected = f"two different words of {label} or more"
            raise DataError(f"the list {label.lower()}.txt", expected, " ".join(stems), "add names")
        words[label] = sorted(stems)
    return words


def spread(lists: Mapping[str, NameList]) -> Sequence[str]:
    """All names of all classes."""
    return [name for of_class in lists.values() for name in of_class.names]
