"""Damaged public encoders, and what the command ``privasr`` says of them."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.__main__ import main
from privasr_k2.encoders.card import EncoderCard
from privasr_k2.fileio import file_hash
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    ctranslate2_arrays,
    hugging_face_tensors,
    save_ctranslate2,
    save_safetensors,
    tiny_whisper,
)


def sound_encoder(folder: Path) -> Path:
    """A sound encoder with its card, to be damaged."""
    tensors = hugging_face_tensors(tiny_whisper())
    save_safetensors(folder, tensors, WHISPER_CONFIG)
    files = {path.name: file_hash(path) for path in folder.iterdir()}
    config.save(EncoderCard("tiny whisper", files, "MIT", "made here"), folder / "encoder.yaml")
    return folder


def privasr(*words: object) -> int:
    """The exit code of the command ``privasr``, in this process."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words], prog_name="privasr")
    return ended.value.code


def one_error(shown: str, place: object, expected: str, found: str, way_out: str) -> None:
    """One error of ours, with these beginnings of its parts, and nothing else."""
    assert shown.count("error: ") == 1 and "Traceback" not in shown, shown
    head, rest = shown[shown.index("error: ") + 7 :].split("\n  way out: ")
    assert head.startswith(f"{place}: expected {expected}"), head
    assert f", found {found}" in head, head
    assert rest.startswith(way_out), rest


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def no_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def no_model(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    (folder / "notes.txt").write_text("no model")


def empty_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def half_weights(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "encoder.yaml").unlink()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def wider(folder: Path) -> None:
    (folder / "encoder.yaml").unlink()
    (folder / "config.json").write_text(json.dumps({**WHISPER_CONFIG, "d_model": 128}))


def deeper(folder: Path) -> None:
    (folder / "encoder.yaml").unlink()
    (folder / "config.json").write_text(json.dumps({**WHISPER_CONFIG, "encoder_layers": 3}))


def broken_config(folder: Path) -> None:
    (folder / "encoder.yaml").unlink()
    (folder / "config.json").write_text("{")


def other_config(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({**WHISPER_CONFIG, "vocab_size": 7}))


def other_weights(folder: Path) -> None:
    tensors = {name: 1.1 * tensor for name, tensor in hugging_face_tensors(tiny_whisper()).items()}
    save_safetensors(folder, tensors, WHISPER_CONFIG)


def broken_card(folder: Path) -> None:
    (folder / "encoder.yaml").write_text("name: tiny\n")


def code(folder: Path) -> None:
    import torch

    no_model(folder)
    torch.save({"w": torch.ones(2), "x": Harmful(folder / "ran")}, str(folder / "model.pt"))


def plain_pickle(folder: Path) -> None:
    no_model(folder)
    (folder / "model.pt").write_bytes(pickle.dumps(Harmful(folder / "ran")))


def two_models(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    for name in ("a.pt", "b.pt"):
        (folder / name).write_bytes(b"x")


def later_format(folder: Path) -> None:
    no_model(folder)
    save_ctranslate2(folder / "model.bin", ctranslate2_arrays(tiny_whisper()), version=99)


def another_network(folder: Path) -> None:
    import torch

    (folder / "encoder.yaml").unlink()
    save_safetensors(folder, {"bert.embeddings.weight": torch.zeros(3, 3)}, {})


FILES, GET = "the files of an encoder", "privasr encoder get NAME --out DIR"
SAME, AGAIN = "give the weights and the config of one model", "get the encoder again"
#: How a folder is damaged: what of it is the place, what is expected and found, and the way out.
FOLDERS: dict[Callable[[Path], None], tuple[str, str, str, str]] = {
    no_folder: ("", FILES, "nothing of this name", GET),
    no_model: ("", FILES, "notes.txt", GET),
    two_models: ("", "one file *.pt", "a.pt, b.pt", "give the file itself"),
    empty_weights: ("/model.safetensors", "weights", "an empty file", "get the file again"),
    half_weights: ("/model.safetensors", "a safetensors file", "", "copy the file again"),
    wider: ("/model.safetensors", "weights with d_model = 128", "64", SAME),
    deeper: ("/model.safetensors", "weights with encoder_layers = 3", "2", SAME),
    broken_config: ("/config.json", "JSON", "", "repair or remake the file"),
    other_config: ("/config.json", "sha256 ", "", AGAIN),
    other_weights: ("/model.safetensors", "sha256 ", "", AGAIN),
    broken_card: ("/encoder.yaml", "the settings of EncoderCard", "", "make the file again"),
    code: ("/model.pt", "tensors alone", "a pickle with code: posix.mkdir", "do not load it"),
    plain_pickle: ("/model.pt", FILES, "a bare pickle", "save its tensors as safetensors"),
    later_format: ("/model.bin", "", "", ""),
    another_network: ("/model.safetensors", "weights of ", "bert.embeddings.weight", ""),
}
