"""The kinds of acoustic model that a folder can hold: those that are trained here, and foreign ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from privasr_k2 import config
from privasr_k2.am import kinds
from privasr_k2.am.foreign import ForeignSpec, open_foreign
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines

# kind: what model.yaml holds, and how the folder and that become a model.
KINDS: dict[str, tuple[type[Any], Callable[[Path, Any], nn.Module]]] = {
    **{
        name: (kind.spec, lambda folder, spec: kinds.KINDS[spec.kind].make(spec))
        for name, kind in kinds.KINDS.items()
    },
    "foreign": (ForeignSpec, open_foreign),
}


def read_spec(spec_file: Path) -> Any:
    """What ``model.yaml`` holds."""
    named = [line.split(":", 1)[1].strip() for _, line in read_lines(spec_file) if line.startswith("kind:")]
    if len(named) != 1 or named[0] not in KINDS:
        raise DataError(
            spec_file, f"kind: one of {', '.join(KINDS)}", repr(named), "run train_am or import_am again"
        )
    return config.load(KINDS[named[0]][0], [spec_file])


def build(folder: Path, spec_file: Path) -> nn.Module:
    """The model that ``model.yaml`` describes, its weights still to be filled in."""
    spec = read_spec(spec_file)
    return KINDS[spec.kind][1](folder, spec)
