"""Releases that the bash recipes finished are not made again by their successors in Python.

``data/releases_of_bash_recipes.json`` holds the commands in the stamps of a demonstration of commit
075ac45, with ``{root}`` for the checkout.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from privasr_k2.recipe.front import declare
from privasr_k2.recipe.plan import NEUTRAL, values_of, without
from privasr_k2.recipe.renames import canonical

#: Options of that demonstration, and those that were defaults then.
DEMONSTRATION = {
    "mini_pate": {
        "dpsgd": "",
        "pate": "--vote utterance --self-trained false --unlabeled-data none"
        " --dpsgd-epsilons '8 inf' --words 'play turn'",
    },
    "mini": {
        "ctc": "",
        "rescore": "",
        "classlm": "--adapt-percent 15",
        "fmp": "--rounds '1 2 5' --epsilons 1 --privacy-unit 'utterance user' --as-published true",
        "fedlm": "--nnlm lstm --confidence-use 'all token' --private-confidence-use all"
        " --noises 0.5 --scratch false --client zipf",
    },
}
ROOT = Path(__file__).resolve().parents[3]
RECORDED = json.loads((Path(__file__).parent / "data/releases_of_bash_recipes.json").read_text())


def _releases(commands: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """The comparable words of each release, by the file of its guarantee."""
    paths = [(values_of(command, "--out-privacy"), command) for command in commands]
    return {path[0]: _comparable(command) for path, command in paths if path}


def _declared(corpus: str, tmp_path: Path) -> Iterator[Sequence[str]]:
    shared = ["--preset", "demo", "--nj", "1", "--work-dir", str(tmp_path)]
    for recipe, options in DEMONSTRATION[corpus].items():
        words = [*shared, *shlex.split(options)]
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
