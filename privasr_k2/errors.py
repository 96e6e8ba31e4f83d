"""Errors for users: place, what was expected, what was found, and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class PrivasrError(Exception):
    """An error that the user can correct.

    Args:
        place: the file (with ``:line`` where there is one), option or object at fault.
        expected: what should have been there.
        found: what was there instead.
        way_out: what to do about it.

    >>> print(DataError("lexicon.txt:2", "a word and its tokens", "'B'", "add the tokens"))
    lexicon.txt:2: expected a word and its tokens, found 'B'
      way out: add the tokens
    """

    def __init__(self, place: str | Path, expected: str, found: str, way_out: str) -> None:
        self.place, self.expected, self.found, self.way_out = str(place), expected, found, way_out
        super().__init__(f"{place}: expected {expected}, found {found}\n  way out: {way_out}")

    def __reduce__(self) -> tuple[Any, ...]:
        """As processes pass it on; by default the message alone would go to ``__init__``."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[PrivasrError], args: tuple[Any, ...], values: dict[str, Any]) -> Any:
    error = cls.__new__(cls, *args)
    error.__dict__.update(values)
    return error


class ConfigError(PrivasrError):
    """A configuration value or option that cannot be used."""


class DataError(PrivasrError):
    """A corpus, manifest, lexicon or text that is not as it should be."""


class GraphError(PrivasrError):
    """A language model, lexicon or graph that do not fit together."""


class PrivacyError(PrivasrError):
    """A release that would not be covered by what is claimed for it."""
