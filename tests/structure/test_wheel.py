"""A wheel is built, installs, and holds what the package reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import privasr_k2
from tests.structure.layers import PACKAGE, ROOT


@pytest.mark.slow
def test_a_wheel_that_installs(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "privasr_k2"):
        (source / name).symlink_to(ROOT / name)
    built = ["wheel", "--no-deps", "--no-build-isolation", str(source), "-w", str(tmp_path / "dist")]
    subprocess.run([*pip, *built], check=True, cwd=tmp_path)
    [wheel] = (tmp_path / "dist").glob(f"privasr_k2-{privasr_k2.__version__}-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    needed = {p.relative_to(ROOT).as_posix() for p in PACKAGE.rglob("*") if p.suffix in (".py", ".txt")}
    assert needed <= held
    target = tmp_path / "installed"
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True, cwd=tmp_path
    )
    code = "import privasr_k2.bin.privacy_plan as verb; print(verb.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path,
        env={"PYTHONPATH": str(target)},
    ).stdout  # fmt: skip
    assert where.startswith(str(target))
