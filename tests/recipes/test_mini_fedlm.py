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
    done = run_recipe("mini", "fedlm", "--decode", "false", "--work-dir", tmp_path)
    assert done.returncode == 2 and "speech, or recognized text" in done.stdout
    fewer = ("--noises", "", "--scratch", "false", "--dry-run", "true", "--work-dir", tmp_path / "work")
    done = run_recipe(*OPTIONS, *fewer)
    assert done.returncode == 0 and "stage 20 (the tables)" in done.stdout
    assert not any(f"stage {number} " in done.stdout for number in (14, 15, 16))
