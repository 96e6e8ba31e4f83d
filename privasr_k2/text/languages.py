"""Languages of corpora, as codes such as ``de`` or ``pt-br``."""

from __future__ import annotations

import re

from privasr_k2.errors import ConfigError

ENGLISH = "en"
PHONES_OF_OTHERS = (
    "take characters or BPE (--token-type char, --token-type bpe_500), give a lexicon (--lexicon "
    "FILE), or let espeak-ng say all words (--lang-options g2p=espeak:{language})"
)
"""What to do where phones are asked for in another language without a lexicon."""
_CODE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*")


def language_code(text: str, place: str) -> str:
    """The code ``text``, checked.

    Raises:
        ConfigError: at ``place``: it is no code of a language.

    >>> language_code("de", "language=de")
    'de'
    """
    if not _CODE.fullmatch(text):
        way_out = "write en, de, fr, ... (ISO 639)"
        raise ConfigError(place, "a code of a language in lower case", repr(text), way_out)
    return text


def is_english(language: str) -> bool:
    """Whether a code is that of English, wherever it is spoken.

    >>> is_english("en-gb"), is_english("de")
    (True, False)
    """
    return language.partition("-")[0] == ENGLISH
