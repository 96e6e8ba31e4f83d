"""model.bin of CTranslate2: types, quantization, aliases, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.encoders.ctranslate2_file import CTranslate2File, is_ctranslate2
from privasr_k2.errors import DataError
from tests.support.tiny_encoders import quantized, save_ctranslate2

GENERATOR = np.random.default_rng(3)
WEIGHTS = {
    "a/weight": GENERATOR.normal(size=(5, 7)),
    "conv/weight": GENERATOR.normal(size=(3, 4, 2)),
}
ARRAYS = {name: array.astype(np.float32) for name, array in WEIGHTS.items()}


def test_types_and_aliases(tmp_path: Path) -> None:
    bits = np.array([0x3F80, 0xC000], dtype=np.uint16)  # 1 and -2
    arrays = {
        **{"f": np.float32([[1.5, 2.5]]), "h": np.float16([0.5]), "b": bits},
        **{"i": np.int32([7]), "heads": np.int16(6), "flag": np.int8(1), "none": np.zeros((0, 2))},
    }
    arrays["none"] = arrays["none"].astype(np.float32)
    file = CTranslate2File(save_ctranslate2(tmp_path / "m", arrays, {"again": "f"}))
    assert file.spec == "WhisperSpec" and set(file) == {*arrays, "again"} and len(file) == 8
    assert file["f"].tolist() == file["again"].tolist() == [[1.5, 2.5]]
    assert (file["h"].dtype, file["b"].dtype) == (torch.float16, torch.bfloat16)
    assert file["b"].tolist() == [1.0, -2.0] and file["none"].shape == (0, 2)
    assert [int(file[name]) for name in ("i", "heads", "flag")] == [7, 6, 1]
    assert is_ctranslate2(tmp_path / "m")


@pytest.mark.parametrize(("kind", "step"), [("int8", 1 / 127), ("int16", 1 / 2**10)])
def test_quantized_weights(tmp_path: Path, kind: str, step: float) -> None:
    file = CTranslate2File(
        save_ctranslate2(tmp_path / "m", quantized(ARRAYS, kind), {"again": "a/weight"})
    )
    assert torch.equal(file["again"], file["a/weight"])
    for name, array in ARRAYS.items():
        rows = np.abs(array.reshape(len(array), -1)).max(axis=1)
        largest = rows.reshape(-1, *[1] * (array.ndim - 1)) if kind == "int8" else rows.max()
        assert np.all(np.abs(file[name].numpy() - array) <= 0.5001 * step * largest)


def test_other_versions_and_broken_files(tmp_path: Path) -> None:
    path = save_ctranslate2(tmp_path / "m", ARRAYS, version=4)
    with pytest.raises(DataError, match=r"version 6 of model\.bin, found version 4"):
        CTranslate2File(path)
    whole = save_ctranslate2(path, ARRAYS).read_bytes()
    for end in (7, 30, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(DataError, match=r"a whole model\.bin"):
            CTranslate2File(path)
    place = whole.index(b"a/weight\0") + len(b"a/weight\0")
    for offset, value in ((1, 6), (9, 9), (10, 1)):  # a size, the type, the bytes
        changed = bytearray(whole)
        changed[place + offset] = value
        path.write_bytes(changed)
        with pytest.raises(DataError, match=r"a whole model\.bin"):
            CTranslate2File(path)
    save_ctranslate2(path, ARRAYS, {"again": "nothing"})
    with pytest.raises(DataError, match="nothing, which is not there"):
        CTranslate2File(path)
