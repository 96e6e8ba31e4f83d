"""One finished tiny recipe for all tests that only look at it or work on a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.recipes.recipe_tools import run_recipe


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work folder of ``./run.sh mini ctc --size tiny``, run to its end; not to be changed."""
    work = tmp_path_factory.mktemp("tiny") / "work"
    done = run_recipe("mini", "ctc", "--size", "tiny", "--work-dir", work)
    assert done.returncode == 0, done.stdout
    return work


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of that folder, up to date, to be changed."""
    work = tmp_path / "work"
    shutil.copytree(finished, work)
    return work
