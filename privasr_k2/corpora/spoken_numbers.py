"""English words for figures and signs in transcripts: ``Q3``, ``$40 million``, ``2.5%``, ``30th``.

References with figures are spelled out before scoring, each in one full reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from privasr_k2.text.normalize import normalize_english

_BELOW_TWENTY = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
_ONES = _BELOW_TWENTY.split()
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_THOUSANDS = ("", "thousand", "million", "billion", "trillion")
_MAGNITUDE = re.compile(r"-?(?:hundred|thousand|million|billion|trillion)\b", re.IGNORECASE)
_COM = re.compile(r"\.com\b", re.IGNORECASE)
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "nine": "ninth"}
_ORDINALS |= {"eight": "eighth", "twelve": "twelfth"}
_CURRENCIES = {"$": ("dollar", "dollars"), "€": ("euro", "euros"), "£": ("pound", "pounds")}
_MONEY = re.compile(r"([$€£])(\d[\d,]*(?:\.\d+)?|\.\d+)")
_NUMBER = re.compile(
    r"(?<![\d.])(\d[\d,]*)(\.\d+)?(%|(?:st|nd|rd|th)(?![a-z])|'?s(?![a-z]))?", re.IGNORECASE
)
_FRACTION = re.compile(r"\.(\d+)(%?)")  # of no number, or a second one
_LARGEST = 10**15


def cardinal(number: int) -> str:
    """A whole number from 0 to 10^15 - 1, without "and".

    >>> cardinal(1205012)
    'one million two hundred five thousand twelve'
    """
    if number < 20:
        return _ONES[number]
    if number < 100:
        return " ".join([_TENS[number // 10 - 2], *([_ONES[number % 10]] if number % 10 else [])])
    words: list[str] = []
    for power in range(len(_THOUSANDS) - 1, -1, -1):
        part = number // 1000**power % 1000
        if part:
            hundreds, rest = divmod(part, 100)
            words += [_ONES[hundreds], "hundred"] if hundreds else []
            words += [cardinal(rest)] if rest else []
            words += [_THOUSANDS[power]] if power else []
    return " ".join(words)


def ordinal(number: int) -> str:
    """The ordinal of a whole number.

    >>> ordinal(31), ordinal(20)
    ('thirty first', 'twentieth')
    """
    *before, last = cardinal(number).split()
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return " ".join([*before, _ORDINALS.get(last, regular)])


def year(number: int) -> str:
    """A number of four digits as years are read.

    >>> year(2020), year(2009), year(1905), year(1900)
    ('twenty twenty', 'two thousand nine', 'nineteen oh five', 'nineteen hundred')
    """
    century, rest = divmod(number, 100)
    if century % 10 == 0 and rest < 10:
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def spoken_words(tokens: Sequence[str]) -> list[str]:
    """The words that tokens are read as, in the form of :func:`normalize_english`.

    Figures are spelled out, ``&`` is "and", ``.com`` "dot com". A currency follows its amount and
    magnitude. Hyphens and slashes separate words; markers such as ``<inaudible>`` go.

    >>> " ".join(spoken_words(["In", "Q3", ",", "$40", "million", "up", "2.5%", "in", "2019-"]))
    'in q three forty million dollars up two point five percent in twenty nineteen'
    """
    return [word for of_token in spoken_by_token(tokens) for word in of_token]


def spoken_by_token(tokens: Sequence[str]) -> Iterator[list[str]]:
    """The words of :func:`spoken_words`, token by token.

    >>> list(spoken_by_token(["$40", "million", "--", "Q3"]))
    [['forty'], ['million', 'dollars'], [], ['q', 'three']]
    """
    owed = ""  # the currency of an amount whose magnitude comes next
    for token, following in zip(tokens, [*tokens[1:], ""]):
        text, last = token, owed
        owed = ""
        money = _MONEY.search(text)
        if money is not None:
            one, several = _CURRENCIES[money[1]]
            said, behind = money[2].replace(",", ""), text[money.end() :]
            whole, _, cents = said.partition(".")
            whole, of_one = whole or "0", said == "1"
            said = _spelled(whole, cents)  # no amount is a year
            if _MAGNITUDE.match(behind):
                last = several
            elif _MAGNITUDE.match(following):
                owed = several
            elif len(cents) == 2 and one == "dollar":
                dollars = "" if whole == "0" else f"{_counted(whole, 'dollar')} and "
                said = f"{dollars}{_counted(str(int(cents)), 'cent')}"
            else:
                said = f"{said} {one if of_one else several}"
            text = f"{text[: money.start()]} {said} {behind}"
        text = _COM.sub(" dot com ", text.replace("&", " and "))
        text = _FRACTION.sub(_read_fraction, _NUMBER.sub(_read, text))
        yield [*normalize_english(text).split(), *([last] if last else [])]


def spoken(text: str) -> str:
    """The words of :func:`spoken_words` of a text, separated by single blanks.

    >>> spoken("At 17:30, section 328.")
    'at seventeen thirty section three hundred twenty eight'
    """
    return " ".join(spoken_words(text.split()))


def _counted(number: str, one: str) -> str:
    return f"{_spelled(number)} {one if number == '1' else one + 's'}"


def _figures(figures: str) -> str:
    return " ".join(_ONES[int(figure)] for figure in figures)


def _spelled(whole: str, fraction: str = "") -> str:
    code = int(whole) >= _LARGEST or (len(whole) > 1 and whole[0] == "0")  # figure by figure
    read = _figures(whole) if code else cardinal(int(whole))
    return f"{read} point {_figures(fraction)}" if fraction else read


def _read_fraction(match: re.Match[str]) -> str:
    return f" point {_figures(match[1])} {'percent' if match[2] else ''} "


def _read(match: re.Match[str]) -> str:
    figures, fraction, ending = match[1], (match[2] or "")[1:], (match[3] or "").lower()
    whole = figures.replace(",", "")
    number = int(whole)
    if ending in ("st", "nd", "rd", "th") and number < _LARGEST:
        return f" {ordinal(number)} "
    alone = not fraction and "," not in figures and len(figures) == 4 and figures[0] in "12"
    is_year = alone and ending != "%" and 1100 <= number < 2100
    read = year(number) if is_year else _spelled(whole, fraction)
    if ending == "%":
        read += " percent"
    elif ending.endswith("s"):  # 90s, 2020's
        read = read[:-1] + "ies" if read.endswith("y") else f"{read}s"
    return f" {read} "
