"""Imports go down only, and light modules import nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest

from tests.support.layers import LAYERS, LIGHT, ROOT, Import, imports, layer_problems, modules, part

MODULES = modules()


@pytest.mark.parametrize("module", [name for name in MODULES if name])
def test_imports_go_down(module: str) -> None:
    assert part(module) in LAYERS, f"{module} is in no layer: enter it in tests/support/layers.py"
    assert layer_problems(module, imports(MODULES[module])) == []


@pytest.mark.parametrize(
    ("module", "target", "at_top"),
    [
        ("text.x", "privasr_k2.data.y", True),  # up
        ("pate.x", "privasr_k2.attack.y", False),  # sideways
        ("text.x", "torch", False),
        ("lm.arpa", "torch", False),
        ("data.x", "lhotse", True),
        ("data.x", "privasr_k2.data.extractors", True),
        ("graph.x", "k2", True),
        ("am.ctc", "k2", False),
        ("bin.x", "privasr_k2.unknown", True),
        ("bin.x", ".cli", True),
    ],
)
def test_a_wrong_import_is_found(module: str, target: str, at_top: bool) -> None:
    assert len(layer_problems(module, [Import(target, 1, at_top)])) == 1


def test_right_imports_are_let_through() -> None:
    right = [("graph.hlg", "k2", False), ("am.losses", "k2", False), ("compat", "torch", False)]
    right += [
        ("data.features", "privasr_k2.config", True),
        ("am.ctc", "torch", True),
        ("data.extractors", "lhotse", True),
    ]
    for module, target, at_top in [*right, ("config", "yaml", True)]:
        assert layer_problems(module, [Import(target, 1, at_top)]) == []


def test_no_cycles() -> None:
    targets = {
        name: {i.target.removeprefix("privasr_k2.") for i in imports(path) if i.at_top}
        for name, path in MODULES.items()
    }
    TopologicalSorter({n: found & MODULES.keys() for n, found in targets.items()}).prepare()


def _brought_in(names: list[str]) -> dict[str, list[str]]:
    """The heavy packages that each module brings in, imported in this order in a new process."""
    code = """
import importlib, json, sys
brought, seen = {}, set()
for name in json.loads(sys.argv[1]):
    importlib.import_module(("privasr_k2." + name).rstrip("."))
    new = {"torch", "lhotse", "k2", "opacus"} & set(sys.modules) - seen
    seen |= new
    if new:
        brought[name] = sorted(new)
print(json.dumps(brought))
"""
    command = [sys.executable, "-c", code, json.dumps(names)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_light_modules_bring_in_nothing_heavy() -> None:
    light = [name for name in MODULES if not name or LAYERS[part(name)] <= 1 or name in LIGHT]
    assert _brought_in(light) == {}


def test_no_module_brings_in_k2() -> None:
    assert [name for name, heavy in _brought_in(list(MODULES)).items() if "k2" in heavy] == []
