"""Problems of a corpus, collected first and reported at once: nobody wants to mend a corpus one
message at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.errors import DataError

SHOWN = 20
"""How many problems a message lists in full."""


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is not as it should be: at ``place`` (file, ``file:line`` or utterance)."""

    place: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.place}: expected {self.expected}, found {self.found}"


def report(problems: Sequence[Problem], *, place: str | Path, way_out: str) -> None:
    """Raise one error for all ``problems``; do nothing where there are none.

    Raises:
        DataError: one problem as it is; several with their number, the first 20 in full.

    >>> report([], place="corpus", way_out="")
    >>> report([Problem("text:3", "words", "nothing")], place="corpus", way_out="mend it")
    Traceback (most recent call last):
    privasr_k2.errors.DataError: text:3: expected words, found nothing
      way out: mend it
    """
    if not problems:
        return
    if len(problems) == 1:
        only = problems[0]
        raise DataError(only.place, only.expected, only.found, way_out)
    lines = [f"\n  {problem}" for problem in problems[:SHOWN]]
    if len(problems) > SHOWN:
        lines.append(f"\n  ... and {len(problems) - SHOWN} more")
    raise DataError(
        place, "a corpus without problems", f"{len(problems)}:{''.join(lines)}", way_out
    )
