"""All reports of a corpus on one page."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.environment import code_version
from privasr_k2.fileio import read_jsonl
from tests.support.recipe_tools import EXP, recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]


def test_one_page_of_what_was_run(copied: Path, tmp_path: Path) -> None:
    text = recipe("mini report", "--work-dir", tmp_path / "empty", code=2)
    assert "results.jsonl of a recipe" in text
    recipe("mini report", "--work-dir", copied)
    page = (copied / "exp/report.html").read_text()
    rows = read_jsonl(copied / EXP / "results.jsonl")
    [wer] = [row["value"] for row in rows if (row["metric"], row["part"]) == ("wer", "test")]
    assert f"{wer:.2f}" in page and "./run.sh mini ctc --preset tiny" in page
    assert code_version().split()[0] in page
    assert recipe("mini report", "--work-dir", copied).strip().endswith("up to date")
