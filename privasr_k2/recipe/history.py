"""How a file came about: the stamps behind it, the code that wrote them, and the time that took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.recipe.plan import normal_path, values_of
from privasr_k2.recipe.stamps import read_stamp


@dataclass(frozen=True)
class History:
    """Everything behind one file.

    Attributes:
        tasks: stages, and jobs of arrays, that it was made by.
        seconds: of all of them together, by the clock.
        codes: version and commit of each, the most frequent first; stamps that do not know it are left out.
    """

    tasks: int
    seconds: float
    codes: tuple[str, ...]


def history(path: Path, work_dir: Path) -> History:
    """Follow ``path`` back to the corpus through the stamps of a work folder.

    Raises:
        DataError: no stage has written it.
    """
    stamps = stamps_below(work_dir)
    todo = writers_of(normal_path(str(path.absolute()), str(work_dir.absolute())), stamps)
    if not todo:
        raise DataError(path, "an output of a stage", "one without a stamp", "name what a recipe has made")
    seen: dict[str, dict[str, Any]] = {}
    while todo:
        stamp = todo.pop()
        key = "\0".join(stamp["outputs"])
        if key not in seen:
            seen[key] = stamp
            for name in dict.fromkeys(values_of(stamp["command"], "--in-")):
                todo += writers_of(name, stamps)
    codes = Counter(stamp["code"] for stamp in seen.values() if "code" in stamp)
    seconds = sum(float(stamp.get("seconds", 0.0)) for stamp in seen.values())
    return History(len(seen), seconds, tuple(code for code, _ in codes.most_common()))


def stamps_below(work_dir: Path) -> list[dict[str, Any]]:
    """The stamps of all tasks that ended well in a work folder."""
    records = (
        read_stamp(path)
        for path in sorted(work_dir.glob("**/.stages/**/*.json"))
        if not path.name.endswith(".attempt.json")
    )
    return [record for record in records if record is not None]


def writers_of(path: str, stamps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Stamps of what is, holds, or lies in ``path``."""
    return [stamp for stamp in stamps if any(_overlap(path, output) for output in stamp["outputs"])]


def _overlap(a: str, b: str) -> bool:
    return a == b or a.startswith(b + "/") or b.startswith(a + "/")
