"""What is no encoder is refused with its reason; hashes, records, shards, families of plugins."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from privasr_k2 import config
from privasr_k2.encoders.card import EncoderCard
from privasr_k2.encoders.common import FAMILIES, Family, PublicEncoder
from privasr_k2.encoders.loading import describe, load_encoder
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import file_hash
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    ctranslate2_arrays,
    hugging_face_tensors,
    save_ctranslate2,
    save_openai,
    save_safetensors,
    tiny_whisper,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tensors = hugging_face_tensors(tiny_whisper())
    return save_safetensors(tmp_path / "tiny", tensors, WHISPER_CONFIG)


def with_card(folder: Path, **changed: str) -> Path:
    files = {path.name: file_hash(path) for path in folder.iterdir()}
    card = EncoderCard("tiny whisper", {**files, **changed}, "MIT", "made here")
    config.save(card, folder / "encoder.yaml")
    return folder


def test_what_is_recorded(folder: Path) -> None:
    bare = describe(load_encoder(folder))
    weights = folder / "model.safetensors"
    assert bare["name"] == "tiny" and bare["licence"] == "not stated"
    assert bare["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert "not known to be free" in bare["training_data"]
    encoder = load_encoder(with_card(folder))
    known = {"name": "tiny whisper", "licence": "MIT", "source": "made here"}
    assert describe(encoder) == {**bare, **known}
    assert not encoder.training


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_hash_that_differs_is_refused(folder: Path, name: str) -> None:
    with_card(folder, **{name: "0" * 64})
    with pytest.raises(DataError, match=f"{name}: expected sha256 0000"):
        load_encoder(folder)


def test_weights_without_a_hash_beside_a_card_are_refused(folder: Path) -> None:
    with_card(folder)
    save_openai(folder / "other.pt", tiny_whisper())
    with pytest.raises(DataError, match="sha256 no hash"):
        load_encoder(folder / "other.pt")


def test_folders_that_are_no_model(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(DataError, match="the files of an encoder"):
            load_encoder(path)
    for name in ("a.pt", "b.pt"):
        save_openai(tmp_path / name, tiny_whisper())
    with pytest.raises(DataError, match=r"a\.pt, b\.pt"):
        load_encoder(tmp_path)


NAMES = ("model.safetensors", "model.bin", "model.pt", "model.onnx")


@pytest.mark.parametrize("name", NAMES)
def test_empty_files_and_rubbish(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=f"{name}: expected weights, found an empty file"):
        load_encoder(tmp_path)
    (tmp_path / name).write_bytes(b"rubbish" * 100)
    with pytest.raises(DataError, match=name):
        load_encoder(tmp_path)


@pytest.mark.parametrize("name", NAMES[:3])
def test_files_that_end_early(tmp_path: Path, name: str) -> None:
    whisper, path = tiny_whisper(), tmp_path / name
    if name == "model.bin":
        save_ctranslate2(path, ctranslate2_arrays(whisper))
    elif name == "model.pt":
        save_openai(path, whisper)
    else:
        save_safetensors(tmp_path, hugging_face_tensors(whisper), WHISPER_CONFIG)
    whole = path.read_bytes()
    for end in (5, 9, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(DataError, match=name):
            load_encoder(tmp_path)


def test_several_files_with_an_index(folder: Path, tmp_path: Path) -> None:
    tensors = list(hugging_face_tensors(tiny_whisper()).items())
    split, places = tmp_path / "split", {}
    split.mkdir()
    for number, part in enumerate((tensors[:9], tensors[9:])):
        save_file(dict(part), str(split / f"model-{number}.safetensors"))
        places |= {name: f"model-{number}.safetensors" for name, _ in part}
    index = split / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    (split / "config.json").write_text(json.dumps(WHISPER_CONFIG))
    whole, read = load_encoder(folder), load_encoder(split)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, read.state_dict()[name])
    assert describe(read)["sha256"] != describe(whole)["sha256"]
    (split / "model-1.safetensors").unlink()
    with pytest.raises(DataError, match="no model-1"):
        load_encoder(split)
    for wrong in ({"weight_map": {"a": "../model-0.safetensors"}}, {}):
        index.write_text(json.dumps(wrong))
        with pytest.raises(DataError, match="weight_map"):
            load_encoder(split)


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    save_safetensors(tmp_path, {"bert.embeddings.weight": torch.zeros(3, 3)}, {})
    with pytest.raises(DataError, match="whisper, found bert"):
        load_encoder(tmp_path)


def test_loading_changes_nobody_s_random_numbers(folder: Path) -> None:
    state = torch.random.get_rng_state()
    load_encoder(folder)
    assert torch.equal(state, torch.random.get_rng_state())


class Mean(PublicEncoder):
    """One number a signal."""

    dim, num_layers, frame_shift = 1, 0, 1.0

    def __init__(self) -> None:
        super().__init__()
        self.name = "mean"


def test_a_family_is_added_in_one_place(tmp_path: Path) -> None:
    family = Family(lambda weights: "mean" in weights.tensors, lambda weights: Mean())
    FAMILIES.add("mean", family)
    try:
        save_safetensors(tmp_path / "average", {"mean": torch.zeros(1)}, {})
        encoder = load_encoder(tmp_path / "average")
        assert isinstance(encoder, Mean) and encoder.name == "average"
        with pytest.raises(ConfigError, match="pad_seconds"):
            load_encoder(tmp_path / "average", pad_seconds=30.0)
        for call in (encoder.features, encoder):
            with pytest.raises(TypeError, match="Mean has no"):
                call(torch.zeros(1, 3), torch.tensor([3]))
    finally:
        FAMILIES._objects.pop("mean")
