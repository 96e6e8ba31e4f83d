"""Releases that the bash recipes finished are not made again by their successors in Python.

``data/releases_of_bash_recipes.json`` holds the commands in the stamps of a demonstration of commit
075ac45, with ``{root}`` for the checkout.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.recipe.front import declare, load_file
from privasr_k2.recipe.renames import canonical

ROOT = Path(__file__).resolve().parents[3]
RECORDED = json.loads(
    Path(__file__).with_name("data").joinpath("releases_of_bash_recipes.json").read_text()
)
RELEASES = {
    record["command"][record["command"].index("--out-privacy") + 1]: record for record in RECORDED
}


def _chains() -> dict[str, list[tuple[str, list[str]]]]:
    return load_file(ROOT / "local/demo.py", ROOT).CHAINS  # type: ignore[no-any-return]


def _declared(corpus: str, tmp_path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for recipe, words in _chains()[corpus]:
        shared = ["--preset", "demo", "--nj", "1", "--work-dir", str(tmp_path)]
        for stage in declare(corpus, recipe, [*shared, *words], ROOT, tmp_path).stages:
            argv = list(stage.tasks[0].argv)
            if "--out-privacy" in argv:
                found[argv[argv.index("--out-privacy") + 1]] = argv
    return found


def _comparable(command: list[str]) -> list[str]:
    """Without what no fingerprint holds."""
    neutral = {"--config", "--ledger", "--max-epsilon", "--device", "--num-jobs"}
    kept: list[str] = []
    flag = ""
    for word in command:
        flag = word if word.startswith("--") else flag
        if flag not in neutral:
            kept.append(word.replace(f"{ROOT}/", "{root}/"))
    return canonical(kept)


@pytest.mark.parametrize("corpus", ["mini", "mini_pate"])
def test_commands_of_releases_are_the_same(corpus: str, tmp_path: Path) -> None:
    declared = _declared(corpus, tmp_path)
    recorded: dict[str, dict[str, Any]] = {
        p: r for p, r in RELEASES.items() if r["corpus"] == corpus
    }
    assert recorded
    for path, record in recorded.items():
        assert path in declared, path
        assert _comparable(declared[path]) == _comparable(record["command"]), record["title"]
