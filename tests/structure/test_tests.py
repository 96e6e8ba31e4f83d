"""Tests share helpers through ``tests/support`` only."""

from __future__ import annotations

import ast
from pathlib import Path


def test_helpers_are_in_support(repo_root: Path) -> None:
    """Each import from ``tests`` names a module of ``tests/support``; no helper file stands
    elsewhere.
    """
    tests = repo_root / "tests"
    wrong = []
    for path in sorted(tests.rglob("*.py")):
        name = path.relative_to(tests).as_posix()
        elsewhere = not name.startswith(("support/", "conftest")) and not path.name.startswith(
            "test_"
        )
        if elsewhere and 'if __name__ == "__main__"' not in path.read_text():
            wrong.append(name)
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            wrong += [
                f"{name}: {module}"
                for module in modules
                if module.split(".")[0] == "tests" and module.split(".")[1:2] != ["support"]
            ]
    assert wrong == []
