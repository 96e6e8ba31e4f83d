"""The recipe rescore on the tiny corpus, upon the first pass of recipe ctc."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.fileio import read_jsonl
from privasr_k2.recipe.systems import read_systems
from tests.support.recipe_tools import assert_up_to_date, check_names, error_counts, recipe, records

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/rescore_tdnn_phone"
TINY = "mini rescore --preset tiny --lms lstm"


def errors(work: Path, system: str, role: str) -> int:
    counts = error_counts(work / EXP / system / f"score_{role}", role)
    return counts["substitutions"] + counts["insertions"] + counts["deletions"]


def test_from_the_first_pass_to_the_table(copied: Path) -> None:
    # The first pass is shared with recipe ctc.
    assert "acoustic model, tdnn ... up to date" in recipe(TINY, "--work-dir", copied)
    names = ("first_pass", "ngram", "lstm", "all", "lattice_lstm", "oracle")
    systems = {system.name: system for system in read_systems(copied / EXP / "systems.jsonl")}
    assert tuple(name for name, s in systems.items() if s.method != "recipe") == names
    assert {systems[name].compare_with for name in names[1:]} == {("first_pass",)}
    for role in ("dev", "test"):
        *others, oracle = (errors(copied, name, role) for name in names)
        assert oracle < min(others)
        lists, hyps = (records(copied / EXP / f) for f in (f"nbest_{role}", f"all/decode_{role}"))
        assert sorted(r["id"] for r in lists) == sorted(r["id"] for r in hyps)
    # A choice among more weights is no worse where it is made.
    fewer = min(errors(copied, "ngram", "dev"), errors(copied, "lstm", "dev"))
    assert errors(copied, "all", "dev") <= fewer

    assert json.loads((copied / EXP / "confidence/results/confidence_metrics.json").read_text())
    rows = list(read_jsonl(copied / EXP / "results.jsonl"))
    assert check_names(rows) == {*names}
    metrics = {row["metric"] for row in rows}
    assert {"nce", "wer"} <= metrics
    assert_up_to_date(TINY, "--work-dir", copied)
