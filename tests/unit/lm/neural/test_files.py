"""A model's folder: read as written; other words, other weights and missing files are named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.lm.neural.files import load_lm, save_lm
from privasr_k2.lm.neural.kinds import spec_of
from tests.support.small_lm import KINDS, random_words, settings, tiny


def written(kind: str, folder: Path) -> torch.nn.Module:
    model, vocabulary = tiny(kind, "adaptive")
    save_lm(folder, spec_of(settings(kind, "adaptive")), model.state_dict(), vocabulary)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read(kind: str, tmp_path: Path) -> None:
    model = written(kind, tmp_path)
    read, vocabulary = load_lm(tmp_path)
    assert vocabulary.symbols == tiny(kind)[1].symbols
    assert not read.training
    words = random_words(2, 5)
    torch.testing.assert_close(read.log_probs(words), model.log_probs(words))


@pytest.mark.parametrize("name", ["model.yaml", "model.safetensors", "words.txt"])
def test_a_missing_file(name: str, tmp_path: Path) -> None:
    written("lstm", tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=rf"{name}: expected .*, found no such file"):
        load_lm(tmp_path)


def test_words_in_another_order(tmp_path: Path) -> None:
    written("lstm", tmp_path)
    lines = (tmp_path / "words.txt").read_text().split()
    lines[4], lines[6] = lines[6], lines[4]
    swapped = "".join(f"{a} {b}\n" for a, b in zip(lines[::2], lines[1::2]))
    (tmp_path / "words.txt").write_text(swapped)
    message = r"words.txt: expected the words that the model was trained with"
    with pytest.raises(DataError, match=message):
        load_lm(tmp_path)


def test_files_of_two_models(tmp_path: Path) -> None:
    written("lstm", tmp_path / "a")
    written("transformer", tmp_path / "b")
    shutil.copy(tmp_path / "a" / "model.safetensors", tmp_path / "b")
    with pytest.raises(DataError, match="the weights of this model"):
        load_lm(tmp_path / "b")
    (tmp_path / "b" / "model.yaml").write_text("kind: rnnme\n")
    with pytest.raises(ConfigError, match="kind: one of char_lstm"):
        load_lm(tmp_path / "b")
    (tmp_path / "a" / "model.safetensors").write_bytes(b"half a file")
    with pytest.raises(DataError, match="a whole safetensors file"):
        load_lm(tmp_path / "a")
