"""The recipe compose on the tiny corpus: one system of three papers under one ledger."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from privasr_k2.privacy.ledger import Ledger, entries_beside
from privasr_k2.recipe.systems import read_systems
from privasr_k2.text.normalize import normalize_english
from tests.support.recipe_tools import assert_up_to_date, recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/compose_tdnn_phone"
TINY = "mini compose --preset tiny --fmp-rounds 2"
#: Data and unit that a system protects.
PROTECTED = {
    "sanitized_text": ("mini/train", "utterance"),
    "federated": ("mini/adapt", "speaker"),
    "personalized": ("mini/test", "user"),
}


@pytest.mark.timeout(900)
def test_three_steps_and_a_guarantee_for_each_part(copied: Path) -> None:
    # The acoustic model is shared with recipe ctc.
    assert "acoustic model, tdnn ... up to date" in recipe(TINY, "--work-dir", copied)
    systems = {system.name: system for system in read_systems(copied / EXP / "systems.jsonl")}
    for name, (data, _) in PROTECTED.items():
        [entry] = entries_beside(copied / systems[name].artifacts["privacy"])
        assert entry.spending.data == data
    # The acoustic model is of the speech of train: no release of its text covers these.
    for name in ("first_pass", "pretrained"):
        assert not systems[name].artifacts.keys() & {"privacy"} and not systems[name].protects
    ledger = Ledger(copied / "privacy/ledger.json")
    spent = {(entry.spending.data, entry.spending.unit) for entry in ledger.entries()}
    assert spent == set(PROTECTED.values())
    results = (copied / EXP / "RESULTS.md").read_text()
    units = list(dict.fromkeys(unit for _, unit in PROTECTED.values()))
    assert f"## What is guaranteed for each {' or '.join(units)}\n" in results
    assert "| epsilon, person |" in results
    # Every word was released, or is on a public list.
    released = gzip.decompress((copied / EXP / "sanitized_text/text.txt.gz").read_bytes()).decode()
    lists = [*(copied / "data/manifests/public_lists").glob("*.txt")]
    texts = [released, *(normalize_english(line) for path in lists for line in path.open())]
    words = (copied / "data/lang_phone_released/words.txt").read_text().splitlines()
    known = {line.split()[0] for line in words if line[0].isalpha()}
    assert known <= {word for text in texts for word in text.split()}
    assert_up_to_date(TINY, "--work-dir", copied)
    assert len(ledger.entries()) == 3


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "mini compose --nnlm gru",
            "--nnlm: expected one of lstm, char_lstm, transformer, found 'gru'",
        ),
        ("librispeech compose --corpus-dir .", "public lists of names"),
    ],
)
def test_what_cannot_be(command: str, message: str, tmp_path: Path) -> None:
    assert message in recipe(command, "--work-dir", tmp_path, code=2)
