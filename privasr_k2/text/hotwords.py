"""Lists of hotwords: what a user is likely to say, such as the names of contacts.

A line is a word or a phrase of words and, maybe, a tab and the phrase's own bonus: natural log, for
each of its words. :mod:`privasr_k2.graph.hotwords` puts a list into a decoding graph. A file with
the lists of many speakers has the speaker and a tab before that.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Interval

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.text.normalize import normalize_english

#: Larger ones would drown the scores in the rounding of float32.
MOST_BONUS = 100.0
Bonus = Annotated[float, Interval(ge=0, le=MOST_BONUS)]
LogProb = Annotated[float, Interval(ge=-MOST_BONUS, le=0)]


@dataclass(frozen=True)
class Hotword:
    """A word or a phrase.

    Attributes:
        words: normalized, at least one.
        bonus: of each word, natural log, 0 to :data:`MOST_BONUS`; ``None``: that of the settings.
        place: file and line.
    """

    words: tuple[str, ...]
    bonus: float | None
    place: str


@dataclass(frozen=True)
class Hotwords:
    """A list.

    Attributes:
        name: that of the file, without its suffix.
        entries: different phrases, at least one, in the order of the file.
    """

    name: str
    entries: tuple[Hotword, ...]


def read_hotwords(path: Path) -> Hotwords:
    """Read a list; blank lines are skipped, and a phrase that stands there again counts once.

    Raises:
        DataError: no file, or one without a phrase; with its line: text that is not UTF-8, a
            control or format character, nothing but signs, a bonus that is no number from 0 to
            :data:`MOST_BONUS`, or one phrase with two bonuses.
    """
    entries: dict[tuple[str, ...], Hotword] = {}
    for place, text in _lines(path):
        _add(entries, place, text)
    if not entries:
        raise DataError(path, "a word or a phrase in a line", "none", "give names, or no list")
    return Hotwords(path.stem, tuple(entries.values()))


def read_speaker_lists(path: Path) -> dict[str, Hotwords]:
    """Speaker -> list. A line is a speaker, a tab and a line of :func:`read_hotwords`.

    Raises:
        DataError: as :func:`read_hotwords`, or a line without a speaker.
    """
    entries: dict[str, dict[tuple[str, ...], Hotword]] = {}
    for place, line in _lines(path):
        speaker, tab, text = line.partition("\t")
        if not tab or not speaker.strip():
            expected = "a speaker, a tab and a name"
            raise DataError(place, expected, repr(line), "correct the line")
        _add(entries.setdefault(speaker.strip(), {}), place, text)
    if not entries:
        raise DataError(path, "a speaker and a name in a line", "none", "give lists")
    return {who: Hotwords(path.stem, tuple(listed.values())) for who, listed in entries.items()}


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Place and text of each line that is not blank."""
    if not path.is_file():
        raise DataError(path, "a list of hotwords", "no such file", "correct the name")
    for number, line in read_lines(path):
        text = line.removeprefix("\ufeff") if number == 1 else line  # Windows marks UTF-8 so
        if text.strip():
            yield f"{path}:{number}", text


def _add(entries: dict[tuple[str, ...], Hotword], place: str, text: str) -> None:
    entry = _entry(place, text)
    known = entries.setdefault(entry.words, entry)
    if known.bonus != entry.bonus:
        expected = f"the bonus of {known.place}, which has the same words"
        raise DataError(entry.place, expected, repr(text), "remove one of the lines")


def _entry(place: str, text: str) -> Hotword:
    phrase, tab, bonus = text.partition("\t")
    for character in phrase + bonus:
        if unicodedata.category(character)[0] == "C":
            expected, found = "a word or a phrase, maybe a tab and its bonus", repr(character)
            raise DataError(place, expected, f"the character {found}", "remove it")
    words = tuple(normalize_english(phrase).split())
    if not words:
        raise DataError(place, "a word or a phrase", repr(phrase), "remove the line")
    return Hotword(words, _bonus(place, bonus) if tab else None, place)


def _bonus(place: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_BONUS:
        expected = f"a bonus from 0 to {MOST_BONUS:g} behind the tab"
        raise DataError(place, expected, repr(text), "correct it, or remove the tab")
    return value
