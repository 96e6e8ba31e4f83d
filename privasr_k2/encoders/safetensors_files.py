"""Tensors of safetensors files: one, or several with an index, as Hugging Face stores them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from privasr_k2.errors import DataError


class SafetensorsFiles(Mapping[str, Tensor]):
    """Tensors by name, read when they are asked for.

    Raises:
        DataError: a file of another kind, or one that ends early.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = {}
        for path in paths:
            try:
                file = safe_open(str(path), "pt")
            except (OSError, SafetensorError) as error:
                way_out = "copy the file again; safetensors is the only content of this name"
                raise DataError(path, "a safetensors file", str(error), way_out) from error
            self._files.update(dict.fromkeys(file.keys(), file))

    def __getitem__(self, name: str) -> Tensor:
        return self._files[name].get_tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)
