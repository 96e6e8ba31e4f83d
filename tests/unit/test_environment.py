"""The doctor's findings, on environments that are made up."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from privasr_k2 import environment
from privasr_k2.environment import Finding

LOCKED = environment.locked_versions(environment.lock_files("torch1"))


@pytest.mark.parametrize("stack", ["torch1", "torch2", "torch2-cpu"])
def test_lock_files_name_what_the_recipes_need(stack: str) -> None:
    locked = environment.locked_versions(environment.lock_files(stack))
    needed = {name for needs in environment.RECIPES.values() for name in needs}
    assert needed - locked.keys() == ({"k2"} if stack == "torch2-cpu" else set())


def test_the_needs_of_every_recipe_are_known(repo_root: Path) -> None:
    recipes = {file.stem for file in (repo_root / "local/recipes").glob("*.py")}
    assert environment.RECIPES.keys() == recipes - {"report"}


@pytest.mark.parametrize("name", ["torch1.txt", "torch2.txt", "kenlm.txt", "k2.txt"])
def test_every_locked_package_has_a_hash(repo_root: Path, name: str) -> None:
    blocks = re.split(r"\n(?=[a-z0-9])", (repo_root / "requirements" / name).read_text())
    packages = [block for block in blocks if re.match(r"[a-z0-9]", block)]
    assert packages
    assert [block.split("\n")[0] for block in packages if "--hash=sha256:" not in block] == []


def test_the_torch2_lock_brings_no_torch_of_its_own() -> None:
    locked = environment.locked_versions([environment.ROOT / "requirements" / "torch2.txt"])
    assert [name for name in locked if re.match(r"torch$|k2$|triton|nvidia-|cuda-", name)] == []


def test_all_there() -> None:
    findings = environment.check_packages(LOCKED, LOCKED.get)
    assert all(finding.ok and finding.found == finding.expected for finding in findings)
    assert environment.missing_for("classlm", findings) == []


def test_a_missing_package_stops_only_the_recipes_that_need_it() -> None:
    without = {name: version for name, version in LOCKED.items() if name != "spacy"}
    findings = environment.check_packages(LOCKED, without.get)
    assert [f.name for f in environment.missing_for("classlm", findings)] == ["spacy"]
    assert environment.missing_for("ctc", findings) == []


@pytest.mark.parametrize(
    ("torch", "torch_cuda", "k2_torch", "k2_cuda", "way_out"),
    [
        ("1.13.1", "11.7", "1.13.1+cu117", "11.7", ""),
        ("1.13.1+cu117", "11.7", "1.13.1+cu116", "11.6", ""),
        ("2.9.1+cpu", None, "2.9.1+cpu", None, ""),
        ("2.13.0", "13.0", "2.9.1", "12.8", "built for torch 2.13.0"),
        ("2.9.1", "13.0", "2.9.1", "12.8", "built for CUDA 13.0"),
        ("2.9.1+cpu", None, "2.9.1", "12.8", "both with CUDA or both without"),
        ("2.9.1", "12.8", "2.9.1+cpu", None, "both with CUDA or both without"),
        (None, None, "1.13.1", "11.7", "torch is missing"),
        ("2.13.0", None, None, None, "k2 is missing"),
    ],
)
def test_fit(torch, torch_cuda, k2_torch, k2_cuda, way_out) -> None:
    finding = environment.check_fit(torch, torch_cuda, k2_torch, k2_cuda)
    assert way_out in finding.way_out
    assert finding.ok == (way_out == "")


def test_versions_are_read_as_the_packages_say_them() -> None:
    import torch

    version, cuda, k2_torch, _ = environment.built_with()
    assert version == torch.__version__
    assert cuda == torch.version.cuda
    assert (k2_torch is None) == (environment.installed_version("k2") is None)


@pytest.mark.parametrize("device", ["auto", "cuda", "cuda:0", "cuda:1"])
def test_gpus_without_kernels_are_found(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    told = ["1.13.1", ["sm_70", "sm_86"], [["H100", 9, 0], ["L4", 8, 9]]]
    done = subprocess.CompletedProcess([], 0, stdout=f"a warning\n{json.dumps(told)}\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: done)
    wrong = {finding.found: finding.ok for finding in environment.check_gpus(device)}
    h100, l4 = (f"{name}; torch 1.13.1" for name in ("H100, compute capability 9.0",
                                                     "L4, compute capability 8.9"))  # fmt: skip
    both = {h100: False, l4: True}
    assert wrong == {"cuda:0": {h100: False}, "cuda:1": {l4: True}}.get(device, both)
    assert environment.check_gpus("cpu") == []


def test_this_machine_says_what_it_has() -> None:
    torch = pytest.importorskip("torch")
    assert len(environment.check_gpus()) == torch.cuda.device_count()


def test_a_wrong_python_stops_every_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.version_info", (3, 10, 1, "final", 0))
    findings = environment.check_machine(tmp_path)
    way_out = "install CPython 3.11 or newer (docs/install.md)"
    assert findings[0] == Finding("python", "cpython 3.10.1", "cpython 3.11 or newer", way_out)
    assert [f.name for f in environment.missing_for("ctc", findings)] == ["python"]
