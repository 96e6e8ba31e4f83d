"""The recipe encoder on the tiny corpus: one public encoder, trained part by part."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

from privasr_k2.fileio import read_json, read_jsonl, read_yaml
from tests.support.recipe_tools import assert_up_to_date, check_names, recipe
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    hugging_face_tensors,
    save_safetensors,
    speechlike,
    tiny_whisper,
)
from tests.support.verbs import call

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
PARTS = ("head", "last_block")


def test_every_part_is_trained_decoded_and_held_out(copied: Path, tmp_path: Path) -> None:
    encoder = tmp_path / "tiny_whisper"
    save_safetensors(encoder, hugging_face_tensors(tiny_whisper()), WHISPER_CONFIG)
    command = f"mini encoder --preset tiny --encoder-model {encoder} --folds 2"
    command += f" --parts '{' '.join(PARTS)}'"
    recipe(command, "--work-dir", copied)
    head, exp = "tiny_whisper_tdnn_phone", copied / "exp/encoder_tiny_whisper_tdnn_phone"
    rows = [*read_jsonl(exp / "results.jsonl")]
    systems = {row["system"] for row in rows if row["metric"] == "wer" and row["part"] == "test"}
    assert systems == set(PARTS) == check_names(rows)
    for part in PARTS:
        folds = [read_json(exp / f"folds/{part}/{fold}/dev.json") for fold in (1, 2)]
        mean = sum(fold["token_errors"] for fold in folds) / 2
        (row,) = (
            r for r in rows
            if (r["system"], r["metric"], r["part"]) == (part, "fold_errors", "mean of the folds")
        )  # fmt: skip
        assert row["value"] == pytest.approx(100 * mean)
    spec = read_yaml(copied / f"exp/ctc_{head}_last_block/am/model.yaml")
    assert spec["public"]["first"] == 1 and spec["public"]["origin"]["name"] == "tiny_whisper"
    assert_up_to_date(command, "--work-dir", copied)
    # 31 s: more than Whisper hears at once.
    soundfile.write(tmp_path / "long.wav", speechlike(31 * 16000)[0][0].numpy(), 16000)
    for exp in (f"exp/ctc_{head}", f"exp/ctc_{head}_last_block"):
        out = tmp_path / "words.jsonl"
        call(f"transcribe --in-exp {copied / exp} {tmp_path}/long.wav --out-jsonl {out}")
        [said] = read_jsonl(out)
        assert said["seconds"] == 31 and said["words"] is not None


def test_options_that_cannot_be_together(copied: Path) -> None:
    said = recipe("mini encoder --preset tiny", "--work-dir", copied, code=2)
    assert "--encoder-model" in said
    said = recipe("mini ctc --preset tiny --encoder-trained lora", "--work-dir", copied, code=2)
    assert "--encoder-model" in said
