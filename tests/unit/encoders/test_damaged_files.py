"""Files with changed bytes are read or refused; nothing else happens."""

from __future__ import annotations

import contextlib
import random
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from privasr_k2.encoders.ctranslate2_file import CTranslate2File
from privasr_k2.encoders.safetensors_files import SafetensorsFiles
from privasr_k2.encoders.torch_file import TorchFile
from privasr_k2.errors import DataError
from tests.support.tiny_encoders import quantized, save_ctranslate2

TENSORS = {"x": torch.arange(6.0).reshape(2, 3), "y": torch.ones(2).half()}


def write_torch(path: Path) -> None:
    torch.save({"dims": {"a": 1}, "model_state_dict": TENSORS}, str(path))


def write_ctranslate2(path: Path) -> None:
    arrays = {"a/weight": np.ones((2, 3), np.float32), "b": np.ones(3, np.float32)}
    save_ctranslate2(path, quantized(arrays, "int8"), {"c": "b"})


def read(make: Callable, path: Path) -> str:
    """What became of reading every tensor of a file."""
    with contextlib.suppress(DataError):
        file = make(path)
        for name in file:
            assert isinstance(file[name], torch.Tensor)
        return "read"
    return "refused"


def changed(data: bytes, generator: random.Random) -> bytes:
    """Data with some bytes changed, and now and then without its end."""
    damaged = bytearray(data)
    for _ in range(generator.choice((1, 2, 5))):
        damaged[generator.randrange(len(damaged))] = generator.choice(
            (0, 255, generator.randrange(256))
        )
    end = generator.randrange(1, len(damaged)) if generator.random() < 0.2 else len(damaged)
    return bytes(damaged[:end])


@pytest.mark.parametrize(
    ("write", "make"),
    [
        (write_torch, TorchFile),
        (write_ctranslate2, CTranslate2File),
        (lambda path: save_file(TENSORS, str(path)), lambda path: SafetensorsFiles([path])),
    ],
    ids=["torch", "ctranslate2", "safetensors"],
)
def test_changed_bytes(tmp_path: Path, write: Callable, make: Callable) -> None:
    write(tmp_path / "whole")
    data, generator = (tmp_path / "whole").read_bytes(), random.Random(1)
    seen: Counter[str] = Counter()
    for _ in range(500):
        (tmp_path / "damaged").write_bytes(changed(data, generator))
        seen[read(make, tmp_path / "damaged")] += 1
    assert seen["read"] > 10 and seen["refused"] > 100


def test_changed_programs(tmp_path: Path) -> None:
    """The pickle alone is changed, in a zip that is whole."""
    write_torch(tmp_path / "whole")
    generator, seen = random.Random(2), Counter[str]()
    with zipfile.ZipFile(tmp_path / "whole") as file:
        entries = {name: file.read(name) for name in file.namelist()}
    for _ in range(1500):
        with zipfile.ZipFile(tmp_path / "damaged", "w") as file:
            for name, data in entries.items():
                file.writestr(name, changed(data, generator) if name.endswith(".pkl") else data)
        seen[read(TorchFile, tmp_path / "damaged")] += 1
    assert seen["read"] > 10 and seen["refused"] > 500
