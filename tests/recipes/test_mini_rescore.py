"""The recipe rescore on the tiny corpus, on the first pass that recipe ctc has left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.recipe.systems import read_systems
from tests.support.recipe_tools import run_recipe, stage_lines

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/rescore_tdnn_phone"
OPTIONS = ("mini", "rescore", "--preset", "tiny", "--lms", "lstm")


def errors(work: Path, system: str, role: str) -> int:
    """Word errors of a system."""
    counts = json.loads((work / EXP / system / f"score_{role}/wer.json").read_text())["parts"][
        role
    ]["counts"]
    return sum(counts[kind] for kind in ("substitutions", "insertions", "deletions"))


def test_from_the_first_pass_to_the_table(copied: Path) -> None:
    done = run_recipe(*OPTIONS, "--work-dir", copied)
    assert done.returncode == 0, done.stdout
    # The first pass is shared with recipe ctc.
    assert "acoustic model, tdnn ... up to date" in done.stdout
    systems = ("first_pass", "ngram", "lstm", "all", "lattice_lstm", "oracle")
    declared = {one.name: one for one in read_systems(copied / EXP / "systems.jsonl")}
    assert tuple(name for name, one in declared.items() if one.method != "recipe") == systems
    assert {declared[name].compare_with for name in systems[1:]} == {("first_pass",)}
    for role in ("dev", "test"):
        found = {system: errors(copied, system, role) for system in systems}
        assert found["oracle"] < min(found[system] for system in systems[:-1])
        refs = [json.loads(line) for line in lines(copied / EXP / f"nbest_{role}")]
        rescored = [json.loads(line) for line in lines(copied / EXP / f"all/decode_{role}")]
        assert sorted(r["id"] for r in refs) == sorted(r["id"] for r in rescored)
    # More weights to choose from never do worse where they are chosen.
    assert errors(copied, "all", "dev") <= min(
        errors(copied, "ngram", "dev"), errors(copied, "lstm", "dev")
    )

    metrics = json.loads((copied / EXP / "confidence/results/confidence_metrics.json").read_text())
    rows = [json.loads(line) for line in (copied / EXP / "results.jsonl").read_text().splitlines()]
    assert metrics and {"nce", "wer"} <= {row["metric"] for row in rows}

    again = run_recipe(*OPTIONS, "--work-dir", copied)
    stages = stage_lines(again.stdout)
    assert (
        again.returncode == 0 and stages and all(line.endswith("up to date") for line in stages)
    ), again.stdout


def lines(folder: Path) -> list[str]:
    """All lines of a folder's files."""
    return [
        line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]
