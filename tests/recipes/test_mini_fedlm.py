"""The recipe fedlm on the tiny corpus: all tables, resumed, and what the ledger says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.privacy.ledger import Ledger
from tests.recipes.recipe_tools import run_recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/fedlm_tdnn_phone_lstm"
OPTIONS = ("mini", "fedlm", "--size", "tiny", "--nnlm", "lstm", "--ways", "token", "--private-ways", "all")


@pytest.mark.timeout(1500)  # some hundred stages
def test_from_speech_to_the_tables(copied: Path) -> None:
    options = (*OPTIONS, "--noises", "0.5", "--private-rate", "0.5", "--work-dir", copied)
    done = run_recipe(*options)
    assert done.returncode == 0, done.stdout
    # The first pass is shared with recipe ctc.
    assert "stage 5 (acoustic model, tdnn) ... up to date" in done.stdout
    table = (copied / EXP / "RESULTS.md").read_text()
    for heading in ("Table 1", "Tables 2 and 3", "Table 4", "Table 5", "Audit", "What holds"):
        assert f"## {heading}" in table
    assert "lower bound by audit" in table and "WER of the adaptation part" in table
    systems = ["pretrained", "server_all", "server_token", "fl_all", "fl_token"]
    systems += ["server_scratch_all", "fl_scratch_all", "fl_scratch_token", "fl_all_noise_0.5"]
    perplexities = json.loads((copied / EXP / "perplexity_test.json").read_text())
    assert [Path(one["lm"]).name for one in perplexities["lms"]] == systems and perplexities["by"] == "client"
    for system in ("no_nnlm", *systems):
        counts = json.loads((copied / EXP / system / "score_test/wer.json").read_text())["parts"]["test"][
            "counts"
        ]
        assert counts["hits"] + counts["substitutions"] + counts["deletions"] > 50

    [entry] = Ledger(copied / "privacy/ledger.json").entries()
    assert entry.spending.data == "mini/adapt/devices" and entry.spending.sampling == "Poisson, rate 0.5"
    assert (copied / EXP / "curves.svg").is_file()

    again = run_recipe(*options)
    stages = [line for line in again.stdout.splitlines() if line.startswith("stage ")]
    assert again.returncode == 0 and all(line.endswith("up to date") for line in stages), again.stdout
    assert len(Ledger(copied / "privacy/ledger.json").entries()) == 1


def test_what_is_left_out_and_what_cannot_be(tmp_path: Path) -> None:
    done = run_recipe(*OPTIONS, "--nnlm", "ngram", "--work-dir", tmp_path)
    assert done.returncode == 2 and "--nnlm: expected char_lstm, lstm or transformer" in done.stdout
    done = run_recipe(*OPTIONS, "--ways", "some", "--work-dir", tmp_path)
    assert done.returncode == 2 and "names out of all, hard, utterance, token, found 'some'" in done.stdout
    text = ("mini", "fedlm", "--decode", "false", "--work-dir", tmp_path)
    done = run_recipe(*text, "--private-ways", "token")
    assert done.returncode == 2 and "--ways: expected all: of what was said" in done.stdout
    done = run_recipe(*text, "--private-sampling", "some")
    assert done.returncode == 2 and "poisson, ordered or both, found 'some'" in done.stdout
    done = run_recipe(*text, "--bands", "3")
    assert done.returncode == 2 and "--bands: expected --private-sampling ordered" in done.stdout
    done = run_recipe(*text, "--private-sampling", "ordered", "--strategy", "tree", "--bands", "3")
    assert done.returncode == 2 and "--bands: expected --strategy square_root, found 'tree'" in done.stdout
    done = run_recipe(*text, "--tune", "true", "--client-lr", "1")
    assert done.returncode == 2 and "--tune true: expected no learning rate beside it" in done.stdout
    fewer = ("--noises", "", "--scratch", "false", "--dry-run", "true", "--work-dir", tmp_path / "work")
    done = run_recipe(*OPTIONS, *fewer)
    assert done.returncode == 0 and "stage 20 (the tables)" in done.stdout
    assert not any(f"stage {number} " in done.stdout for number in (14, 15, 16))


@pytest.mark.timeout(600)
def test_what_was_said_in_a_fixed_order_with_public_words(tmp_path: Path) -> None:
    """Text alone: clients in order and sampled, rates chosen on dev, and no word that is not public."""
    words = ["the", "of", "and", "to", "in", "what", "is", "we", "you", "it", "that", "this", "was", "have"]
    (tmp_path / "books.txt").write_text("".join(f"{' '.join(words[n:] + words[:n])}\n" for n in range(20)))
    few = ("--nnlm", "lstm", "--size", "tiny", "--scratch", "false", "--noises", "0.5", "--audit", "false")
    order = (
        "--private-sampling",
        "poisson ordered",
        "--private-cohort",
        "10",
        "--bands",
        "2",
        "--tune",
        "true",
    )
    work = tmp_path / "work"
    options = (
        "mini",
        "fedlm",
        "--decode",
        "false",
        "--nnlm-text",
        tmp_path / "books.txt",
        "--work-dir",
        work,
    )
    done = run_recipe(*options, *few, *order)
    assert done.returncode == 0, done.stdout
    known = {line.split()[0] for line in (work / "data/lang_public/words.txt").read_text().splitlines()}
    assert known - {"<eps>", "#0"} == set(words)
    table = (work / "exp/fedlm_text_lstm/RESULTS.md").read_text()
    assert "of public text alone" in table and "no recognition errors" in table and "clients of dev" in table
    assert "all utts, noise 0.5, ordered" in table and "square_root of 2 bands over 4 rounds" in table
    entries = Ledger(work / "privacy/ledger.json").entries()
    assert [entry.spending.sampling.split()[0] for entry in entries] == ["Poisson,", "each"]
    assert {entry.spending.data for entry in entries} == {"mini/adapt/devices"}
