"""From text as found to the words of transcripts, language models and lexicons."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping

CASES = ("keep", "lower", "upper")
"""How words are written: as found, or all in one case."""

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


def normalize_english(text: str, *, keep_case: bool = False) -> str:
    """Lower-case words separated by single blanks; with ``keep_case`` in their own case.

    Unicode NFKC, which is NFC with plain forms of ligatures and wide letters. Apostrophes are
    unified, and stay only inside a word; markers such as ``{vocalsound}`` go; every other sign, the
    hyphen too, separates words. Digits stay.

    >>> normalize_english("Don\u2019t STOP -- it's a well-known {gap} 'dog', No. 7!")
    "don't stop it's a well known dog no 7"
    """
    if _PLAIN.fullmatch(text):  # most lines of a large text for language models
        return text
    # Before and after: NFKC splits some apostrophes, and makes others (of the Greek numeral sign).
    text = unicodedata.normalize("NFKC", _APOSTROPHES.sub("'", remove_markers(text)))
    text = _APOSTROPHES.sub("'", text)
    text = text if keep_case else text.lower()
    # Lower case may split a letter and its mark again (Turkish capital I with dot).
    text = "".join(c for c in unicodedata.normalize("NFKC", text) if not unicodedata.combining(c))
    return " ".join(_OUTER_APOSTROPHES.sub(" ", _NOT_WORD.sub(" ", text)).split())


def in_case(normalize: Callable[[str], str], case: str) -> Callable[[str], str]:
    """A normalization whose words are in a case of :data:`CASES`; ``""``: as it writes them.

    >>> [in_case(normalize_english, case)("The  U.S.") for case in ("", "keep", "upper")]
    ['the u s', 'The U S', 'THE U S']
    """
    if case == "":
        return normalize
    keeps = normalize
    if normalize is normalize_english:
        keeps = functools.partial(normalize_english, keep_case=True)
    changes: Mapping[str, Callable[[str], str]] = {
        "keep": str,
        "lower": str.lower,
        "upper": str.upper,
    }
    change = changes[case]
    return lambda text: unicodedata.normalize("NFC", change(keeps(text)))
