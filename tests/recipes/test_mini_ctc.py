"""The recipe ctc on the tiny corpus, through the command line that a user types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.recipe_tools import EXP, ROOT, run_recipe, stage_lines, transcripts

pytestmark = [pytest.mark.k2, pytest.mark.recipe]


def word_error_rate(work: Path, part: str) -> float:
    """Errors by 100 words of a part, from its counts."""
    counts = json.loads((work / EXP / f"score_{part}/wer.json").read_text())["parts"][part][
        "counts"
    ]
    errors = counts["substitutions"] + counts["insertions"] + counts["deletions"]
    return 100.0 * errors / (counts["hits"] + counts["substitutions"] + counts["deletions"])


def test_ends_with_a_table_and_the_files_that_icefall_users_know(finished: Path) -> None:
    table = (finished / EXP / "RESULTS.md").read_text()
    assert "Synthetic speech" in table and "./run.sh mini ctc" in table
    for part in ("dev", "test"):
        assert f"{word_error_rate(finished, part):.2f}" in table
        names = {
            path.name.split("-")[0]
            for path in (finished / EXP / f"score_{part}").glob(f"*-{part}*.txt")
        }
        assert {"recogs", "errs", "wer"} <= names


def test_learns_something(finished: Path) -> None:
    # Guessing the commonest words leaves more than nine words in ten wrong.
    assert word_error_rate(finished, "dev") < 80.0


def test_is_up_to_date_when_run_again(finished: Path) -> None:
    done = run_recipe("mini", "ctc", "--preset", "tiny", "--work-dir", finished)
    stages = stage_lines(done.stdout)
    assert done.returncode == 0 and len(stages) == 13
    assert all(line.endswith("up to date") for line in stages), done.stdout
    assert "| CTC, one pass | test |" in done.stdout


def test_a_later_stage_is_refused_after_an_edit(copied: Path) -> None:
    done = run_recipe(
        "mini", "ctc", "--preset", "tiny", "--work-dir", copied, "--avg", "1", "--stage", "6"
    )
    assert done.returncode == 2
    assert "stage 5" in done.stdout and "way out" in done.stdout


def test_transcribes_a_file_as_the_recipe_did(finished: Path) -> None:
    wanted = transcripts(finished)
    name = next(name for name, hyps in sorted(wanted.items()) if hyps[0][0])
    audio = finished / f"data/manifests/audio/{name}.flac"
    done = subprocess.run(
        [sys.executable, "-m", "privasr_k2.bin.transcribe", "--in-exp", finished / EXP, audio],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{audio}\t{wanted[name][0][0]}\n"


@pytest.mark.parametrize("kind", ["torchscript", "onnx"])
def test_decodes_an_exported_model_as_the_one_it_was_made_from(
    copied: Path, tmp_path: Path, kind: str
) -> None:
    suffix = {"torchscript": "pt", "onnx": "onnx"}[kind]
    model = tmp_path / f"foreign.{suffix}"
    export = [
        sys.executable,
        "-m",
        "privasr_k2.bin.export",
        "--in-model",
        copied / EXP / "am",
        f"--out-{kind}",
        model,
    ]
    made = subprocess.run(export, capture_output=True, text=True, cwd=ROOT)
    assert made.returncode == 0, made.stderr
    done = run_recipe(
        "mini", "ctc", "--preset", "tiny", "--work-dir", copied, "--am-model", model,
        "--am-tokens", copied / "data/lang_phone/tokens.txt",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    score = "score_test/wer.json"
    foreign = json.loads((copied / "exp/ctc_foreign_phone" / score).read_text())["parts"]["test"][
        "counts"
    ]
    assert foreign == json.loads((copied / EXP / score).read_text())["parts"]["test"]["counts"]


@pytest.mark.parametrize("units", ["char", "bpe_40"])
def test_other_units_reach_a_graph(copied: Path, units: str) -> None:
    done = run_recipe(
        "mini",
        "ctc",
        "--preset",
        "tiny",
        "--work-dir",
        copied,
        "--token-type",
        units,
        "--stop-stage",
        "4",
    )
    assert done.returncode == 0, done.stdout
    assert (copied / f"data/graph_{units}/HLG.safetensors").is_file()


def test_the_vocabulary_is_cut_where_the_command_line_says_so(copied: Path) -> None:
    words = copied / "data/lang_phone/words.txt"
    before = len(words.read_text().splitlines())
    options = ("--preset", "tiny", "--work-dir", copied, "--stage", "2", "--stop-stage", "2")
    done = run_recipe("mini", "ctc", *options, "--lang-options", "max_words=1")
    assert done.returncode == 0, done.stdout
    assert 5 < len(words.read_text().splitlines()) < before  # train's own words stay
    done = run_recipe("mini", "ctc", *options, "--lang-options", "most_words=1")
    assert done.returncode != 0 and "most_words" in done.stdout
