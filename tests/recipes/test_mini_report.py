"""All reports of a corpus on one page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.environment import code_version
from tests.support.recipe_tools import EXP, run_recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]


def test_one_page_of_what_was_run(copied: Path, tmp_path: Path) -> None:
    done = run_recipe("mini", "report", "--work-dir", tmp_path / "empty")
    assert done.returncode == 2 and "results.jsonl of a recipe" in done.stdout
    done = run_recipe("mini", "report", "--work-dir", copied)
    assert done.returncode == 0, done.stdout
    page = (copied / "exp/report.html").read_text()
    rows = [json.loads(line) for line in (copied / EXP / "results.jsonl").read_text().splitlines()]
    [wer] = [row["value"] for row in rows if row["metric"] == "wer" and row["part"] == "test"]
    assert f"{wer:.2f}" in page and "./run.sh mini ctc --preset tiny" in page
    assert code_version().split()[0] in page
    assert run_recipe("mini", "report", "--work-dir", copied).stdout.strip().endswith("up to date")
