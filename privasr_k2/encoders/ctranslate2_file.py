"""Tensors of CTranslate2's ``model.bin``, as its converters write it (``specs/model_spec.py``).

Little-endian. A text is a uint16 length, the bytes and a zero byte that counts. The file is: uint32
version; text, name of the model's class; uint32 revision; uint32 number of variables; each variable
as text, uint8 number of dimensions, uint32 dimensions, uint8 type, uint32 bytes, values; uint32
number of aliases; each alias as two texts, new and old name. (Versions before 6 are not read.)

Quantized weights are w = q / s: int8 with one s a row, int16 with one s, under ``<name>_scale``.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from privasr_k2.errors import DataError

VERSION = 6
_DTYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
_EXPECTED, _WAY_OUT = "a whole model.bin of CTranslate2", "copy or convert the model again"


class _Variable(NamedTuple):
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    elements: int


class CTranslate2File(Mapping[str, Tensor]):
    """The variables by name, as float32 where they are weights; read when they are asked for.

    Attributes:
        spec: name of the model's class, for example ``WhisperSpec``.

    Raises:
        DataError: another file, another version, or a file that ends early.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self.spec, self._variables, self._aliases = self._index()
        except (struct.error, UnicodeDecodeError, IndexError) as error:
            raise self._broken(str(error)) from error

    def __getitem__(self, name: str) -> Tensor:
        target = self._aliases.get(name, name)
        stored = self._read(self._variables[target])
        if stored.dtype not in (torch.int8, torch.int16) or f"{target}_scale" not in self:
            return stored
        scale = self[f"{target}_scale"].float()
        return stored.float() / scale.reshape(scale.shape + (1,) * (stored.ndim - scale.ndim))

    def __iter__(self) -> Iterator[str]:
        yield from self._variables
        yield from self._aliases

    def __len__(self) -> int:
        return len(self._variables) + len(self._aliases)

    def _index(self) -> tuple[str, dict[str, _Variable], dict[str, str]]:
        reader = _Reader(self._bytes)
        version = reader.number("I")
        if version != VERSION:
            found = f"version {version}"
            raise DataError(self._path, f"version {VERSION} of model.bin", found, _WAY_OUT)
        spec, _revision = reader.text(), reader.number("I")
        variables: dict[str, _Variable] = {}
        for _ in range(reader.number("I")):
            name = reader.text()
            shape = tuple(reader.number("I") for _ in range(reader.number("B")))
            dtype, size = _DTYPES[reader.number("B")], reader.number("I")
            count = 1
            for length in shape:
                count *= length
            if size != count * torch.empty((), dtype=dtype).element_size():
                raise self._broken(f"{name}: {size} bytes for shape {list(shape)}")
            variables[name] = _Variable(dtype, shape, reader.skip(size), count)
        aliases: dict[str, str] = {}
        for _ in range(reader.number("I")):
            name, target = reader.text(), reader.text()
            if target not in variables:
                raise self._broken(f"{name} for {target}, which is not there")
            aliases[name] = target
        return spec, variables, aliases

    def _read(self, variable: _Variable) -> Tensor:
        if variable.elements == 0:
            return torch.zeros(variable.shape, dtype=variable.dtype)
        width = torch.empty((), dtype=variable.dtype).element_size()
        # A copy: the map is read-only, and its values need not lie at whole multiples of a width.
        values = bytearray(self._bytes[variable.start : variable.start + variable.elements * width])
        return torch.frombuffer(values, dtype=variable.dtype).reshape(variable.shape)

    def _broken(self, found: str) -> DataError:
        return DataError(self._path, _EXPECTED, found, _WAY_OUT)


def is_ctranslate2(path: Path) -> bool:
    """Whether a file begins as ``model.bin`` does, in any version."""
    with path.open("rb") as file:
        start = file.read(6)
    if len(start) < 6:
        return False
    version, length = struct.unpack("<IH", start)
    return 1 <= version < 100 and 2 <= length < 100


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._place = data, 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f"<{kind}", self._data, self._place)
        self._place += struct.calcsize(f"<{kind}")
        return int(value)

    def text(self) -> str:
        length = self.number("H")
        return self._data[self.skip(length) : self._place - 1].decode("utf-8")

    def skip(self, size: int) -> int:
        """Go on by ``size`` bytes, and return where they begin."""
        start, self._place = self._place, self._place + size
        if self._place > len(self._data):
            raise struct.error(f"{len(self._data)} bytes where {self._place} are named")
        return start
