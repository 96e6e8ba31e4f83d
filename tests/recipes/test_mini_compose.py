"""The recipe compose on the tiny corpus: one system of three papers under one ledger; and what
cannot be.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from privasr_k2.privacy.ledger import Ledger, entries_beside
from privasr_k2.recipe.systems import read_systems
from privasr_k2.text.normalize import normalize_english
from tests.support.recipe_tools import run_recipe, stage_lines

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/compose_tdnn_phone"
OPTIONS = ("mini", "compose", "--preset", "tiny", "--fmp-rounds", "2")


@pytest.mark.timeout(900)
def test_three_steps_and_a_guarantee_for_each_part(copied: Path) -> None:
    done = run_recipe(*OPTIONS, "--work-dir", copied)
    assert done.returncode == 0, done.stdout
    # The acoustic model is shared with recipe ctc.
    assert "acoustic model, tdnn ... up to date" in done.stdout
    systems = {one.name: one for one in read_systems(copied / EXP / "systems.jsonl")}
    protected = {
        "pretrained": "mini/train",
        "federated": "mini/adapt/devices",
        "personalized": "mini/test",
    }
    for name, data in protected.items():
        [entry] = entries_beside(copied / systems[name].artifacts["privacy"])
        assert entry.spending.data == data
    data = {
        entry.spending.data: entry.spending.unit
        for entry in Ledger(copied / "privacy/ledger.json").entries()
    }
    assert data == {"mini/train": "utterance", "mini/adapt/devices": "device", "mini/test": "user"}
    # No word that is not in what was released, or on a public list.
    lines = (
        gzip.decompress((copied / EXP / "sanitized_text/text.txt.gz").read_bytes())
        .decode()
        .splitlines()
    )
    for path in (copied / "data/manifests/public_lists").glob("*.txt"):
        lines += [normalize_english(line) for line in path.read_text().splitlines()]
    known = {
        line.split()[0]
        for line in (copied / "data/lang_phone_released/words.txt").read_text().splitlines()
    }
    assert {word for word in known if word[0].isalpha()} <= {
        word for line in lines for word in line.split()
    }

    again = run_recipe(*OPTIONS, "--work-dir", copied)
    stages = stage_lines(again.stdout)
    assert (
        again.returncode == 0 and stages and all(line.endswith("up to date") for line in stages)
    ), again.stdout
    assert len(Ledger(copied / "privacy/ledger.json").entries()) == 3


def test_what_cannot_be(tmp_path: Path) -> None:
    done = run_recipe("mini", "compose", "--nnlm", "gru", "--work-dir", tmp_path)
    assert (
        done.returncode == 2
        and "--nnlm: expected one of lstm, char_lstm, transformer, found 'gru'" in done.stdout
    )
    done = run_recipe(
        "librispeech", "compose", "--corpus-dir", tmp_path, "--work-dir", tmp_path / "work"
    )
    assert done.returncode == 2 and "public lists of names" in done.stdout
