"""Licences of the corpora behind what a release takes for public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from privasr_k2.fileio import read_json
from privasr_k2.recipe.history import writers_of
from privasr_k2.recipe.plan import values_of
from privasr_k2.scoring.corpus_info import CORPUS_FILE

NOT_STATED = "not stated"


def licenses_of(
    paths: Iterable[str], work_dir: Path, stamps: list[dict[str, Any]]
) -> dict[str, str]:
    """Each corpus that the paths were made from, with its licence or :data:`NOT_STATED`.

    Args:
        paths: in ``work_dir``, of files and folders.
        stamps: of all its stages.
    """
    licenses: dict[str, str] = {}
    todo, seen = list(paths), set[str]()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for stamp in writers_of(path, stamps):
            todo += values_of(stamp["command"], "--in-")
            for output in stamp["outputs"]:
                licenses |= _licenses_in(work_dir / output / CORPUS_FILE)
    return dict(sorted(licenses.items()))


def _licenses_in(file: Path) -> Mapping[str, str]:
    if not file.is_file():
        return {}
    about = read_json(file)
    return {str(about["name"]): str(about.get("license") or NOT_STATED)}
