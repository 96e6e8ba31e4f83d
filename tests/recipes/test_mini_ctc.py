"""The recipe ctc on the tiny corpus, through the command line that a user types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from privasr_k2.fileio import read_jsonl, read_yaml
from tests.support.recipe_tools import (
    EXP,
    ROOT,
    assert_up_to_date,
    check_names,
    error_counts,
    recipe,
    transcripts,
)
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    hugging_face_tensors,
    save_safetensors,
    tiny_whisper,
)

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
TINY = "mini ctc --preset tiny"


def verb(name: str, *arguments: str | Path) -> str:
    """The output of a verb."""
    command = [sys.executable, "-m", f"privasr_k2.bin.{name}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def word_error_rate(work: Path, part: str) -> float:
    """Errors by 100 words of a part, from its counts."""
    counts = error_counts(work / EXP / f"score_{part}", part)
    errors = counts["substitutions"] + counts["insertions"] + counts["deletions"]
    return 100.0 * errors / (counts["hits"] + counts["substitutions"] + counts["deletions"])


def test_ends_with_a_table_and_the_files_that_icefall_users_know(finished: Path) -> None:
    table = (finished / EXP / "RESULTS.md").read_text()
    assert "Synthetic speech" in table and "./run.sh mini ctc" in table
    for part in ("dev", "test"):
        assert f"{word_error_rate(finished, part):.2f}" in table
        files = (finished / EXP / f"score_{part}").glob(f"*-{part}*.txt")
        assert {"recogs", "errs", "wer"} <= {path.name.split("-")[0] for path in files}


def test_names_have_error_rates_of_their_own(finished: Path) -> None:
    rows = list(read_jsonl(finished / EXP / "results.jsonl"))
    assert check_names(rows) == {"ctc"}
    assert "## Words of names\n" in (finished / EXP / "RESULTS.md").read_text()


def test_learns_something(finished: Path) -> None:
    # Guessing the commonest words leaves more than nine words in ten wrong.
    assert word_error_rate(finished, "dev") < 80.0


def test_is_up_to_date_when_run_again(finished: Path) -> None:
    assert_up_to_date(TINY, "--work-dir", finished)
    text = recipe(TINY, "--work-dir", finished)
    assert text.count("... up to date") == 13 and "| CTC, one pass | test |" in text


def test_a_later_stage_is_refused_after_an_edit(copied: Path) -> None:
    text = recipe(f"{TINY} --avg 1 --stage 6", "--work-dir", copied, code=2)
    assert "stage 5" in text and "way out" in text


def test_another_average_trains_nothing(copied: Path) -> None:
    before = (copied / EXP / "am/model.safetensors").read_bytes()
    recipe(f"{TINY} --avg 3 --stage 5 --stop-stage 5", "--work-dir", copied)
    log = (copied / EXP / "log/am.log").read_text()
    assert "continuing in epoch 13 after 0 batches" in log and "average of epoch-10" in log
    assert (copied / EXP / "am/model.safetensors").read_bytes() != before


def test_a_folder_has_one_preset(copied: Path) -> None:
    assert "--preset tiny" in recipe("mini ctc", "--work-dir", copied, code=2)


def test_transcribes_a_file_as_the_recipe_did(finished: Path) -> None:
    hyps = transcripts(finished)
    name = next(name for name in sorted(hyps) if hyps[name][0][0])
    audio = finished / f"data/manifests/audio/{name}.flac"
    text = verb("transcribe", "--in-exp", finished / EXP, audio)
    assert text == f"{audio}\t{hyps[name][0][0]}\n"


@pytest.mark.parametrize(("kind", "suffix"), [("torchscript", "pt"), ("onnx", "onnx")])
def test_decodes_an_exported_model_as_the_original(
    copied: Path, tmp_path: Path, kind: str, suffix: str
) -> None:
    model, tokens = tmp_path / f"foreign.{suffix}", copied / "data/lang_phone/tokens.txt"
    verb("export", "--in-model", copied / EXP / "am", f"--out-{kind}", model)
    recipe(TINY, "--work-dir", copied, "--am-model", model, "--am-tokens", tokens)
    foreign = error_counts(copied / "exp/ctc_foreign_phone/score_test")
    assert foreign == error_counts(copied / EXP / "score_test")


@pytest.mark.parametrize("units", ["char", "bpe_40"])
def test_other_units_reach_a_graph(copied: Path, units: str) -> None:
    recipe(f"{TINY} --token-type {units} --stop-stage 4", "--work-dir", copied)
    assert (copied / f"data/graph_{units}/HLG.safetensors").is_file()


def test_the_vocabulary_is_cut_where_the_command_line_says_so(copied: Path) -> None:
    words = copied / "data/lang_phone/words.txt"
    before = len(words.read_text().splitlines())
    command = f"{TINY} --stage 2 --stop-stage 2 --lang-options"
    recipe(f"{command} max_words=1", "--work-dir", copied)
    assert 5 < len(words.read_text().splitlines()) < before  # train's own words stay
    assert "most_words" in recipe(f"{command} most_words=1", "--work-dir", copied, code=2)


def test_the_outputs_of_a_public_encoder_are_features(copied: Path, tmp_path: Path) -> None:
    encoder = tmp_path / "tiny_whisper"
    save_safetensors(encoder, hugging_face_tensors(tiny_whisper()), WHISPER_CONFIG)
    recipe(f"{TINY} --encoder-model {encoder}", "--work-dir", copied)
    exp = copied / "exp/ctc_tiny_whisper_tdnn_phone"
    about = read_yaml(copied / "data/feats_tiny_whisper/features.yaml")
    assert about["dim"] == 64 and about["public_encoder"]["folder"] == str(encoder)
    assert read_yaml(exp / "am/model.yaml")["encoder"]["tdnn"]["subsampling"] == 1
    counts = error_counts(exp / "score_test", "test")
    assert counts["hits"] + counts["substitutions"] + counts["deletions"] > 100
    audio = next((copied / "data/manifests/audio").rglob("*.flac"))
    verb("transcribe", "--in-exp", exp, audio)
    # Who transcribes needs the encoder; who has another one is told so.
    (encoder / "model.safetensors").unlink()
    command = [sys.executable, "-m", "privasr_k2.bin.transcribe", "--in-exp", exp, audio]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and str(encoder) in done.stderr
