"""The recipe fmp on the tiny corpus: the systems, the guarantees, resumed; and what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.fileio import read_jsonl
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.recipe.systems import read_systems
from tests.support.recipe_tools import run_recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/fmp_tdnn_phone_speaker"
OPTIONS = ("mini", "fmp", "--preset", "tiny", "--rounds", "1 2", "--epsilons", "1")
SYSTEMS = ("T1", "T2", "grid_sigma_1", "grid_beta_only", "grid_alpha_only", "eps_none", "eps_user_1",
           "eps_utterance_1", "eps_published_1")  # fmt: skip


@pytest.mark.timeout(1500)  # some hundred stages
def test_from_n_best_lists_to_results(copied: Path) -> None:
    done = run_recipe(*OPTIONS, "--work-dir", copied)
    assert done.returncode == 0, done.stdout
    # The acoustic model is shared with recipe ctc.
    assert "acoustic model, tdnn ... up to date" in done.stdout
    text = (copied / EXP / "RESULTS.md").read_text()
    systems = {one.name: one for one in read_systems(copied / EXP / "systems.jsonl")}
    for name in ("baseline", *SYSTEMS):
        one = systems[name]
        parts = json.loads((copied / one.artifacts["score_test"] / "wer.json").read_text())["parts"]
        rows = [line for line in text.splitlines() if line.startswith(f"| {one.label} ")]
        assert any(f"{parts['test']['wer_percent']:.2f}" in row for row in rows), name
    rows = list(read_jsonl(copied / EXP / "results.jsonl"))
    grid = json.loads((copied / EXP / "grid.json").read_text())
    chosen = {
        row["metric"]: row["value"]
        for row in rows
        if row["system"] == "grid_dev" and row["kind"] == "weights"
    }
    assert (chosen["alpha"], chosen["kernel_bandwidth"]) == (
        grid["alpha"],
        grid["kernel_bandwidth"],
    )
    assert systems["T2"].compare_with == ("baseline",)
    assert systems["grid_beta_only"].compare_with == ("baseline", "T2")  # the full method
    assert systems["eps_user_1"].not_private == "eps_none" and systems["eps_user_1"].headline
    assert systems["eps_user_1"].protects == "each user of mini/test, in the global marginal"
    assert not systems["eps_published_1"].protects

    entries = Ledger(copied / "privacy/ledger.json").entries()
    units = sorted(entry.spending.unit for entry in entries)
    assert units == ["user", "utterance", "utterance"]
    assert {entry.spending.data for entry in entries} == {"mini/test"}

    again = run_recipe(*OPTIONS, "--work-dir", copied)
    assert again.returncode == 0 and " ... done" not in again.stdout, again.stdout
    assert len(Ledger(copied / "privacy/ledger.json").entries()) == 3


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--rounds", "0"), "--rounds: expected a whole number of at least 1, found '0'"),
        (("--rounds", ""), "--rounds: expected 1 or more values"),
        (("--privacy-unit", "house"), "one of utterance, user, found 'house'"),
        (("--private-units", "user"), "--privacy-unit"),
        (("--epsilons", "inf"), "--epsilons: expected a number"),
        (("--decode", "false", "--nbest", "5"), "--nbest"),
    ],
)
def test_what_cannot_be(words: tuple[str, ...], part: str, tmp_path: Path) -> None:
    done = run_recipe("mini", "fmp", *words, "--dry-run", "true", "--work-dir", tmp_path)
    assert done.returncode == 2 and done.stdout.startswith("error: ") and part in done.stdout, (
        done.stdout
    )


def test_without_speech_and_without_releases(tmp_path: Path) -> None:
    options = ("--dry-run", "true", "--decode", "false", "--work-dir", tmp_path)
    done = run_recipe(*OPTIONS, *options)
    assert done.returncode == 0, done.stdout
    assert "exp/fmp_text_speaker/RESULTS.md" in done.stdout
    assert not any(part in done.stdout for part in ("acoustic", "score_test", "sigma"))
    done = run_recipe("mini", "fmp", "--epsilons", "", *options)
    assert done.returncode == 0 and "release" not in done.stdout and "audit" not in done.stdout
