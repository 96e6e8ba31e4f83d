"""What all tests share: the repository, the real data where there is any, and what a machine may
lack.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure() -> None:
    """Shell scripts that tests start use the interpreter that the tests run in, and install
    nothing.
    """
    os.environ["PRIVASR_ENV"] = "current"
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as path.sh does
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "2") if alone else "1"


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The checkout's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; the test is left out where there is none."""
    folder = _shared_data()
    if folder is None:
        pytest.skip("no real data: set PRIVASR_SHARED_DATA")
    return folder


def _shared_data() -> Path | None:
    named = os.environ.get("PRIVASR_SHARED_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder.resolve() if folder.is_dir() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, with a reason, the tests whose marker names something that is not here."""
    reasons = {
        "k2": None if importlib.util.find_spec("k2") else "k2 is not installed",
        "slurm": None if shutil.which("sbatch") else "no Slurm here (sbatch is not on the PATH)",
        "shared_data": None if _shared_data() else "no real data: set PRIVASR_SHARED_DATA",
    }
    for item in items:
        for marker, reason in reasons.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work folder of ``./run.sh mini ctc --preset tiny``, run to its end; not to be changed."""
    from tests.support.recipe_tools import run_recipe

    of_session = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        of_session = (
            of_session.parent
        )  # all processes': the first makes it, the others find it up to date
    work = of_session / "tiny" / "work"
    work.parent.mkdir(exist_ok=True)
    with open(work.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run_recipe("mini", "ctc", "--preset", "tiny", "--work-dir", work)
    assert done.returncode == 0, done.stdout
    return work


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of that folder, up to date, to be changed."""
    return Path(shutil.copytree(finished, tmp_path / "work"))
