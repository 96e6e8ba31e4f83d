"""The preset of a work folder: its outputs are of one size, or are made again without a word."""

from __future__ import annotations

import json
import re
from pathlib import Path

from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_text
from privasr_k2.recipe.seal import record_files

FILE = "preset"
"""In ``WORK/.stages``."""
_LAYER = re.compile(r"conf/presets/(\w+)\.yaml")


def check_preset(work_dir: Path, preset: str, *, given: bool) -> None:
    """Refuse a run whose preset is not that of the work folder.

    Args:
        given: whether the command line names it.

    Raises:
        ConfigError: the folder holds what another preset has made.
    """
    if _said(work_dir) == preset or (known := preset_of(work_dir)) in ("", preset):
        return
    found = f"--preset {preset}{'' if given else ', the default'}"
    expected = f"--preset {known}, which its outputs were made with"
    way_out = f"name it: --preset {known}; or keep both: --work-dir DIR; to make this folder anew: "
    way_out += f"echo {preset} > {work_dir}/.stages/{FILE}"
    raise ConfigError(work_dir, expected, found, way_out)


def preset_of(work_dir: Path) -> str:
    """The preset of a work folder; empty where it holds nothing, or nothing tells.

    Folders of earlier versions do not say it: the sections that their stages read do.
    """
    records = list(record_files(work_dir)) if (work_dir / ".stages").is_dir() else []
    if (said := _said(work_dir)) or not records:
        return said if records else ""
    named = {name for record in records for name in _presets_in(record)}
    return named.pop() if len(named) == 1 else ""


def write_preset(work_dir: Path, preset: str) -> None:
    """Note the preset of a work folder; what a kill interrupted is removed."""
    folder = work_dir / ".stages"
    for unfinished in folder.glob(f".*.tmp.{FILE}"):
        unfinished.unlink(missing_ok=True)
    if _said(work_dir) != preset:
        write_text(folder / FILE, f"{preset}\n")


def _said(work_dir: Path) -> str:
    path = work_dir / ".stages" / FILE
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _presets_in(record: Path) -> list[str]:
    """Those of the sections that a stamp names; none where it is damaged."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        return _LAYER.findall(" ".join(path for path, _ in content.get("configs", [])))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return []
