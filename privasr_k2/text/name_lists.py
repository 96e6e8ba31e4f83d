"""Public name lists: a folder with a file a class, ``per.txt org.txt loc.txt misc.txt``, a name a
line.

A line may have a second column, parted by a tab, with the probability of the name in its class: all
lines of a file or none. Lists must be public. One that was made from private text is a release of
its own.
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
        names: blank-parted words as they stand in the file, no two with the same normalized words.
        weights: their probabilities, or ``None`` where the file has none.
        places: file and line of each.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...] | None
    places: tuple[str, ...]


def read_name_lists(folder: Path, normalize: Callable[[str], str]) -> dict[str, NameList]:
    """Class -> names, sorted by class.

    Raises:
        DataError: no list in the folder; with line: a name without a word, with a class or a marker
            inside (``<ORG>``, ``{x}``, ``[x]``), or that stands twice (as ``normalize`` leaves it),
            a weight that is no number above 0, lines with and without; weights that do not sum to
            1; a file without a name.
    """
    lists = {path.stem.upper(): _read(path, normalize) for path in sorted(folder.glob("*.txt"))}
    if not lists:
        raise DataError(
            folder, "name lists: per.txt org.txt loc.txt misc.txt", "none", "name their folder"
        )
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
            raise DataError(
                place, "a weight in all lines or in none", repr(line), "complete the file"
            )
    if not names:
        raise DataError(
            path, "a name in each line", "an empty class", "give names, or remove the file"
        )
    if weights and abs(math.fsum(weights) - 1) > _SUM_WITHIN:
        raise DataError(
            path, "weights that sum to 1", f"{math.fsum(weights):.9g}", "divide them by their sum"
        )
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
    """The names that stand in the text so often, sorted: alphabetical, so that the order tells no
    counts.

    A possessive at the end goes; names with figures or in other scripts are left out, as
    nobody knows how they are said.

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
    """Words of dates and times, which turan2022 counts as ``MISC``: weekdays, months, small
    numbers.
    """
    days = [*calendar.day_name, *(name for name in calendar.month_name if name)]
    return sorted({*map(str.lower, days), *_DATE_WORDS.split()})


def split_suffix(word: str) -> tuple[str, str]:
    """A word of a name and what grammar adds to it: replaced is the first, the second stays.

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
        DataError: a class with fewer than two words: then nothing can be replaced by another word.
    """
    words: dict[str, list[str]] = {}
    for label, of_class in lists.items():
        stems = {
            split_suffix(word)[0] for name in of_class.names for word in normalize(name).split()
        }
        if len(stems) < 2:
            expected = f"two different words of {label} or more"
            raise DataError(f"the list {label.lower()}.txt", expected, " ".join(stems), "add names")
        words[label] = sorted(stems)
    return words


def spread(lists: Mapping[str, NameList]) -> Sequence[str]:
    """All names of all classes."""
    return [name for of_class in lists.values() for name in of_class.names]
