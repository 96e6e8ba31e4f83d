"""From what Whisper writes to the words of references, by the name of a normalization."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from privasr_k2.corpora.spoken_numbers import spoken_words
from privasr_k2.text.normalize import normalize_english, remove_markers

_TITLES = {"mr": "mister", "mrs": "missus", "dr": "doctor", "messrs": "messieurs"}
_COMMA = re.compile(r"(?<=\d),(?!\d)")  # behind a figure, not within it
_TITLE = re.compile(rf"\b({'|'.join(_TITLES)})\b\.?", re.IGNORECASE)


def spoken_english(text: str) -> str:
    """Words as they are said: figures and titles spelled out, then the form of references.

    >>> spoken_english("Mrs. Rachel paid $40 -- in 1866, O.K.?")
    'missus rachel paid forty dollars in eighteen sixty six o k'
    """
    said = _TITLE.sub(lambda match: _TITLES[match[1].lower()], remove_markers(text))
    return " ".join(spoken_words(_COMMA.sub(" ", said).split()))


#: ``none``: as written; ``plain``: the form of references, figures stay; ``english``: as said.
NORMALIZERS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "none": lambda text: " ".join(text.split()),
        "plain": normalize_english,
        "english": spoken_english,
    }
)
