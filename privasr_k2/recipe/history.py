"""Stamps of a work folder: which stages wrote a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from privasr_k2.recipe.plan import values_of
from privasr_k2.recipe.seal import Seal, record_files
from privasr_k2.recipe.stamps import read_stamp


def stamps_below(work_dir: Path) -> list[dict[str, Any]]:
    """The stamps of all tasks that ended well in a work folder."""
    seal = Seal.of(work_dir)
    records = (
        read_stamp(path, seal)
        for path in record_files(work_dir)
        if not path.name.endswith(".attempt.json")
    )
    return [record for record in records if record is not None]


def writers_of(path: str, stamps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stamps of ``path``, of a folder above it, or of something in it."""
    return [stamp for stamp in stamps if any(_overlap(path, output) for output in stamp["outputs"])]


def stages_behind(
    paths: Iterable[str],
    stamps: list[dict[str, Any]],
    inputs: Callable[[dict[str, Any]], Iterable[str]] = lambda stamp: values_of(
        stamp["command"], "--in-"
    ),
) -> Iterator[dict[str, Any]]:
    """The stamps of all stages that the paths were made by, each once, the nearest first.

    Args:
        inputs: of a stage, those that are followed.
    """
    todo, seen = list(paths), set[str]()
    while todo:
        for stamp in writers_of(todo.pop(0), stamps):
            key = "\0".join(stamp["outputs"])
            if key not in seen:
                seen.add(key)
                yield stamp
                todo += inputs(stamp)


def _overlap(a: str, b: str) -> bool:
    return a == b or a.startswith(b + "/") or b.startswith(a + "/")
