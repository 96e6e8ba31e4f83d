"""The files of an acoustic model's folder: safetensors with JSON in their header, and ``tokens.txt``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, disk_errors

WEIGHTS, SPEC, TOKENS = "model.safetensors", "model.yaml", "tokens.txt"


def save_tensors(path: Path, tensors: Mapping[str, Tensor], header: Any = None) -> None:
    """Write tensors, and a JSON value in the file's header, atomically."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomic_path(path) as temporary, disk_errors(path):
        save_file(plain, str(temporary), {"json": json.dumps(header)})


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    if not path.is_file():
        raise DataError(path, "a safetensors file", "no such file", "run the stage that writes it to its end")
    try:
        return load_file(str(path))
    except SafetensorError as error:
        raise DataError(
            path, "a whole safetensors file", str(error), "remove it and run its stage again"
        ) from error


def read_header(path: Path) -> Any:
    """The JSON value that :func:`save_tensors` put into a file's header; None where there is none."""
    try:
        with safe_open(str(path), "pt") as file:
            return json.loads((file.metadata() or {}).get("json", "null"))
    except SafetensorError as error:
        raise DataError(
            path, "a whole safetensors file", str(error), "remove it and run its stage again"
        ) from error
