"""A GPU that torch has no kernels for is refused before a stage runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2 import environment
from privasr_k2.environment import Finding
from privasr_k2.errors import ConfigError
from privasr_k2.recipe import run as runs
from privasr_k2.recipe.front import Declaration, declare

ROOT = Path(__file__).parents[3]


def declared(tmp_path: Path, *words: str) -> Declaration:
    command = ["--preset", "tiny", "--work-dir", str(tmp_path), *words]
    return declare("mini", "ctc", command, ROOT, tmp_path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The devices that were asked about, on a machine with a GPU of no use."""
    devices: list[str] = []

    def check(device: str) -> list[Finding]:
        devices.append(device)
        return [Finding("GPU", "H100, compute capability 9.0", "sm_86", "another torch")]

    monkeypatch.setattr(environment, "check_gpus", check)
    monkeypatch.setattr(runs, "NVIDIA", tmp_path)
    return devices


def test_it_is_refused(asked: list[str], tmp_path: Path) -> None:
    found = declared(tmp_path)
    with pytest.raises(ConfigError, match="compute capability"):
        runs.run_one(found, ROOT)
    assert asked == ["auto"] and not (tmp_path / "data").exists()


def test_where_nothing_is_computed_nothing_is_asked(asked: list[str], tmp_path: Path) -> None:
    for words in (["--stop-stage", "0"], ["--cmd", "slurm"]):
        found = declared(tmp_path, *words)
        runs.check_device(found.stages, found)
    assert asked == []


def test_without_a_driver_nothing_is_asked(
    asked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runs, "NVIDIA", tmp_path / "none")
    found = declared(tmp_path)
    runs.check_device(found.stages, found)
    assert asked == []
