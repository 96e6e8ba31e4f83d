"""Recipes are short, and nothing reads facts of a system from the name of a folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "local/recipes").glob("*.py"))
#: What turns a name back into facts.
PARSES = re.compile(
    r"\.parent\.name|\.(name|stem)\.(split|rsplit|removeprefix|startswith)|fullmatch|re\.compile"
)


@pytest.mark.parametrize("file", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_one_short_file(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= (34 if file.stem == "ctc" else 100)
    assert max(map(len, lines)) <= 100


def test_no_shell_is_left_but_entries_and_installation() -> None:
    left = {path.name for path in (ROOT / "local").rglob("*.sh")}
    assert left == {"cmd.sh", "install_env.sh", "lock.sh"}


def test_reports_read_declarations_and_no_names() -> None:
    package = ROOT / "privasr_k2"
    files = [*package.glob("report/**/*.py"), *package.glob("bin/report*.py")]
    lines = [(file.name, line) for file in files for line in file.read_text("utf-8").splitlines()]
    assert len(files) > 10 and not [pair for pair in lines if PARSES.search(pair[1])]
