"""Tests share helpers through ``tests/support`` only."""

from __future__ import annotations

import ast
import re
from pathlib import Path


def test_helpers_are_in_support(repo_root: Path) -> None:
    tests = repo_root / "tests"
    wrong = []
    for path in sorted(tests.rglob("*.py")):
        name = path.relative_to(tests).as_posix()
        is_helper = not path.name.startswith("test_")
        elsewhere = is_helper and not name.startswith(("support/", "conftest"))
        if elsewhere and 'if __name__ == "__main__"' not in path.read_text():
            wrong.append(name)
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            outside = (m for m in modules if re.match(r"tests(?!\.support\b)\b", m))
            wrong += [f"{name}: {module}" for module in outside]
    assert wrong == []
