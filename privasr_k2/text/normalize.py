"""From text as found to the words of transcripts, language models and lexicons."""

from __future__ import annotations

import re
import unicodedata

_MARKERS = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|<[^<>\s]*>")
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u02b9\u2032\u00b4`\uff07]")
_NOT_WORD = re.compile(r"[^\w']|_")
_OUTER_APOSTROPHES = re.compile(r"(?<!\w)'+|'+(?!\w)")
_PLAIN = re.compile(r"[a-z]+(?: [a-z]+)*")


def remove_markers(text: str) -> str:
    """Without braces, brackets, angle brackets and what they enclose.

    >>> remove_markers("Yeah {vocalsound} I [noise] see .")
    'Yeah I see .'
    """
    return " ".join(_MARKERS.sub(" ", text).split())


def normalize_english(text: str) -> str:
    """Lower-case words separated by single blanks.

    Unicode NFKC. Apostrophes are unified, and stay only inside a word; markers such as
    ``{vocalsound}`` go; every other sign, the hyphen too, separates words. Digits stay.

    >>> normalize_english("Don\u2019t STOP -- it's a well-known {gap} 'dog', No. 7!")
    "don't stop it's a well known dog no 7"
    """
    if _PLAIN.fullmatch(text):  # most lines of a large text for language models
        return text
    # Before and after: NFKC splits some apostrophes, and makes others (of the Greek numeral sign).
    text = unicodedata.normalize("NFKC", _APOSTROPHES.sub("'", remove_markers(text)))
    text = _APOSTROPHES.sub("'", text).lower()
    # Lower case may split a letter and its mark again (Turkish capital I with dot).
    text = "".join(c for c in unicodedata.normalize("NFKC", text) if not unicodedata.combining(c))
    return " ".join(_OUTER_APOSTROPHES.sub(" ", _NOT_WORD.sub(" ", text)).split())
