"""The recipe fmp on the tiny corpus: systems, guarantees, resumed; what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.recipe.systems import read_systems
from tests.support.recipe_tools import check_names, recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/fmp_tdnn_phone_speaker"
TINY = (
    "mini fmp --preset tiny --rounds '1 2' --epsilons 1 --privacy-unit 'utterance user'"
    " --as-published true"
)
SYSTEMS = ("baseline", "T1", "T2", "grid_sigma_1", "grid_beta_only", "grid_alpha_only", "eps_none",
           "eps_background", "eps_user_1", "eps_utterance_1", "eps_published_1")  # fmt: skip


@pytest.mark.timeout(1500)  # some hundred stages
def test_from_n_best_lists_to_results(copied: Path) -> None:
    # The acoustic model is shared with recipe ctc.
    assert "acoustic model, tdnn ... up to date" in recipe(TINY, "--work-dir", copied)
    exp = copied / EXP
    table = (exp / "RESULTS.md").read_text().splitlines()
    systems = {system.name: system for system in read_systems(exp / "systems.jsonl")}
    for system in (systems[name] for name in SYSTEMS):
        file = copied / system.artifacts["score_test"] / "wer.json"
        wer = json.loads(file.read_text())["parts"]["test"]["wer_percent"]
        rows = [line for line in table if line.startswith(f"| {system.label} ")]
        assert any(f"{wer:.2f}" in row for row in rows), system.name
    rows = list(read_jsonl(exp / "results.jsonl"))
    check_names(rows)
    of_grid = [row for row in rows if (row["system"], row["kind"]) == ("grid_dev", "weights")]
    chosen = {row["metric"]: row["value"] for row in of_grid}
    grid = read_json(exp / "grid.json")
    assert all(chosen[name] == grid[name] for name in ("alpha", "kernel_bandwidth"))
    assert systems["T2"].compare_with == ("baseline",)
    assert systems["grid_beta_only"].compare_with == ("baseline", "T2")  # the full method
    assert systems["eps_user_1"].not_private == "eps_none" and systems["eps_user_1"].headline
    assert systems["eps_user_1"].protects == "each user of mini/test, in the global marginal"
    assert not systems["eps_published_1"].protects
    published = [row for row in rows if row["system"] == "eps_published_1"]
    assert {(row["epsilon"], row["person_epsilon"]) for row in published} == {("inf", "inf")}
    some = {row["metric"]: row["value"] for row in published}
    assert some["only_for_epsilon"] > some["paper_epsilon"] == pytest.approx(7.1 * 2)

    entries = Ledger(copied / "privacy/ledger.json").entries()
    units = sorted(entry.spending.unit for entry in entries)
    assert units == ["user", "utterance", "utterance"]
    assert {entry.spending.data for entry in entries} == {"mini/test"}
    assert " ... done" not in recipe(TINY, "--work-dir", copied)
    assert len(Ledger(copied / "privacy/ledger.json").entries()) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--rounds 0", "--rounds: expected a whole number of at least 1, found '0'"),
        ("--rounds ''", "--rounds: expected 1 or more values"),
        ("--privacy-unit house", "one of utterance, user, found 'house'"),
        ("--private-units user", "--privacy-unit"),
        ("--epsilons inf", "--epsilons: expected a number"),
        ("--decode false --nbest 5", "--nbest"),
    ],
)
def test_what_cannot_be(options: str, message: str, tmp_path: Path) -> None:
    text = recipe(f"mini fmp {options} --dry-run true", "--work-dir", tmp_path, code=2)
    assert text.startswith("error: ") and message in text


def test_without_speech_and_without_releases(tmp_path: Path) -> None:
    text = recipe(f"{TINY} --dry-run true --decode false", "--work-dir", tmp_path)
    assert "exp/fmp_text_speaker/RESULTS.md" in text
    assert not any(part in text for part in ("acoustic", "score_test", "sigma"))
    none = "mini fmp --epsilons '' --dry-run true --decode false"
    text = recipe(none, "--work-dir", tmp_path)
    assert "release" not in text and "audit" not in text
    text = recipe("mini fmp --dry-run true --decode false", "--work-dir", tmp_path)
    assert "eps_user" in text
    assert not any(name in text for name in ("eps_published", "eps_utterance"))
    other = "mini fmp --dry-run true --decode false --own-text false"
    assert "--nnlm-text with false" in recipe(other, "--work-dir", tmp_path, code=2)
    other += f" --nnlm-text {Path(__file__)} --clients-beside recording"
    text = recipe(other, "--work-dir", tmp_path)
    assert "text=lm_text" in text and "T10_recording" in text


@pytest.mark.timeout(1500)
def test_text_with_the_default_options(tmp_path: Path) -> None:
    """All of it, and a denominator of eq. 8 that falls to 0 or below: few words, much noise."""
    options = "mini fmp --preset tiny --decode false"
    recipe(options, "--work-dir", tmp_path)
    entries = Ledger(tmp_path / "privacy/ledger.json").entries()
    assert {entry.spending.unit for entry in entries} == {"user"} and len(entries) == 4
    # Each of twenty totals of some hundred words falls to 0 or below in about one of two draws.
    recipe(f"{options} --as-published true --epsilons '0.001 0.0001'", "--work-dir", tmp_path)
    exp, replaced = tmp_path / "exp/fmp_text_speaker", {}
    for name in ("eps_published_0.001", "eps_published_0.0001"):
        release = read_json(exp / name / "run_test.json")["release"]
        if release["background_rounds"]:
            replaced[name] = release["background_rounds"]
    assert replaced
    rows = read_jsonl(exp / "results.jsonl")
    marks = {row["system"]: row["value"] for row in rows if row["metric"] == "background_rounds"}
    assert marks == replaced
