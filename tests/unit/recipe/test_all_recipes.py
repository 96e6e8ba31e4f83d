"""Every recipe on every corpus with default options and every preset: what it declares fits its
verbs.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from privasr_k2 import sections
from privasr_k2.recipe.corpus import corpus_names, find_corpus
from privasr_k2.recipe.front import Declaration, declare, recipe_names
from privasr_k2.recipe.plan import NEUTRAL

ROOT = Path(__file__).resolve().parents[3]
#: Recipes that need more than a corpus: results of others, or a corpus that only one has.
NEEDS = {"report", "confidence"}


def pairs() -> list[tuple[str, str]]:
    found = []
    for name in corpus_names(ROOT):
        corpus = find_corpus(name, ROOT, ROOT)
        recipes = corpus.recipes if corpus.only_these else set(recipe_names(ROOT)) - NEEDS
        found += [(name, recipe) for recipe in sorted(recipes)]
    return found


@functools.cache
def flags_of(verb: str) -> frozenset[str]:
    """The flags that the ``--help`` of a verb lists."""
    done = subprocess.run(
        [sys.executable, "-m", "privasr_k2", "verb", verb, "--help"],
        capture_output=True, text=True, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*", done.stdout.partition("options:")[2]))


def declared(corpus: str, recipe: str, preset: str, tmp_path: Path) -> Declaration:
    words = ["--preset", preset, "--work-dir", str(tmp_path)]
    if (
        recipe in ("pate", "dpsgd")
        and find_corpus(corpus, ROOT, ROOT).options.get("token_type") is None
    ):
        words += [] if corpus in ("librispeech", "timit") else ["--token-type", "char"]
    if recipe in ("classlm", "compose") and corpus in ("librispeech", "timit"):
        words += ["--public-names", str(tmp_path)]  # these corpora come without names
    return declare(corpus, recipe, words, ROOT, tmp_path)


@pytest.mark.parametrize("preset", ["small", "tiny", "demo", "paper"])
@pytest.mark.parametrize(("corpus", "recipe"), pairs())
def test_flags_configurations_and_systems(
    corpus: str, recipe: str, preset: str, tmp_path: Path
) -> None:
    found = declared(corpus, recipe, preset, tmp_path)
    for stage in found.stages:
        task = stage.tasks[0]
        flags = {word for word in task.argv if word.startswith("--")}
        unknown = flags - flags_of(task.argv[0]) - set(NEUTRAL) - {"--config", "--set"}
        assert not unknown, f"{stage.label}: {task.argv[0]} {unknown}"
        assert all(sections.exists(path) for path in task.configs), stage.label
    names = {one.name for one in found.systems}
    for one in found.systems:
        assert {*one.compare_with} <= names and one.name not in one.compare_with
        assert not one.protects or "privacy" in one.artifacts, one.name
