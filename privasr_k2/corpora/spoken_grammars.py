"""Small public grammars as lists of phrases: spelled letters, numbers, dates.

They are written by hand and know no private text. As the names of a class with a bigram sub-model
(:mod:`privasr_k2.lm.sub_lm`) their words follow each other in every order that some phrase has.
"""

from __future__ import annotations

import calendar
import itertools
import string
from collections.abc import Callable, Mapping

from privasr_k2.corpora.spoken_numbers import cardinal, ordinal, year

_YEARS = range(1900, 2031)


def letters() -> list[str]:
    """Each letter, and each after each.

    >>> len(letters()), letters()[26:28]
    (702, ['a a', 'a b'])
    """
    pairs = itertools.product(string.ascii_lowercase, repeat=2)
    return [*string.ascii_lowercase, *map(" ".join, pairs)]


def numbers() -> list[str]:
    """Numbers to 999, and one figure after another.

    >>> numbers()[305], "oh seven" in numbers()
    ('three hundred five', True)
    """
    figures = [*map(cardinal, range(10)), "oh"]
    pairs = map(" ".join, itertools.product(figures, repeat=2))
    return [*map(cardinal, range(1000)), *pairs]


def dates() -> list[str]:
    """Every day of a leap year, alone and with a year; all years of 1900 to 2030 are among them.

    >>> dates()[:2]
    ['january first', 'january first nineteen hundred']
    """
    found = []
    days = [(month, day) for month in range(1, 13)
            for day in range(1, calendar.monthrange(2000, month)[1] + 1)]  # fmt: skip
    for place, (month, day) in enumerate(days):
        said = f"{calendar.month_name[month].lower()} {ordinal(day)}"
        found += [said, f"{said} {year(_YEARS[place % len(_YEARS)])}"]
    return found


#: Class, in small letters -> its phrases.
GRAMMARS: Mapping[str, Callable[[], list[str]]] = {
    "letters": letters,
    "number": numbers,
    "date": dates,
}
