"""The recipe confidence on a made corpus of CTM and gold words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.ctm_corpus import ctm_corpus
from tests.support.recipe_tools import run_recipe

pytestmark = pytest.mark.recipe


def test_from_ctm_to_the_table(tmp_path: Path) -> None:
    corpus, work = ctm_corpus(tmp_path / "corpus"), tmp_path / "work"
    options = (
        "earnings21",
        "confidence",
        "--corpus-dir",
        corpus,
        "--recognizers",
        "good bad",
        "--nj",
        "1",
    )
    done = run_recipe(*options, "--work-dir", work)
    assert done.returncode == 0, done.stdout
    results = json.loads((work / "exp/confidence/results/confidence_metrics.json").read_text())
    systems = ["own", "own_platt", "own_isotonic", "network_raw", "network"]
    assert [(r["group"], r["system"]) for r in results] == [
        (g, s) for g in ("good", "bad") for s in systems
    ]
    for group in ("good", "bad"):
        found = {r["system"]: r["metrics"] for r in results if r["group"] == group}
        # Wrong words are short, which only the network can know.
        assert found["network"]["auc"]["value"] > found["own"]["auc"]["value"] + 0.03
        assert found["own_platt"]["auc"]["value"] == pytest.approx(found["own"]["auc"]["value"])
        assert found["own_platt"]["nce"]["value"] > found["own"]["nce"]["value"]
        assert (work / f"exp/confidence/results/reliability_{group}.svg").is_file()
    rows = (work / "exp/confidence/results.jsonl").read_text()
    assert "earnings21" in rows and '"nce"' in rows
    again = run_recipe(*options, "--work-dir", work)
    assert again.returncode == 0 and " ... done" not in again.stdout, again.stdout


def test_what_the_corpus_cannot_do(tmp_path: Path) -> None:
    done = run_recipe("earnings21", "ctc", "--work-dir", tmp_path)
    assert (
        done.returncode == 2 and "is for: confidence classlm fedlm fmp, found 'ctc'" in done.stdout
    )
    (tmp_path / "books.txt").touch()
    text = ("--public-text", tmp_path, "--nnlm-text", tmp_path / "books.txt")
    options = ("--dry-run", "true", "--corpus-dir", tmp_path, "--work-dir", tmp_path / "work")
    done = run_recipe("earnings21", *options, *text)  # all of its recipes
    shown = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stdout
    assert all(f"{name} done" in shown for name in ("confidence", "classlm", "fedlm", "fmp"))
    done = run_recipe("mini", "confidence", "--work-dir", tmp_path)
    assert done.returncode == 2 and "run recipe rescore" in done.stdout
