"""A wheel is built, installs, and holds what the package reads."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

import privasr_k2
from tests.support.layers import LAYERS, PACKAGE, ROOT, modules, part


@pytest.mark.slow
def test_a_wheel_that_installs(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "privasr_k2"):
        (source / name).symlink_to(ROOT / name)
    dist = str(tmp_path / "dist")
    wheel_of = ["wheel", "--no-deps", "--no-build-isolation", str(source), "-w", dist]
    subprocess.run([*pip, *wheel_of], check=True, cwd=tmp_path)
    [wheel] = (tmp_path / "dist").glob(f"privasr_k2-{privasr_k2.__version__}-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    needed = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".txt")]
    assert {path.relative_to(ROOT).as_posix() for path in needed} <= held
    target = tmp_path / "installed"
    install = ["install", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run([*pip, *install], check=True, cwd=tmp_path)
    code = "import privasr_k2.bin.privacy_plan as verb; print(verb.__file__)"
    command, variables = [sys.executable, "-c", code], {"PYTHONPATH": str(target)}
    file = subprocess.check_output(command, text=True, cwd=tmp_path, env=variables)
    assert file.startswith(str(target))


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def distribution(requirement: str) -> str:
    """The normalized name in a requirement."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def with_dependencies(names: Iterable[str]) -> set[str]:
    """Distributions and all installed ones that they need, without extras."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                needed = importlib.metadata.requires(name) or []
                waiting += [distribution(text) for text in needed if "extra ==" not in text]
    return found


def test_the_core_imports_without_the_extras() -> None:
    core = with_dependencies(map(distribution, PROJECT["dependencies"]))
    assert core.isdisjoint({"torch", "k2", "lhotse", "kaldifst"})
    installed = importlib.metadata.packages_distributions().items()
    others = {top for top, owners in installed if core.isdisjoint(map(distribution, owners))}
    blocked = sorted((others | {"torch", "k2", "lhotse", "kaldifst"}) - {"privasr_k2"})
    assert {"torch", "spacy", "sklearn", "matplotlib"} <= set(blocked)
    names = [f"privasr_k2.{name}" for name in modules() if name and LAYERS[part(name)] <= 1]
    names += [f"privasr_k2.bin.{name}" for name in ("privacy_plan", "ledger", "compare")]
    code = (
        "import importlib, json, sys\n"
        "blocked, names = json.loads(sys.stdin.read())\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name in blocked: raise ModuleNotFoundError(f'{name} is blocked', name=name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "for name in names: importlib.import_module(name)\n"
    )
    shared = {"input": json.dumps([blocked, names]), "cwd": ROOT, "capture_output": True}
    done = subprocess.run([sys.executable, "-c", code], text=True, **shared)
    assert done.returncode == 0, done.stderr


def test_every_package_that_is_declared_is_locked() -> None:
    extras = PROJECT["optional-dependencies"]
    apart = ("all", "docs", "names")  # not in the environment that path.sh makes
    needed = [text for name in extras if name not in apart for text in extras[name]]
    declared = {distribution(text) for text in (*PROJECT["dependencies"], *needed)}
    files = ("requirements/torch1.txt", "requirements/kenlm.txt")
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in files)
    locked = {distribution(line) for line in text.splitlines() if "==" in line}
    assert declared - locked == set()
    [everything] = extras["all"]
    parts = set(re.split(r"[\[\],]+", everything.rstrip("]")))
    assert parts == {PROJECT["name"], *extras} - {"all"}


def test_uv_lock_is_that_of_the_project() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    packages = {package["name"]: package for package in lock["package"]}
    mine = packages[PROJECT["name"].replace("_", "-")]
    assert lock["requires-python"] == PROJECT["requires-python"]
    for name, declared in PROJECT["optional-dependencies"].items():
        if name != "all":
            of_extra = {entry["name"] for entry in mine["optional-dependencies"][name]}
            assert of_extra == {distribution(text) for text in declared}
    assert {entry["name"] for entry in mine["dependencies"]} == {
        distribution(text) for text in PROJECT["dependencies"]
    }
    # Everybody gets the same files.
    sources = {package["source"].get("registry", "here") for package in packages.values()}
    assert sources == {"https://pypi.org/simple", "here"}
