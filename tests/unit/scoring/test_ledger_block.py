"""Releases that stand in no table are counted all the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events, release
from privasr_k2.scoring.ledger_block import ledger_block
from tests.unit.privacy.made_spending import COUNTS as WORD_COUNTS

COUNTS = dataclasses.replace(WORD_COUNTS, event=events.pure(1.5))


def spend(folder: Path, name: str, **changes: object) -> Path:
    """Make a release of one name, and give its privacy.json."""
    beside = folder / name / "privacy.json"
    spending = dataclasses.replace(COUNTS, **changes)
    with release.begin(
        folder / "ledger.json", beside=beside, spending=spending, fingerprint=name, max_epsilon=None
    ) as made:
        made.finish()
    return beside


def cells(text: str) -> list[tuple[str, str, str]]:
    """Data, epsilon by PLD, releases of each row."""
    head, _, *rows = [
        [cell.strip() for cell in line.split("|")] for line in text.splitlines() if line[:1] == "|"
    ]
    places = [head.index(name) for name in ("private data", "epsilon (PLD)", "releases")]
    return [tuple(row[place] for place in places) for row in rows]


def test_a_run_that_was_made_again(tmp_path: Path) -> None:
    kept = [spend(tmp_path, "one"), spend(tmp_path, "two", data="mini/test")]
    assert "none but those above" in ledger_block(tmp_path / "ledger.json", kept)
    spend(tmp_path, "one_tried_before")
    spend(tmp_path, "of_others", data="ami/train")
    text = ledger_block(tmp_path / "ledger.json", kept)
    assert "1 of the 3 stand in no table above" in text
    assert cells(text) == [("mini/train", "3.00", "2"), ("mini/test", "1.50", "1")]


def test_what_was_used_as_it_is_by_another_name(tmp_path: Path) -> None:
    kept = [spend(tmp_path, "one")]
    spend(tmp_path, "text", data="mini/train and mini/dev", event=events.unprotected())
    assert [row[1] for row in cells(ledger_block(tmp_path / "ledger.json", kept))] == ["infinite"]


def test_without_releases_or_a_ledger_nothing_is_said(tmp_path: Path) -> None:
    assert ledger_block(None, [spend(tmp_path, "one")]) == ""
    assert ledger_block(tmp_path / "no_ledger.json", []) == ""


def test_another_ledger(tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="a ledger without it"):
        ledger_block(tmp_path / "other" / "ledger.json", [spend(tmp_path, "one")])
