"""Tensors of a checkpoint that ``torch.save`` wrote, without running what a pickle may call.

The file is a zip: ``data.pkl`` and, for each storage, ``data/<key>``. The pickle is a program for a
stack machine. This module runs that program itself, as far as it builds numbers, texts, lists,
dictionaries, tensors and k2's ragged tensors. Any other global name or operation is an error, so
no code is called.
"""

from __future__ import annotations

import pickletools
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from privasr_k2.errors import DataError

_STORAGES = {
    "torch FloatStorage": torch.float32,
    "torch HalfStorage": torch.float16,
    "torch BFloat16Storage": torch.bfloat16,
    "torch DoubleStorage": torch.float64,
    "torch LongStorage": torch.int64,
    "torch IntStorage": torch.int32,
    "torch ShortStorage": torch.int16,
    "torch CharStorage": torch.int8,
    "torch ByteStorage": torch.uint8,
    "torch BoolStorage": torch.bool,
}
_EXPECTED = "a checkpoint of tensors, saved by torch as a zip"
_REMAKE = "save its state_dict as safetensors"
_RAGGED = "_k2.ragged RaggedTensor"
_MARK = object()
#: RuntimeError: a feature of zip files that Python lacks. ValueError: names, sizes and places.
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, OverflowError)
_ZIP_ERRORS += (RuntimeError, ValueError)


class _Global(NamedTuple):
    name: str


class _Storage(NamedTuple):
    key: str
    dtype: torch.dtype


class _Stored(NamedTuple):
    """A tensor's place in its storage, in elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip file.

    Raises:
        DataError: another file, a broken one, or one of a later version.
    """
    try:
        return zipfile.ZipFile(path)
    except _ZIP_ERRORS as error:
        raise DataError(path, _EXPECTED, str(error), "copy the file again") from error


class _Ragged:
    """A ragged tensor of k2: what its ``__setstate__`` would get."""

    state: Any = None


class TorchFile(Mapping[str, Tensor]):
    """Tensors by name, read when they are asked for.

    A ragged tensor of two axes with the name ``x`` is two tensors: ``x.row_splits`` and
    ``x.values``.

    Attributes:
        numbers: plain numbers and texts beside the tensors, as OpenAI's ``dims``.

    Raises:
        DataError: no zip of torch, or a pickle that holds anything else than tensors.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zip = open_zip(path)
        programs = [n for n in self._zip.namelist() if n.rpartition("/")[2] == "data.pkl"]
        if len(programs) != 1 or any("/code/" in name for name in self._zip.namelist()):
            raise DataError(path, _EXPECTED, "another zip file", _REMAKE)
        self._folder = programs[0].rpartition("/")[0]
        record = _Machine(path).run(self._entry(programs[0]))
        self.numbers: dict[str, Any] = {}
        self._tensors: dict[str, _Stored] = {}
        try:
            self._collect(record, "")
        except RecursionError as error:
            raise DataError(path, _EXPECTED, "a record that holds itself", _REMAKE) from error

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._tensors[name]
        data = self._entry(f"{self._folder}/data/{tensor.storage.key}")
        width = torch.empty((), dtype=tensor.storage.dtype).element_size()
        last = tensor.offset + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride))
        is_odd = tensor.offset < 0 or any(number < 0 for number in (*tensor.shape, *tensor.stride))
        empty = 0 in tensor.shape
        if is_odd or (not empty and (last + 1) * width > len(data)):
            found = f"{len(data)} bytes for shape {list(tensor.shape)}"
            raise DataError(self._path, f"all values of {name}", found, "copy the file again")
        if empty:
            return torch.zeros(tensor.shape, dtype=tensor.storage.dtype)
        whole = len(data) // width * width
        values = torch.frombuffer(bytearray(data[:whole]), dtype=tensor.storage.dtype)
        return torch.as_strided(values, tensor.shape, tensor.stride, tensor.offset).clone()

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def _entry(self, name: str) -> bytes:
        try:
            info = self._zip.getinfo(name)
            if info.compress_type != zipfile.ZIP_STORED:
                found = f"{name}, which is compressed"
                raise DataError(self._path, _EXPECTED, found, _REMAKE)
            return self._zip.read(info)
        except (KeyError, *_ZIP_ERRORS) as error:
            raise DataError(self._path, _EXPECTED, str(error), "copy the file again") from error

    def _collect(self, value: Any, name: str) -> None:
        if isinstance(value, _Stored):
            self._tensors[name] = value
        elif isinstance(value, _Ragged):
            splits, _, values = _two_axes(value.state, self._path, name)
            self._tensors |= {f"{name}.row_splits": splits, f"{name}.values": values}
        elif isinstance(value, dict):
            for key, inner in value.items():
                # The names of tensors are those of the state_dict, wherever it stands.
                below = name if key in ("model_state_dict", "state_dict") else f"{name}.{key}"
                self._collect(inner, below.removeprefix("."))
        elif isinstance(value, (int, float, str)):
            self.numbers[name] = value


class _Machine:
    """The stack machine of pickles, for the operations of a checkpoint."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._operations: dict[str, Callable[[Any], None]] = {
            **dict.fromkeys(("PROTO", "FRAME"), lambda _: None),
            "MARK": lambda _: self._stack.append(_MARK),
            "NONE": lambda _: self._stack.append(None),
            "NEWTRUE": lambda _: self._stack.append(True),
            "NEWFALSE": lambda _: self._stack.append(False),
            "EMPTY_DICT": lambda _: self._stack.append({}),
            "EMPTY_LIST": lambda _: self._stack.append([]),
            "EMPTY_TUPLE": lambda _: self._stack.append(()),
            "GLOBAL": lambda name: self._stack.append(self._admitted(name)),
            "STACK_GLOBAL": lambda _: self._stack_global(),
            **dict.fromkeys(_LITERALS, self._stack.append),
            **dict.fromkeys(("BINPUT", "LONG_BINPUT"), self._put),
            "MEMOIZE": lambda _: self._put(len(self._memo)),
            **dict.fromkeys(("BINGET", "LONG_BINGET"), self._get),
            "TUPLE": lambda _: self._stack.append(tuple(self._marked())),
            "TUPLE1": lambda _: self._stack.append(tuple(self._popped(1))),
            "TUPLE2": lambda _: self._stack.append(tuple(self._popped(2))),
            "TUPLE3": lambda _: self._stack.append(tuple(self._popped(3))),
            "SETITEM": lambda _: self._set_items(self._popped(2)),
            "SETITEMS": lambda _: self._set_items(self._marked()),
            "APPEND": lambda _: self._extend(self._popped(1)),
            "APPENDS": lambda _: self._extend(self._marked()),
            "BINPERSID": lambda _: self._storage(),
            "NEWOBJ": lambda _: self._new(),
            "REDUCE": lambda _: self._reduce(),
            "BUILD": lambda _: self._build(),
        }

    def run(self, program: bytes) -> Any:
        """The value that a pickle describes."""
        try:
            for code, argument, _ in pickletools.genops(program):
                if code.name == "STOP":
                    (value,) = self._popped(1)
                    return value
                if code.name not in self._operations:
                    raise self._refused(f"the operation {code.name}")
                self._operations[code.name](argument)
        except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
            raise DataError(self._path, _EXPECTED, f"a broken pickle: {error}", _REMAKE) from error
        raise DataError(self._path, _EXPECTED, "a pickle without an end", _REMAKE)

    def _refused(self, found: str) -> DataError:
        way_out = "do not load it; take weights in safetensors"
        return DataError(self._path, "tensors alone", f"a pickle with code: {found}", way_out)

    def _admitted(self, name: str) -> _Global:
        """``MODULE NAME`` of a global, if it builds tensors."""
        if name not in _STORAGES and name not in _CALLS and name != _RAGGED:
            raise self._refused(name.replace(" ", "."))
        return _Global(name)

    def _stack_global(self) -> None:
        module, name = self._popped(2)
        self._stack.append(self._admitted(f"{module} {name}"))

    def _put(self, key: int) -> None:
        self._memo[key] = self._stack[-1]

    def _get(self, key: int) -> None:
        self._stack.append(self._memo[key])

    def _popped(self, count: int) -> list[Any]:
        if len(self._stack) < count:
            raise ValueError("an empty stack")
        values = self._stack[-count:]
        del self._stack[-count:]
        return values

    def _marked(self) -> list[Any]:
        start = max(i for i, value in enumerate(self._stack) if value is _MARK)
        values = self._stack[start + 1 :]
        del self._stack[start:]
        return values

    def _set_items(self, values: list[Any]) -> None:
        self._stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def _extend(self, values: list[Any]) -> None:
        self._stack[-1].extend(values)

    def _storage(self) -> None:
        (identity,) = self._popped(1)
        kind, of, key, _place, _count = identity
        if kind != "storage" or not isinstance(of, _Global) or of.name not in _STORAGES:
            raise self._refused("a persistent id of another kind")
        self._stack.append(_Storage(str(key), _STORAGES[of.name]))

    def _reduce(self) -> None:
        called, arguments = self._popped(2)
        if not isinstance(called, _Global) or called.name not in _CALLS:
            raise self._refused(f"a call of {called!r:.80}")
        self._stack.append(_CALLS[called.name](*arguments))

    def _new(self) -> None:
        made, arguments = self._popped(2)
        if made != _Global(_RAGGED) or arguments != ():
            raise self._refused(f"a new {made!r:.80}")
        self._stack.append(_Ragged())

    def _build(self) -> None:
        # Attributes of an OrderedDict, as _metadata of a state_dict: of no use here.
        (state,) = self._popped(1)
        if isinstance(self._stack[-1], _Ragged):
            self._stack[-1].state = state
        elif not isinstance(self._stack[-1], dict):
            raise self._refused("the state of an object")


def _two_axes(state: Any, path: Path, name: str) -> tuple[_Stored, str, _Stored]:
    """The state of a ragged tensor of two axes: row splits, a name, values."""
    is_state = isinstance(state, tuple) and len(state) == 3 and state[1] == "row_ids1"
    if not is_state or not all(isinstance(part, _Stored) for part in state[::2]):
        raise DataError(path, f"two axes of the ragged tensor {name}", "another form", _REMAKE)
    return state


def _tensor(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> _Stored:
    numbers = (offset, *shape, *stride)
    if not isinstance(storage, _Storage) or not all(type(n) is int for n in numbers):
        raise TypeError("a tensor without storage or shape")
    if len(shape) != len(stride):
        raise TypeError(f"shape {shape} with stride {stride}")
    return _Stored(storage, offset, tuple(shape), tuple(stride))


_CALLS: dict[str, Callable[..., Any]] = {
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_parameter": lambda data, *_: data,
    "collections OrderedDict": lambda *items: dict(*items),
}
_LITERALS = (
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
)
