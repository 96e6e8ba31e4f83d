"""The kinds of acoustic model that a folder can hold; a new kind is one line of :data:`KINDS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from privasr_k2 import config
from privasr_k2.am.ctc import CtcModel, CtcSpec
from privasr_k2.am.foreign import ForeignSpec, open_foreign
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines

# kind: what model.yaml holds, and how the folder and that become a model.
KINDS: dict[str, tuple[type[Any], Callable[[Path, Any], nn.Module]]] = {
    "ctc": (CtcSpec, lambda folder, spec: CtcModel(spec)),
    "foreign": (ForeignSpec, open_foreign),
}


def build(folder: Path, spec_file: Path) -> nn.Module:
    """The model that ``model.yaml`` describes, its weights still to be filled in."""
    kinds = [line.split(":", 1)[1].strip() for _, line in read_lines(spec_file) if line.startswith("kind:")]
    if len(kinds) != 1 or kinds[0] not in KINDS:
        raise DataError(
            spec_file, f"kind: one of {', '.join(KINDS)}", repr(kinds), "run train_am or import_am again"
        )
    spec_class, make = KINDS[kinds[0]]
    return make(folder, config.load(spec_class, [spec_file]))
