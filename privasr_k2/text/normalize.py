"""From text as found to words: what transcripts, language models and lexicons have in common."""

from __future__ import annotations

import re
import unicodedata

_MARKERS = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|<[^<>\s]*>")
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u02b9\u2032\u00b4`\uff07]")
_NOT_WORD = re.compile(r"[^\w']|_")
_OUTER_APOSTROPHES = re.compile(r"(?<!\w)'+|'+(?!\w)")
_PLAIN = re.compile(r"[a-z]+(?: [a-z]+)*")


def remove_markers(text: str) -> str:
    """Without what stands in braces, brackets or angle brackets: noises, not words.

    >>> remove_markers("Yeah {vocalsound} I [noise] see .")
    'Yeah I see .'
    """
    return " ".join(_MARKERS.sub(" ", text).split())


def normalize_english(text: str) -> str:
    """Lower-case words parted by single blanks.

    Unicode NFKC; typographic apostrophes become ``'``; apostrophes inside a word stay and outer
    ones go; markers such as ``{vocalsound}`` and ``[noise]`` go; every other sign parts words, the
    hyphen too.
    Digits stay as they are: they are not spelled out as words. Text without a word gives ``""``.

    >>> normalize_english("Don\u2019t STOP -- it's a well-known {gap} 'dog', No. 7!")
    "don't stop it's a well known dog no 7"
    """
    if _PLAIN.fullmatch(text):  # most lines of a large text for language models
        return text
    # Before and after: NFKC takes some apostrophes apart, and makes others (of the Greek numeral
    # sign).
    text = unicodedata.normalize("NFKC", _APOSTROPHES.sub("'", remove_markers(text)))
    text = _APOSTROPHES.sub("'", text).lower()
    # Lower case may part a letter and its mark again (Turkish capital I with dot); a mark alone is
    # no letter.
    text = "".join(c for c in unicodedata.normalize("NFKC", text) if not unicodedata.combining(c))
    return " ".join(_OUTER_APOSTROPHES.sub(" ", _NOT_WORD.sub(" ", text)).split())
