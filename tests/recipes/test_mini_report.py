"""All reports of a corpus on one page."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.environment import code_version
from tests.support.recipe_tools import EXP, run_recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]


def test_one_page_of_what_was_run(copied: Path, tmp_path: Path) -> None:
    done = run_recipe("mini", "report", "--work-dir", tmp_path / "empty")
    assert done.returncode == 2 and "expected RESULTS.md of a recipe, found none" in done.stdout
    done = run_recipe("mini", "report", "--work-dir", copied)
    assert done.returncode == 0, done.stdout
    text, own = (path.read_text() for path in (copied / "exp/RESULTS.md", copied / EXP / "RESULTS.md"))
    assert text.startswith("# mini\n") and own.splitlines()[0] in text and own.splitlines()[-1] in text
    assert code_version().split()[0] in text
    assert "<h2>Results: mini" in (copied / "exp/report.html").read_text()
    assert run_recipe("mini", "report", "--work-dir", copied).stdout.strip().endswith("up to date")


def test_reports_of_parts_of_recipes_are_found(copied: Path) -> None:
    parts = ("confidence/results", "rescore_x/confidence/results", "pate_x/ctc/inversion_white_box")
    for part in parts:
        (copied / "exp" / part).mkdir(parents=True)
        for name in ("RESULTS.md", "figure7.svg"):
            (copied / "exp" / part / name).touch()
    done = run_recipe("mini", "report", "--work-dir", copied, "--dry-run", "true")
    assert done.returncode == 0, done.stdout
    [reads] = [line.split() for line in done.stdout.splitlines() if line.startswith("    reads")]
    for part in parts:
        assert reads.count(f"exp/{part}/RESULTS.md") == reads.count(f"exp/{part}/figure7.svg") == 1
