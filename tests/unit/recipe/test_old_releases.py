"""Releases that the bash recipes finished are not made again by their successors in Python.

``data/releases_of_bash_recipes.json`` holds the commands in the stamps of a demonstration of commit
075ac45, with ``{root}`` for the checkout.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from privasr_k2.recipe.front import declare, load_file
from privasr_k2.recipe.plan import NEUTRAL, values_of, without
from privasr_k2.recipe.renames import canonical

#: What was the default then.
EARLIER = {
    "fedlm": ["--client", "zipf"],
    "fmp": ["--privacy-unit", "utterance user", "--as-published", "true"],
}
ROOT = Path(__file__).resolve().parents[3]
RECORDED = json.loads((Path(__file__).parent / "data/releases_of_bash_recipes.json").read_text())


def _releases(commands: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """The comparable words of each release, by the file of its guarantee."""
    paths = [(values_of(command, "--out-privacy"), command) for command in commands]
    return {path[0]: _comparable(command) for path, command in paths if path}


def _declared(corpus: str, tmp_path: Path) -> Iterator[Sequence[str]]:
    shared = ["--preset", "demo", "--nj", "1", "--work-dir", str(tmp_path)]
    for recipe, words in load_file(ROOT / "local/demo.py", ROOT).CHAINS[corpus]:
        words = [*shared, *words, *EARLIER.get(recipe, [])]
        for stage in declare(corpus, recipe, words, ROOT, tmp_path).stages:
            yield stage.tasks[0].argv


def _comparable(command: Sequence[str]) -> list[str]:
    """The words that fingerprints hold; DP-SGD has a roster since: finished releases are kept."""
    since = ["--in-public-roster"] * (command[0] == "train_dpsgd")
    words = without(command, "--config", *since, *NEUTRAL)
    return canonical([word.replace(f"{ROOT}/", "{root}/") for word in words])


@pytest.mark.parametrize("corpus", ["mini", "mini_pate"])
def test_commands_of_releases_are_the_same(corpus: str, tmp_path: Path) -> None:
    declared = _releases(_declared(corpus, tmp_path))
    recorded = _releases(r["command"] for r in RECORDED if r["corpus"] == corpus)
    assert recorded and recorded == {path: declared.get(path) for path in recorded}
