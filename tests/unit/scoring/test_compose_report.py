"""One table of error rates, and a guarantee for each part of the data."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import Spending
from privasr_k2.scoring.compose_report import ComposeReportOptions, compose_report
from privasr_k2.scoring.corpus_info import CorpusInfo
from tests.unit.scoring.made_scores import write_score

MINI = CorpusInfo(name="mini", synthetic=True, scored_units={})


def options(acoustic_model: str = "trained") -> ComposeReportOptions:
    return ComposeReportOptions("./run.sh mini compose", "mini", acoustic_model)


def entry(data: str, unit: str, epsilon: float) -> Entry:
    spending = Spending(
        data=data, released=f"words of {data}", unit=unit, units=None, relation=Relation.ADD_OR_REMOVE_ONE,
        event=events.pure(epsilon), sampling="all", delta=1e-6, does_not_cover=("who was there",),
    )  # fmt: skip
    return Entry(data.ljust(32, "0"), "f", spending, "c", "t")


ENTRIES = [
    entry("mini/train", "utterance", 3.0),
    entry("mini/adapt/devices", "user", 2.0),
    entry("mini/test", "user", 1.5),
]


def made(tmp_path: Path, entries: list[Entry], chosen: ComposeReportOptions) -> str:
    refs = {str(n): "a b c" for n in range(6)}
    score = write_score(tmp_path / "first_pass" / "score_test", {"test": (refs, refs)})
    return compose_report([score], [], [], entries, MINI, chosen)


def rows(text: str) -> list[list[str]]:
    table = text.split("## What is guaranteed, and to whom")[1].strip().split("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]


def test_every_part_has_its_own_guarantee_or_is_said_to_have_none(tmp_path: Path) -> None:
    text = made(tmp_path, [*ENTRIES, ENTRIES[0]], options())
    head, _, *body = rows(text)
    assert text.startswith("# Results: mini, first_pass\n\n**Synthetic speech.**")
    epsilon = head.index("epsilon (RDP)")
    assert [(row[0], row[epsilon]) for row in body] == [
        ("train", "3.00"), ("train", "infinite"), ("adapt", "2.00"), ("test", "1.50"), ("dev", "infinite"),
    ]  # fmt: skip
    assert body[1][1] == "speech -> acoustic model" and "- not covered, adapt: who was there" in text


def test_an_acoustic_model_of_somebody_else_costs_nothing_here(tmp_path: Path) -> None:
    assert [row[0] for row in rows(made(tmp_path, ENTRIES, options("brought_along")))[2:]] == [
        "train", "adapt", "test", "dev",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="trained or brought_along, got 'stolen'"):
        options("stolen")


def test_releases_of_other_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="releases of mini/train mini/adapt mini/test, found ami/train"):
        made(tmp_path, [entry("ami/train", "user", 1.0)], options())
