"""Every recipe on every corpus with every preset: its declarations fit its verbs."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from privasr_k2 import sections
from privasr_k2.errors import ConfigError
from privasr_k2.recipe import front
from privasr_k2.recipe.corpus import corpus_names, find_corpus
from privasr_k2.recipe.front import Declaration, declare, load_file, recipe_names
from privasr_k2.recipe.plan import NEUTRAL
from privasr_k2.recipe.run import report_command

ROOT = Path(__file__).resolve().parents[3]
#: Recipes that need more than a corpus: results of others, or a corpus that only one has.
NEEDS = {"report", "confidence"}


def pairs() -> list[tuple[str, str]]:
    every = {*recipe_names(ROOT)} - NEEDS
    corpora = [find_corpus(name, ROOT, ROOT) for name in corpus_names(ROOT)]
    own = {c.name: c.recipes if c.only_these or not c.trains_am else every for c in corpora}
    return [(name, recipe) for name, recipes in own.items() for recipe in sorted(recipes)]


@functools.cache
def flags_of(verb: str) -> frozenset[str]:
    """The flags that the ``--help`` of a verb lists."""
    command = [sys.executable, "-m", "privasr_k2", "verb", verb, "--help"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    text = subprocess.check_output(command, text=True, cwd=ROOT, env=variables)
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*", text.partition("options:")[2]))


def declared(corpus: str, recipe: str, preset: str, tmp_path: Path) -> Declaration:
    words = ["--preset", preset, "--work-dir", str(tmp_path)]
    own = find_corpus(corpus, ROOT, ROOT).options
    own_tokens = recipe != "redteam" and corpus in ("librispeech", "timit")
    if recipe in ("pate", "dpsgd", "redteam") and not own_tokens:
        words += [] if "token_type" in own else ["--token-type", "char"]
    without_names = ("librispeech", "timit", "speechocean762")
    if recipe in ("classlm", "compose") and corpus in without_names:
        words += ["--public-names", str(tmp_path)]
    if recipe == "encoder":
        words += ["--encoder-model", str(tmp_path), "--folds", "2"]
    return declare(corpus, recipe, words, ROOT, tmp_path)


@pytest.mark.parametrize("preset", ["small", "tiny", "demo", "paper"])
@pytest.mark.parametrize(("corpus", "recipe"), pairs())
def test_flags_configurations_and_systems(
    corpus: str, recipe: str, preset: str, tmp_path: Path
) -> None:
    declaration = declared(corpus, recipe, preset, tmp_path)
    for stage in declaration.stages:
        task = stage.tasks[0]
        flags = {word for word in task.argv if word.startswith("--")}
        unknown = flags - flags_of(task.argv[0]) - set(NEUTRAL) - {"--config", "--set"}
        assert not unknown, f"{stage.label}: {task.argv[0]} {unknown}"
        assert all(sections.exists(path) for path in task.configs), stage.label
    names = {system.name for system in declaration.systems}
    for system in declaration.systems:
        assert {*system.compare_with} <= names - {system.name}
        assert not system.protects or "privacy" in system.artifacts, system.name


def test_text_corpora_are_decoded_with_public_acoustic_models_alone(tmp_path: Path) -> None:
    words = ["--speech", "synthetic", "--decode", "true", "--work-dir", str(tmp_path)]
    with pytest.raises(ConfigError, match="a public acoustic model"):
        declare("scotus", "fedlm", words, ROOT, tmp_path)
    made = declare("scotus", "fedlm", [*words, "--whisper", str(tmp_path)], ROOT, tmp_path)
    assert "train_am" not in {stage.tasks[0].argv[0] for stage in made.stages}


def test_options_are_read_in_the_text_of_recipes(repo_root: Path) -> None:
    """As a default of corpus.yaml is looked up among those of all recipes."""
    files = [
        file for name in ("recipes", "stages") for file in (repo_root / "local" / name).glob("*.py")
    ]
    found = set().union(*map(front._fields, files))
    for name in recipe_names(repo_root):
        recipe = load_file(repo_root / f"local/recipes/{name}.py", repo_root)
        assert {field.name for field in dataclasses.fields(recipe.Options)} <= found, name


def test_the_page_of_all_results_has_every_recipe(repo_root: Path) -> None:
    order = load_file(repo_root / "local/recipes/report.py", repo_root).ORDER
    assert sorted(order) == [name for name in recipe_names(repo_root) if name != "report"]


def test_the_page_of_all_results_is_that_of_the_same_work_folder(
    repo_root: Path, tmp_path: Path
) -> None:
    made = declare("mini", "ctc", [], repo_root, tmp_path)
    assert report_command(made) == "./run.sh mini report"
    made = declare("mini", "ctc", ["--work-dir", "work"], repo_root, tmp_path)
    assert report_command(made) == f"./run.sh mini report --work-dir {tmp_path}/work"


def test_compose_claims_for_error_rates_what_its_acoustic_model_allows(tmp_path: Path) -> None:
    imported = ["--am-model", "am.pt", "--am-tokens", "tokens.txt"]
    for words in ([], imported):
        made = declare("mini", "compose", words, ROOT, tmp_path)
        systems = {system.name: system for system in made.systems}
        for name in ("first_pass", "pretrained"):
            assert ("privacy" in systems[name].artifacts) == bool(words)
            assert bool(systems[name].protects) == bool(words)
