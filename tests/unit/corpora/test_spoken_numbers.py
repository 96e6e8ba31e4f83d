"""How figures and signs are read."""

from __future__ import annotations

import pytest

from privasr_k2.corpora.spoken_numbers import cardinal, ordinal, spoken_words, year


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ("Q3 2020", "q three twenty twenty"),
        ("$40 million loss", "forty million dollars loss"),
        ("$1", "one dollar"),
        ("$1.5 billion.", "one point five billion dollars"),
        ("$2.50", "two dollars and fifty cents"),
        ("$0.45", "forty five cents"),
        ("$0.01 $1.01", "one cent one dollar and one cent"),
        ("€3", "three euros"),
        ("a $100-million plan", "a one hundred million dollars plan"),
        ("50% of 1,250", "fifty percent of one thousand two hundred fifty"),
        ("the 31st and 20th", "the thirty first and twentieth"),
        ("COVID-19 non-GAAP", "covid nineteen non gaap"),
        ("M&A R&D", "m and a r and d"),
        ("YETI.com", "yeti dot com"),
        ("the- w- <inaudible> it's-", "the w it's"),
        ("the 90s and 1960s", "the nineties and nineteen sixties"),
        ("8:00 007", "eight zero zero zero zero seven"),
        (
            "2000 1,999 1999",
            "two thousand one thousand nine hundred ninety nine nineteen ninety nine",
        ),
        ("3.05%", "three point zero five percent"),
        ("* / ,", ""),
        ("10-15 AFM13", "ten fifteen afm thirteen"),
        ("$2,019", "two thousand nineteen dollars"),
        ("$2019 million", "two thousand nineteen million dollars"),
        ("$1,234.56", "one thousand two hundred thirty four dollars and fifty six cents"),
        (
            "€1,984.5 $2019.00",
            "one thousand nine hundred eighty four point five euros "
            "two thousand nineteen dollars and zero cents",
        ),
        (".50 $.50 -.5%", "point five zero fifty cents point five percent"),
        ("1.1.2 v2.0.1.", "one point one point two v two point zero point one"),
    ],
)
def test_tokens(tokens: str, words: str) -> None:
    assert " ".join(spoken_words(tokens.split())) == words


def test_words_stay_as_they_are() -> None:
    words = ["we're", "going", "to", "dwell", "on", "it's", "well", "known"]
    assert spoken_words(words) == words


def test_whole_numbers() -> None:
    assert cardinal(0) == "zero" and cardinal(13) == "thirteen"
    assert cardinal(110) == "one hundred ten"
    assert cardinal(10**12) == "one trillion"
    assert ordinal(12) == "twelfth" and ordinal(101) == "one hundred first"
    assert ordinal(8) == "eighth"
    assert year(1111) == "eleven eleven" and year(2000) == "two thousand"
    assert " ".join(spoken_words(["1234567890123456"])).startswith("one two three four")
    assert spoken_words(["1234567890123456th"])[-1] == "six"
