"""The recipe classlm on the tiny corpus: all systems, resumed, and what the ledger says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from privasr_k2.privacy.ledger import Ledger
from privasr_k2.recipe.front import declare
from privasr_k2.recipe.systems import read_systems
from tests.support.recipe_tools import ROOT, run_recipe, stage_lines

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/classlm_tdnn_phone"
OPTIONS = ("mini", "classlm", "--preset", "tiny")


@pytest.mark.timeout(1500)  # some hundred stages
def test_from_text_to_results(copied: Path) -> None:
    done = run_recipe(*OPTIONS, "--work-dir", copied)
    assert done.returncode == 0, done.stdout
    # The acoustic model is shared with recipe ctc.
    assert "acoustic model, tdnn ... up to date" in done.stdout
    declared = {one.name: one for one in read_systems(copied / EXP / "systems.jsonl")}
    perplexities = json.loads((copied / EXP / "perplexity_test.json").read_text())["lms"]
    ppl = {one["lm"]: one["ppl"] for one in perplexities}
    assert len(ppl) == len(perplexities) == 23
    for setting, systems in {
        "sanitized": ("M1", "M2", "M3", "M4"),
        "original": ("M1", "M2", "M3", "M4"),
        "direct_30": ("M1", "M2", "M3", "M4"),
        "adapt_30": ("M1_eq1", "M1_eq2", "M2_eq1", "M2_eq2", "M3", "M4"),
        "mixed": ("M1_M2", "M1_M2_M3", "M1_M2_exact", "M1_M2_M3_exact", "M1_M2_M4"),
    }.items():
        for system in systems:
            folder = copied / declared[f"{setting}/{system}"].artifacts["score_test"]
            parts = json.loads((folder / "wer.json").read_text())["parts"]
            counts = parts["test"]["counts"]
            assert counts["hits"] + counts["substitutions"] + counts["deletions"] > 50
            assert parts["test"]["entities"]["classes"]["PER"]["ref_words"] > 0
    # A class LM marks the names that it has found.
    hyps = [json.loads(line) for line in lines(copied / EXP / "sanitized/M2/decode_test")]
    assert any(hyp["classes"] for one in hyps for hyp in one["hyps"])

    entries = Ledger(copied / "privacy/ledger.json").entries()
    data = [
        "mini/train",
        "mini/train and mini/adapt",
    ]  # users of either may be among the adaptation text's
    assert sorted(entry.spending.data for entry in entries) == data

    again = run_recipe(*OPTIONS, "--work-dir", copied)
    stages = stage_lines(again.stdout)
    assert (
        again.returncode == 0 and stages and all(line.endswith("up to date") for line in stages)
    ), again.stdout
    assert len(Ledger(copied / "privacy/ledger.json").entries()) == 2


def test_without_speech_and_what_cannot_be(tmp_path: Path) -> None:
    done = run_recipe("mini", "classlm", "--mix", "half", "--work-dir", tmp_path)
    assert done.returncode == 2 and "--mix: expected one of em, preset, found 'half'" in done.stdout
    done = run_recipe("librispeech", "classlm", "--work-dir", tmp_path)
    assert (
        done.returncode == 2 and "public lists of names, found none for librispeech" in done.stdout
    )
    options = ("--dry-run", "true", "--decode", "false", "--work-dir", tmp_path)
    done = run_recipe(*OPTIONS, *options)
    assert done.returncode == 0 and "train_am" not in done.stdout and "stage 13" not in done.stdout
    assert "stage 16 (results)" in done.stdout
    done = run_recipe("mini", "classlm", "--preset", "tiny", "--adapt-percent", "", *options)
    assert done.returncode == 0 and "adapt_lm" not in done.stdout and "mixture" not in done.stdout
    # Under a limit nothing is made that no guarantee covers, not even the vocabulary.
    done = run_recipe(
        "mini",
        "classlm",
        "--preset",
        "tiny",
        "--adapt-percent",
        "",
        "--max-epsilon",
        "25",
        *options,
    )
    shown = {stage.partition("\n")[0]: stage for stage in done.stdout.split("\nstage ")}
    words = shown["8 (lang directory of all words)"]
    assert (
        "sanitized.jsonl.gz" in words
        and "text_classlm" not in words
        and "lang_phone_released" in words
    )
    assert not [
        name for name in shown if "original" in name or "adapt" in name.replace("adaptation,", "")
    ]
    # Tagged by spaCy and a gazetteer, which needs the lists, and text that tells names from other
    # words.
    done = run_recipe(
        "ami", "classlm", "--corpus-dir", tmp_path, "--public-text", tmp_path, *options
    )
    [tagging] = [line for line in done.stdout.split("\nstage ") if line.startswith("3 (names in")]
    assert "data/public/lists data/public/tagged.jsonl.gz" in tagging
    assert "_gold" not in done.stdout  # nobody annotated it


def test_taggers_are_measured_where_names_are_annotated(tmp_path: Path) -> None:
    options = ("--dry-run", "true", "--decode", "false", "--work-dir", tmp_path)
    corpus = (
        "earnings21",
        "classlm",
        "--corpus-dir",
        tmp_path,
        "--public-text",
        tmp_path,
        *options,
    )
    shown = stages(run_recipe(*corpus, "--taggers", "gazetteer"))
    report = shown["6 (names found and replaced)"]
    assert (
        "data/text_classlm/background.jsonl.gz data/text_classlm_gold/background.jsonl.gz" in report
    )
    assert "data/manifests_gold" in shown["4 (the same parts with annotated names)"]
    assert "data/manifests_gold" in shown["16 (results)"]  # names are scored as annotated
    assert "data/manifests_tagged" in shown["4 (background, adaptation, dev and test text)"]
    # What was annotated is what is sanitized: there is nothing to measure.
    assert not [name for name in stages(run_recipe(*corpus)) if "annotated" in name]
    shown = stages(run_recipe(*OPTIONS, *options, "--taggers", "gazetteer", "--gold", "true"))
    # Text beside the cuts is tagged, too.
    assert "data/further_tagged.jsonl.gz" in shown["4 (background, adaptation, dev and test text)"]
    assert "written.jsonl" in shown["4 (the same parts with annotated names)"]
    done = run_recipe(*OPTIONS, *options, "--gold", "some")
    assert done.returncode == 2 and "expected true or false, found 'some'" in done.stdout


def test_what_is_tested_against_what(tmp_path: Path) -> None:
    declared = declare(*OPTIONS[:2], [*OPTIONS[2:], "--work-dir", str(tmp_path)], ROOT, tmp_path)
    systems = {one.name: one for one in declared.systems if one.method not in ("recipe", "release")}
    pairs = [
        frozenset((name, other)) for name, one in systems.items() for other in one.compare_with
    ]
    assert len(systems) == 23 and len(pairs) == len(set(pairs)) == 58
    # Everything with the word n-gram of sanitized text.
    assert {frozenset(("sanitized/M1", name)) for name in systems if name != "sanitized/M1"} <= set(
        pairs
    )
    for adapted, model in (("M1_eq1", "M1"), ("M2_eq2", "M2"), ("M4", "M4")):
        against = systems[f"adapt_30/{adapted}"].compare_with
        assert {f"sanitized/{model}", f"direct_30/{model}"} <= set(against)
    assert "adapt_30/M1_eq2" in systems["adapt_30/M2_eq2"].compare_with
    assert "mixed/M1_M2" in systems["mixed/M1_M2_exact"].compare_with
    rivals = {
        name
        for name in systems
        if name.split("/")[0] in ("sanitized", "direct_30", "adapt_30", "mixed")
    }
    assert set(systems["mixed/M1_M2_M4"].compare_with) == rivals - {"mixed/M1_M2_M4"}
    # The release is the sanitized text. No model has its guarantee: their vocabulary has words of
    # all texts.
    assert not any("privacy" in one.artifacts for one in systems.values())
    [release] = [one for one in declared.systems if one.method == "release"]
    assert release.artifacts["privacy"] == f"{EXP}/sanitized_text_privacy.json" and release.headline
    options = ["--adapt-percent", "", "--original", "false", "--work-dir", str(tmp_path)]
    released = declare(*OPTIONS[:2], [*OPTIONS[2:], *options], ROOT, tmp_path).systems
    covered = [one.name for one in released if "privacy" in one.artifacts]
    assert {"sanitized/M1", "sanitized/M2", "sanitized_text"} <= set(covered)


def stages(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What a dry run shows of each stage, by number and title."""
    assert done.returncode == 0, done.stdout
    return {stage.partition("\n")[0]: stage for stage in f"\n{done.stdout}".split("\nstage ")}


def lines(folder: Path) -> list[str]:
    """All lines of a folder's files."""
    return [
        line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]
