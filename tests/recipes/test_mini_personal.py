"""The recipe personal on the tiny corpus, text alone: rows, costs, one release, resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.recipe.systems import System, read_systems
from tests.support.recipe_tools import dry_run, recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
SPOKEN = "mini personal --preset tiny --rounds 3 --groups 2"
TINY = f"{SPOKEN} --decode false"
ROWS = ("shared", "cache", "adapter", "names", "marginals", "fmp")


def systems_of(exp: Path) -> dict[str, System]:
    return {system.name: system for system in read_systems(exp / "systems.jsonl")}


@pytest.mark.timeout(900)  # some thirty stages
def test_from_text_to_a_table_of_ways(tmp_path: Path) -> None:
    work = tmp_path / "work"
    recipe(TINY, "--work-dir", work)
    exp = work / "exp/personal_text_speaker_lstm"
    systems = systems_of(exp)
    runs = {name: read_json(work / systems[name].artifacts["run"]) for name in ROWS}
    for name, run in runs.items():
        costs, strength = run["costs"], run["config"].get("strength", run["config"].get("lam"))
        assert costs["kept_bytes"] == 0 or strength > 0
        # Of test, perhaps nobody said a rare word.
        assert name == "names" or (costs["kept_bytes"] > 0) == (strength > 0)
        assert (costs["sent_bytes"] > 0) == (name == "fmp" and strength > 0)
        # Each way may choose strength 0, which is the shared model on dev.
        assert run["perplexity"]["by_round"][0] == pytest.approx(
            runs["shared"]["perplexity"]["by_round"][0], rel=1e-5
        )
    assert runs["cache"]["perplexity"]["total"] < runs["shared"]["perplexity"]["total"]

    people = read_json(exp / "wins.json")["groups"][0]
    assert people["people"] == len(runs["shared"]["perplexity"]["clients"])
    assert sum(people["best"].values()) <= people["people"]
    rows = list(read_jsonl(exp / "results.jsonl"))
    best = {row["system"]: row["value"] for row in rows
            if row["metric"] == "wins_best" and row["item"] == "all"}  # fmt: skip
    assert sorted(best.values()) == sorted(people["best"].values())
    [entry] = Ledger(work / "privacy/ledger.json").entries()
    assert entry.spending.data == "mini/adapt" and systems["federated"].protects
    assert " ... done" not in recipe(TINY, "--work-dir", work)
    assert len(Ledger(work / "privacy/ledger.json").entries()) == 1


@pytest.mark.timeout(900)  # some fifty stages
def test_by_default_speech_is_decoded_and_rescored(tmp_path: Path) -> None:
    work = tmp_path / "work"
    recipe(SPOKEN, "--work-dir", work)
    exp = work / "exp/personal_tdnn_phone_speaker_lstm"
    systems = systems_of(exp)
    rows = {
        row["system"]: row["value"]
        for row in read_jsonl(exp / "results.jsonl")
        if row["metric"] == "wer" and not row["group"]
    }
    assert rows.keys() == set(ROWS) and all(0 < rate <= 100 for rate in rows.values())
    for name in ROWS:
        run = read_json(work / systems[name].artifacts["run"])["config"]
        if run.get("strength", run.get("lam")) == 0:
            assert rows[name] == rows["shared"]  # the same scores


@pytest.mark.parametrize("command", ["personal --nnlm-text", "fmp --background"])
def test_unigrams_of_a_file_are_of_it_alone(command: str, tmp_path: Path) -> None:
    """AMI's own section mixes meetings with books, which a file alone refuses."""
    (tmp_path / "books.txt").write_text("a line\n", encoding="utf-8")
    recipe_of, given = command.split()
    folders = ("--corpus-dir", tmp_path, "--work-dir", tmp_path / "work")
    shown = dry_run(f"ami {recipe_of} --decode false", given, tmp_path / "books.txt", *folders)
    [stage] = [text for name, text in shown.items() if "unigrams u of" in name]
    assert "text=auto" in stage and "train_repeat=1" in stage
