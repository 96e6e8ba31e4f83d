"""Recipes whose first pass is Whisper's own decoder: what they declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2 import sections
from privasr_k2.errors import ConfigError
from privasr_k2.recipe.front import Declaration, declare

ROOT = Path(__file__).resolve().parents[3]
#: Verbs that need a trained acoustic model, its graph or its lattices.
OF_OWN_MODELS = {"compute_features", "train_am", "compile_graph", "decode", "rescore_lattices"}


def declared(tmp_path: Path, recipe: str, *words: str, corpus: str = "mini") -> Declaration:
    model = tmp_path / "base"
    model.mkdir()
    words = ("--whisper", str(model), "--work-dir", str(tmp_path / "work"), *words)
    return declare(corpus, recipe, list(words), ROOT, tmp_path)


@pytest.mark.parametrize("recipe", ["rescore", "fmp", "fedlm", "confidence"])
def test_no_acoustic_model_is_trained(recipe: str, tmp_path: Path) -> None:
    declaration = declared(tmp_path, recipe)
    tasks = [task for stage in declaration.stages for task in stage.tasks]
    verbs = {task.argv[0] for task in tasks}
    assert "whisper_nbest" in verbs and not verbs & OF_OWN_MODELS
    assert all(sections.exists(path) for task in tasks for path in task.configs)
    made = [task.argv for task in tasks if task.argv[0] == "whisper_nbest"]
    assert all(str(tmp_path / "base") in argv for argv in made)
    assert all(any(word.startswith("whisper_nbest") for word in argv) for argv in made)
    if recipe != "confidence":
        grids = {task.configs for task in tasks if task.argv[0] == "tune_weights"}
        assert all(any("#rescore_whisper" in path for path in paths) for paths in grids)


@pytest.mark.parametrize("first_pass", ["whisper", "own"])
def test_recipes_share_an_output_only_where_one_command_makes_it(
    first_pass: str, tmp_path: Path
) -> None:
    """So that one recipe after another in the same folder finds what it would write."""
    (tmp_path / "base").mkdir()
    words = ["--whisper", str(tmp_path / "base")] if first_pass == "whisper" else []
    writers: dict[str, tuple[str, tuple[str, ...]]] = {}
    shared = 0
    for recipe in ("rescore", "fmp", "fedlm"):
        given = [*words, "--work-dir", str(tmp_path / "work")]
        for stage in declare("mini", recipe, given, ROOT, tmp_path).stages:
            for task in stage.tasks:
                for output in task.outputs:
                    known = writers.setdefault(output, (recipe, task.argv))
                    assert known[1] == task.argv, (output, known[0], recipe)
                    shared += known[0] != recipe
    assert shared > 3


def test_its_own_best_hypotheses_are_a_system(tmp_path: Path) -> None:
    systems = {s.name: s for s in declared(tmp_path, "rescore").systems}
    assert systems["first_pass"].label == "Whisper's own decoder"
    assert {"score_dev", "score_test"} <= set(systems["first_pass"].artifacts)
    assert not any(name.startswith("lattice") for name in systems)


@pytest.mark.parametrize("words", [["--encoder", "blstm"], ["--avg", "2"]])
def test_options_of_acoustic_models_are_refused(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words[0]):
        declared(tmp_path, "rescore", *words)


def test_confidence_needs_a_recognizer(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--whisper"):
        declare("mini", "confidence", ["--work-dir", str(tmp_path)], ROOT, tmp_path)


def test_lists_are_rescored_with_released_words(tmp_path: Path) -> None:
    text = tmp_path / "public.txt"
    text.write_text("a b\n")
    words = ("--graph-text", str(text), "--epsilons", "1 8")
    declaration = declared(tmp_path, "wordvotes", *words, corpus="speechocean762")
    tasks = [task for stage in declaration.stages for task in stage.tasks]
    verbs = {task.argv[0] for task in tasks}
    assert {"whisper_nbest", "vote_words", "lm_scores"} <= verbs and not verbs & OF_OWN_MODELS
    systems = {s.name: s for s in declaration.systems}
    assert {"whisper", "public", "nonprivate", "eps_1", "eps_8"} <= set(systems)
    # Words and LM of the systems with a claim come from public text and votes alone.
    for task in tasks:
        if task.argv[0] == "prepare_lang" and "data/lang_phone_public" in task.argv:
            assert "--in-manifests" not in task.argv
    grids = {task.configs for task in tasks if task.argv[0] == "tune_weights"}
    assert grids and all(any("#rescore_whisper" in path for path in paths) for paths in grids)


@pytest.mark.parametrize(
    ("words", "expected"), [((), "--graph-text"), (("--grammars", "true"), "--grammars")]
)
def test_lists_need_public_text_and_have_no_graph(words, expected, tmp_path: Path) -> None:
    text = tmp_path / "public.txt"
    text.write_text("a b\n")
    given = ("--graph-text", str(text), *words) if words else ()
    with pytest.raises(ConfigError, match=expected):
        declared(tmp_path, "wordvotes", *given, corpus="speechocean762")
