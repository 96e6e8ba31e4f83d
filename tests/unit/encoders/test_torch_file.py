"""Checkpoints are read as torch reads them, and no pickle runs code."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from torch import nn

from privasr_k2.encoders.torch_file import TorchFile
from privasr_k2.errors import DataError

DTYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32),
    *(torch.int16, torch.int8, torch.uint8, torch.bool),
)


def test_tensors_as_torch_reads_them(tmp_path: Path) -> None:
    whole = torch.arange(24.0).reshape(4, 6)
    state = OrderedDict((str(dtype), torch.arange(5).to(dtype)) for dtype in DTYPES)
    state |= {"shared": whole[1:, ::2], "turned": whole.t(), "scalar": torch.tensor(3.5)}
    state |= {"empty": torch.zeros(0, 3), "parameter": nn.Parameter(torch.ones(2))}
    state._metadata = {"": {"version": 1}}
    torch.save({"dims": {"n": 3, "x": 0.5}, "model_state_dict": state}, str(tmp_path / "a.pt"))
    file = TorchFile(tmp_path / "a.pt")
    assert set(file) == set(state) and len(file) == len(state)
    for name, expected in state.items():
        assert file[name].dtype == expected.dtype
        torch.testing.assert_close(file[name], expected.detach(), rtol=0, atol=0)
    assert file.numbers == {"dims.n": 3, "dims.x": 0.5}


def test_a_state_dict_of_a_module(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Conv1d(3, 4, 2), nn.BatchNorm1d(4))
    for protocol in (2, 4):
        torch.save(module.state_dict(), str(tmp_path / "m.bin"), pickle_protocol=protocol)
        file = TorchFile(tmp_path / "m.bin")
        assert all(torch.equal(file[n], t) for n, t in module.state_dict().items())


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_with_code_is_refused(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "run"
    for number, value in enumerate((Harmful(mark), {"w": torch.ones(2), "x": Harmful(mark)})):
        path = tmp_path / f"{number}.pt"
        torch.save(value, str(path), pickle_protocol=protocol)
        with pytest.raises(DataError, match=r"a pickle with code: (posix|os)\.mkdir"):
            TorchFile(path)
    assert not mark.exists()


def test_whole_modules_and_other_objects_are_refused(tmp_path: Path) -> None:
    for value in (nn.Linear(2, 2), {1, 2}, Path("x"), torch.Size([2]), slice(3)):
        torch.save(value, str(tmp_path / "m.pt"))
        with pytest.raises(DataError, match=r"m\.pt: expected tensors alone"):
            TorchFile(tmp_path / "m.pt")


def archive(path: Path, program: bytes, **entries: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", program)
        for name, data in entries.items():
            file.writestr(f"archive/data/{name}", data)
    return path


@pytest.mark.parametrize(
    "program",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02.",
        b"\x80\x02}q\x00R.",
        b"\x80\x02K\x01K\x02s.",
        b"\x80\x02h\x07.",
        b"\x80\x02t.",
        b"\x80\x02K\x01Q.",
        b"\x80\x02}ccollections\nOrderedDict\nK\x01R.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x01K\x01K\x01tR.",
        b"\x80\x02ctorch\nFloatStorage\n)R.",
        b"\x80\x02}K\x05b.\x00"[:6] + b"\x80",
        b"rubbish",
        b"\x80\x02}q\x00K\x01h\x00s.",
        pickle.dumps([1, 2], protocol=0),
    ],
)
def test_broken_programs_are_errors(tmp_path: Path, program: bytes) -> None:
    with pytest.raises(DataError):
        TorchFile(archive(tmp_path / "a.pt", program))


def tensor_program(offset: int, size: int, stride: int) -> bytes:
    """A dict with w, float32 of storage 0."""
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    storage += b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
    numbers = [b"J" + n.to_bytes(4, "little", signed=True) for n in (offset, size, stride)]
    shape = numbers[1] + b"\x85" + numbers[2] + b"\x85"
    call = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + numbers[0] + shape + b"\x89}tR"
    return b"\x80\x02}X\x01\x00\x00\x00w" + call + b"s."


def test_tensors_stay_within_their_storage(tmp_path: Path) -> None:
    data = torch.arange(4.0).numpy().tobytes()
    file = TorchFile(archive(tmp_path / "a.pt", tensor_program(1, 2, 2), **{"0": data}))
    assert file["w"].tolist() == [1.0, 3.0]
    for offset, size, stride in (
        (0, 5, 1),
        (1, 4, 1),
        (0, 2, 4),
        (-1, 2, 1),
        (3, 2, -1),
        (0, -1, 1),
    ):
        path = archive(tmp_path / "b.pt", tensor_program(offset, size, stride), **{"0": data})
        with pytest.raises(DataError, match="all values of w"):
            TorchFile(path)["w"]
    with pytest.raises(DataError, match="data/0"):
        TorchFile(archive(tmp_path / "c.pt", tensor_program(0, 1, 1)))["w"]


def test_other_zip_files_are_refused(tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), str(tmp_path / "s.pt"))
    with zipfile.ZipFile(tmp_path / "t.pt", "w") as file:
        file.writestr("a.txt", "text")
    with zipfile.ZipFile(tmp_path / "u.pt", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", b"\x80\x02}." + b" " * 1000)
    for name in ("s.pt", "t.pt", "u.pt"):
        with pytest.raises(DataError, match="a checkpoint of tensors"):
            TorchFile(tmp_path / name)
