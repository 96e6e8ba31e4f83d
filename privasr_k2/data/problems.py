"""Problems of a corpus, collected and reported in one error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from privasr_k2.errors import DataError

SHOWN = 20
"""How many problems a message lists in full."""


@dataclass(frozen=True, order=True)
class Problem:
    """A problem at ``place`` (file, ``file:line`` or utterance)."""

    place: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.place}: expected {self.expected}, found {self.found}"


def report(problems: Sequence[Problem], *, place: str | Path, way_out: str) -> None:
    """Raise one error for all ``problems``, if any.

    Raises:
        DataError: one problem as it is; several with their number, the first 20 in full.

    >>> report([Problem("text:3", "words", "nothing")], place="corpus", way_out="mend it")
    Traceback (most recent call last):
    privasr_k2.errors.DataError: text:3: expected words, found nothing
      way out: mend it
    """
    if not problems:
        return
    if len(problems) == 1:
        raise DataError(*astuple(problems[0]), way_out)
    lines = [f"{len(problems)}:", *map(str, problems[:SHOWN])]
    if len(problems) > SHOWN:
        lines.append(f"... and {len(problems) - SHOWN} more")
    raise DataError(place, "a corpus without problems", "\n  ".join(lines), way_out)
