"""Weights as safetensors with JSON in their header: written whole, read, averaged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, disk_errors, parse_json

_REPAIR = "remove it and run its stage again"


def save_tensors(path: Path, tensors: Mapping[str, Tensor], header: Any = None) -> None:
    """Write tensors, and a JSON value in the file's header, atomically."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomic_path(path) as temporary, disk_errors(path):
        save_file(plain, str(temporary), {"json": json.dumps(header)})


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    if not path.is_file():
        raise DataError(path, "a safetensors file", "no such file", "run its stage to the end")
    try:
        return load_file(str(path))
    except SafetensorError as error:
        raise DataError(path, "a whole safetensors file", str(error), _REPAIR) from error


def read_header(path: Path) -> Any:
    """The JSON value of a file's header by :func:`save_tensors`; None where there is none."""
    try:
        with safe_open(str(path), "pt") as file:
            text = (file.metadata() or {}).get("json", "null")
    except SafetensorError as error:
        raise DataError(path, "a whole safetensors file", str(error), _REPAIR) from error
    return parse_json(text, f"{path} (header)", way_out=_REPAIR)


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of several files' tensors, summed in double precision."""
    sums: dict[str, Tensor] = {}
    for path in paths:
        for name, value in load_tensors(path).items():
            sums[name] = sums[name] + value.double() if name in sums else value.double()
    return {name: (value / len(paths)).float() for name, value in sums.items()}


def fill(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Put ``weights``, read from ``path``, into a model; a DataError where they do not fit."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines()[1:3])
        way_out = "use the model.yaml that was written with them"
        raise DataError(path, "the weights of this model", reason, way_out) from error
