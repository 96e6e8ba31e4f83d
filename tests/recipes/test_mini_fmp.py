"""The recipe fmp on the tiny corpus: the tables, the guarantees, resumed; and what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.privacy.ledger import Ledger
from tests.recipes.recipe_tools import run_recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/fmp_tdnn_phone_speaker"
OPTIONS = ("mini", "fmp", "--size", "tiny", "--rounds", "1 2", "--epsilons", "1")
SYSTEMS = ("T1", "T2", "grid_sigma_1", "grid_beta_only", "grid_alpha_only", "eps_none", "eps_user_1",
           "eps_utterance_1", "eps_published_1")  # fmt: skip


@pytest.mark.timeout(1500)  # some hundred stages
def test_from_n_best_lists_to_the_tables(copied: Path) -> None:
    done = run_recipe(*OPTIONS, "--work-dir", copied)
    assert done.returncode == 0, done.stdout
    # The acoustic model is shared with recipe ctc.
    assert "stage 5 (acoustic model, tdnn) ... up to date" in done.stdout
    text = (copied / EXP / "RESULTS.md").read_text()
    assert text.startswith("# Federated marginal personalization: mini\n\n**Synthetic speech.**")
    assert [f"Table {number}" in text for number in range(1, 5)] == [True] * 4
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    for system in ("baseline", *SYSTEMS):
        parts = json.loads((copied / EXP / system / "score_test/wer.json").read_text())["parts"]
        assert f"{parts['test']['wer_percent']:.2f}" in rows[system]
    assert "called epsilon 1" in rows["eps_published_1"] and "for each user" in rows["eps_user_1"]
    assert "lower bound" in text
    curves = (copied / EXP / "curves.svg").read_text()
    assert "each utterance" in curves and "as published (no such guarantee)" in curves

    entries = Ledger(copied / "privacy/ledger.json").entries()
    units = sorted(entry.spending.unit for entry in entries)
    assert units == ["user", "utterance", "utterance"]
    assert {entry.spending.data for entry in entries} == {"mini/test"}

    again = run_recipe(*OPTIONS, "--work-dir", copied)
    stages = [line for line in again.stdout.splitlines() if line.startswith("stage ")]
    assert again.returncode == 0 and all(line.endswith("up to date") for line in stages), again.stdout
    assert len(Ledger(copied / "privacy/ledger.json").entries()) == 3


def test_without_speech_and_what_cannot_be(tmp_path: Path) -> None:
    done = run_recipe("mini", "fmp", "--rounds", "0", "--work-dir", tmp_path)
    assert done.returncode == 2 and "--rounds: expected a whole number above 0, found '0'" in done.stdout
    done = run_recipe("mini", "fmp", "--private-units", "house", "--work-dir", tmp_path)
    assert done.returncode == 2 and "out of utterance user" in done.stdout
    options = ("--dry-run", "true", "--decode", "false", "--work-dir", tmp_path)
    done = run_recipe(*OPTIONS, *options)
    assert done.returncode == 0 and "train_am" not in done.stdout and "stage 15" not in done.stdout
    assert "stage 17 (the tables)" in done.stdout and "sigma" not in done.stdout
    done = run_recipe("mini", "fmp", "--epsilons", "", *options)
    assert done.returncode == 0 and "release" not in done.stdout and "audit" not in done.stdout
