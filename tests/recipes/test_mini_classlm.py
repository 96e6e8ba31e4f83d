"""The recipe classlm on the tiny corpus: all systems, resumed, and the ledger."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from privasr_k2.fileio import read_jsonl
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.lineage import lineage
from privasr_k2.privacy.totals import joint_guarantee
from privasr_k2.recipe.front import declare
from privasr_k2.recipe.systems import read_systems
from tests.support.recipe_tools import (
    ROOT,
    assert_up_to_date,
    dry_run,
    error_counts,
    recipe,
    records,
    stage_lines,
)

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/classlm_tdnn_phone"
TINY = "mini classlm --preset tiny"
TEXT = f"{TINY} --decode false"
SYSTEMS = {
    **dict.fromkeys(("sanitized", "original", "direct_30"), ("M1", "M2", "M3", "M4")),
    "adapt_30": ("M1_eq1", "M1_eq2", "M2_eq1", "M2_eq2", "M3", "M4"),
    "mixed": ("M1_M2", "M1_M2_M3", "M1_M2_exact", "M1_M2_M3_exact", "M1_M2_M4"),
}


@pytest.mark.timeout(1500)  # some hundred stages
def test_from_text_to_results(copied: Path) -> None:
    # The acoustic model is shared with recipe ctc.
    assert "acoustic model, tdnn ... up to date" in recipe(TINY, "--work-dir", copied)
    systems = {system.name: system for system in read_systems(copied / EXP / "systems.jsonl")}
    perplexities = json.loads((copied / EXP / "perplexity_test.json").read_text())["lms"]
    assert len({lm["lm"] for lm in perplexities}) == len(perplexities) == 23
    for name in (f"{setting}/{model}" for setting, models in SYSTEMS.items() for model in models):
        folder = copied / systems[name].artifacts["score_test"]
        counts = error_counts(folder)
        assert counts["hits"] + counts["substitutions"] + counts["deletions"] > 50
        test = json.loads((folder / "wer.json").read_text())["parts"]["test"]
        assert test["entities"]["classes"]["PER"]["ref_words"] > 0
    # A class LM marks the names that it has found.
    hyps = records(copied / EXP / "sanitized/M2/decode_test")
    assert any(hyp["classes"] for record in hyps for hyp in record["hyps"])

    ledger = Ledger(copied / "privacy/ledger.json")
    # Users of either may be among the adaptation text's.
    data = ["mini/train", "mini/train and mini/adapt"]
    assert sorted(entry.spending.data for entry in ledger.entries()) == data
    assert_up_to_date(TINY, "--work-dir", copied)
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("mini classlm --mix half", "--mix: expected one of em, preset, found 'half'"),
        ("librispeech classlm", "public lists of names, found none for librispeech"),
        (f"{TEXT} --word-votes 8", "a vocabulary of released words alone, found all private words"),
        (f"{TEXT} --user-contacts 9", "--user-contacts: expected speech"),
        (f"{TEXT} --max-words 9", "--max-words: expected options that change"),
        (f"{TEXT} --gold some", "expected true or false, found 'some'"),
    ],
)
def test_what_cannot_be(command: str, message: str, tmp_path: Path) -> None:
    assert message in recipe(command, "--work-dir", tmp_path, code=2)


def test_parts_that_cannot_be_cut_are_refused_before_anything_is_trained(copied: Path) -> None:
    shutil.rmtree(copied / "exp")  # nothing is trained
    refused = recipe(f"{TINY} --adapt-percent 12", "--work-dir", copied, code=2)
    assert "adapt_12: expected 12 per cent" in refused
    [sizes] = re.findall(r"whole users give --adapt-percent (\S+) ", refused)
    assert not list(copied.rglob("checkpoints")) and not (copied / "exp/ctc_tdnn_phone").exists()
    run = stage_lines(refused)
    # Of every stage that trains, and of every release, nothing has begun.
    declared = dry_run(f"{TINY} --adapt-percent 12", "--work-dir", copied)
    later = [name.partition("(")[2][:-1] for name in declared if int(name.split()[0]) > 4]
    assert any(title.startswith("acoustic model") for title in later)
    assert not [line for line in run if any(title in line for title in later)]
    # The recipe takes the way out that the message names.
    done = recipe(f"{TINY} --adapt-percent {sizes} --stop-stage 4", "--work-dir", copied)
    assert (copied / f"data/text_classlm/adapt_{sizes}.jsonl.gz").is_file(), done


def test_without_speech(tmp_path: Path) -> None:
    shown = dry_run(TEXT, "--work-dir", tmp_path)
    assert "16 (results)" in shown and not any(name.startswith("13") for name in shown)
    assert "train_am" not in "".join(shown.values())
    shown = dry_run(f"{TEXT} --adapt-percent ''", "--work-dir", tmp_path)
    assert not any(part in "".join(shown.values()) for part in ("adapt_lm", "mixture"))


def test_under_a_limit_nothing_is_made_that_no_guarantee_covers(tmp_path: Path) -> None:
    shown = dry_run(f"{TEXT} --adapt-percent '' --max-epsilon 25", "--work-dir", tmp_path)
    words = shown["8 (lang directory of all words)"]
    assert "sanitized.jsonl.gz" in words and "lang_phone_released" in words
    assert "text_classlm" not in words
    names = [name.replace("adaptation,", "") for name in shown]
    assert not [name for name in names if "original" in name or "adapt" in name]


def test_words_by_votes_join_the_model_of_sanitized_text(tmp_path: Path) -> None:
    options = "--adapt-percent '' --original false --word-votes 100"
    recipe(f"{TEXT} --nj 1 {options}", "--work-dir", tmp_path)
    exp = tmp_path / "exp/classlm_text_released"
    entries = Ledger(tmp_path / "privacy/ledger.json").entries()
    assert sorted(entry.spending.unit for entry in entries) == ["user", "utterance"]
    plain, made = (
        lineage(exp / name, tmp_path)
        for name in ("sanitized/lm/M1.arpa.gz", "voted/M1/mixed.arpa.gz")
    )
    assert len(plain.spent) == 1 and len(made.spent) == 2, list(made.lines())
    # Rows have the epsilons of models that may leave: all of it is released, or public.
    assert made.is_covered and plain.is_covered, [*made.lines(), *plain.lines()]
    for model in ("M2", "M3.arpa.gz", "M4"):
        assert lineage(exp / "sanitized/lm" / model, tmp_path).is_covered, model
    rows = [row for row in read_jsonl(exp / "results.jsonl") if not row["item"]]
    found = {(row["label"], row["metric"]): row for row in rows}
    joint = joint_guarantee([entry.spending for entry in entries])
    row = found["M1, sanitized, with words at epsilon 100", "ppl"]
    # Sanitized text hides names alone.
    assert (row["epsilon"], row["person_epsilon"]) == (pytest.approx(joint.epsilon.value), "inf")
    names = found["M1, sanitized, with words at epsilon 100", "names_epsilon"]["value"]
    assert names == pytest.approx(joint.person.value)
    assert row["epsilon"] > found["M1, sanitized", "ppl"]["epsilon"]
    assert names > found["M1, sanitized", "names_epsilon"]["value"]
    # Candidates are public: words of the sanitized text would tell who took part.
    shown = dry_run(f"{TINY} {options}", "--work-dir", tmp_path / "other")
    votes = shown["10 (votes for words, epsilon 100)"]
    assert "--in-private-text data/text_undivided/background.jsonl.gz" in votes
    assert "sanitized" not in votes.partition("writes")[0]
    assert {"13 (voted/M1: graph)", "13 (voted/M1: score)"} <= set(shown)


def test_a_gazetteer_reads_lists_and_cased_text(tmp_path: Path) -> None:
    folders = ("--corpus-dir", tmp_path, "--public-text", tmp_path, "--work-dir", tmp_path)
    shown = dry_run("ami classlm --preset tiny --decode false", *folders)
    [tagging] = [text for name, text in shown.items() if name.startswith("3 (names in")]
    assert "data/public/lists data/public/tagged.jsonl.gz" in tagging
    assert "_gold" not in "".join(shown.values())  # nobody annotated it


def test_taggers_are_measured_where_names_are_annotated(tmp_path: Path) -> None:
    folders = ("--corpus-dir", tmp_path, "--public-text", tmp_path, "--work-dir", tmp_path)
    corpus = "earnings21 classlm --decode false"
    shown = dry_run(f"{corpus} --taggers gazetteer", *folders)
    files = "data/text_classlm/background.jsonl.gz data/text_classlm_gold/background.jsonl.gz"
    assert files in shown["6 (names found and replaced)"]
    assert "data/manifests_gold" in shown["4 (the same parts with annotated names)"]
    assert "data/manifests_gold" in shown["16 (results)"]  # names are scored as annotated
    assert "data/manifests_tagged" in shown["4 (background, adaptation, dev and test text)"]
    # Annotated names are sanitized: there is nothing to measure.
    assert not [name for name in dry_run(corpus, *folders) if "annotated" in name]
    shown = dry_run(f"{TEXT} --taggers gazetteer --gold true", "--work-dir", tmp_path)
    # Text beside the cuts is tagged, too.
    assert "data/further_tagged.jsonl.gz" in shown["4 (background, adaptation, dev and test text)"]
    assert "written.jsonl" in shown["4 (the same parts with annotated names)"]


def test_comparisons_and_guarantees(tmp_path: Path) -> None:
    words = ["--preset", "tiny", "--work-dir", str(tmp_path)]
    declared = declare("mini", "classlm", words, ROOT, tmp_path).systems
    systems = {s.name: s for s in declared if s.method not in ("recipe", "release")}
    pairs = [frozenset((s.name, other)) for s in systems.values() for other in s.compare_with]
    assert len(systems) == 23 and len(pairs) == len(set(pairs)) == 58
    # Everything with the word n-gram of sanitized text.
    base = {frozenset(("sanitized/M1", name)) for name in systems if name != "sanitized/M1"}
    assert base <= set(pairs)
    for adapted, model in (("M1_eq1", "M1"), ("M2_eq2", "M2"), ("M4", "M4")):
        against = systems[f"adapt_30/{adapted}"].compare_with
        assert {f"sanitized/{model}", f"direct_30/{model}"} <= set(against)
    assert "adapt_30/M1_eq2" in systems["adapt_30/M2_eq2"].compare_with
    assert "mixed/M1_M2" in systems["mixed/M1_M2_exact"].compare_with
    rivals = {name for name in systems if not name.startswith("original/")}
    assert set(systems["mixed/M1_M2_M4"].compare_with) == rivals - {"mixed/M1_M2_M4"}
    # The release is the sanitized text. The models' vocabulary has words of all texts.
    assert not any("privacy" in system.artifacts for system in systems.values())
    [release] = [system for system in declared if system.method == "release"]
    assert release.artifacts["privacy"] == f"{EXP}/sanitized_text_privacy.json" and release.headline
    words += ["--adapt-percent", "", "--original", "false"]

    def covered(*more: str) -> set[str]:
        released = declare("mini", "classlm", [*words, *more], ROOT, tmp_path).systems
        return {system.name for system in released if "privacy" in system.artifacts}

    models = {f"sanitized/{model}" for model in ("M1", "M2", "M3", "M4")}
    votes = ("--word-votes", "9")
    assert covered("--decode", "false", *votes) == {"sanitized_text", "voted/M1", *models}
    # No epsilon stands beside errors of an acoustic model that has heard train.
    assert covered(*votes) == covered() == {"sanitized_text"}
