"""The recipe confidence on a made corpus of CTM and gold words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.fileio import read_jsonl
from tests.support.ctm_corpus import NAMES, ctm_corpus
from tests.support.recipe_tools import check_names, recipe

pytestmark = pytest.mark.recipe


def test_from_ctm_to_the_table(tmp_path: Path) -> None:
    folders = ("--corpus-dir", ctm_corpus(tmp_path / "corpus"), "--work-dir", tmp_path / "work")
    command = "earnings21 confidence --recognizers 'good bad' --nj 1"
    recipe(command, *folders)
    exp = tmp_path / "work/exp/confidence"
    results = json.loads((exp / "results/confidence_metrics.json").read_text())
    systems = ["own", "own_platt", "own_isotonic", "network_raw", "network"]
    expected = [(group, system) for group in ("good", "bad") for system in systems]
    assert [(r["group"], r["system"]) for r in results] == expected
    for group in ("good", "bad"):
        metrics = {r["system"]: r["metrics"] for r in results if r["group"] == group}
        auc = {system: values["auc"]["value"] for system, values in metrics.items()}
        assert auc["network"] > auc["own"] + 0.03  # wrong words are short: the network knows
        assert auc["own_platt"] == pytest.approx(auc["own"])
        assert metrics["own_platt"]["nce"]["value"] > metrics["own"]["nce"]["value"]
        assert (exp / f"results/reliability_{group}.svg").is_file()
    rows = (exp / "results.jsonl").read_text()
    assert "earnings21" in rows and '"nce"' in rows
    every = [json.loads(line) for line in rows.splitlines()]
    assert check_names(every) == {"good", "bad"}
    scored = {(row["system"], row["metric"]): row["value"] for row in every if not row["item"]}
    assert scored["good", "name_wer"] < scored["bad", "name_wer"]
    gold = [
        cut["supervisions"][0]["text"].split()
        for cut in read_jsonl(tmp_path / "work/data/earnings21_names/cuts_test.jsonl.gz")
    ]
    of_names = sum(word in NAMES for words in gold for word in words)
    assert scored["good", "entity_words"] == of_names
    tested = {row["metric"] for row in every if row["against"]}
    assert len(tested) == 5 and {"name_wer_difference", "recall_difference"} < tested
    assert " ... done" not in recipe(command, *folders)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("earnings21 ctc", "is for: confidence classlm fedlm fmp, found 'ctc'"),
        ("mini confidence", "run recipe rescore"),
    ],
)
def test_what_cannot_be(command: str, message: str, tmp_path: Path) -> None:
    assert message in recipe(command, "--work-dir", tmp_path, code=2)


def test_all_recipes_of_the_corpus(tmp_path: Path) -> None:
    (tmp_path / "books.txt").touch()
    text = ("--public-text", tmp_path, "--nnlm-text", tmp_path / "books.txt")
    folders = ("--corpus-dir", tmp_path, "--work-dir", tmp_path / "work")
    shown = " ".join(recipe("earnings21 --dry-run true", *folders, *text).split())
    assert all(f"{name} done" in shown for name in ("confidence", "classlm", "fedlm", "fmp"))
