"""Perplexity and error rate are judged side by side, in one family of tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from privasr_k2.fileio import write_json
from privasr_k2.recipe.systems import System
from privasr_k2.report.measures import p_text
from privasr_k2.report.page import headline
from privasr_k2.report.results import Row
from privasr_k2.report.tables import Index, tables_of
from privasr_k2.scoring.holm import holm
from tests.support.made_recipe import layout, perplexities, rows_of, spend, system

Make = Callable[[Path], list[System]]
BOTH = ["wer_difference", "ppl_change"]
#: System -> perplexity, wrong utterances of 30.
FEDLM = {"pretrained": (100.0, 20), "server_all": (50.0, 8), "fl_all_noise": (80.0, 17)}


def run_of_fmp(path: Path, ppl: float) -> Path:
    """``run_test.json`` of verb ``rescore_fmp`` with seven clients, one of whom is harder."""
    clients = {f"c{n}": {"nats": [ppl / 10 + (n == 6)], "tokens": [5]} for n in range(7)}
    config = {"lam": 1.0, "alpha": 0.5, "beta": 0.25, "kernel_bandwidth": 5.0}
    figures = {"total": ppl, "by_round": [ppl], "clients": clients}
    write_json(path, {"config": config, "release": None, "perplexity": figures})
    return path


def fedlm(folder: Path) -> list[System]:
    """A pre-trained model, a control, and one with a claim."""
    path = perplexities(folder / "p.json", {name: ppl for name, (ppl, _) in FEDLM.items()})
    spent = {"privacy": str(spend(folder / "fl_all_noise", 2.0))}
    claim = {"noise": 0.5, "client_sampling": "poisson", "confidences": "all"}
    server, federated = ({"adaptation": of} for of in ("server", "federated"))
    facts = [{"adaptation": "none"}, {**server, "init": "pretrained"}, {**federated, **claim}]
    others = [(), ("pretrained",), ("pretrained", "server_all")]
    return [
        system(
            folder, name, "fedlm", wrong, facts=of, compare_with=against, public="pretrained",
            artifacts={"perplexity": f"{path}#{name}", **(spent if "noise" in of else {})},
            headline="noise" in of, protects="each {unit}" if "noise" in of else "",
        )
        for (name, (_, wrong)), of, against in zip(FEDLM.items(), facts, others, strict=True)
    ]  # fmt: skip


def fmp(folder: Path) -> list[System]:
    """No adaptation and two numbers of rounds."""
    values = {"baseline": (30.0, 20, ()), "T1": (25.0, 18, ("baseline",))}
    values["T2"] = (24.0, 17, ("baseline", "T1"))
    return [
        system(
            folder, name, "fmp", wrong, facts={"study": "rounds"}, compare_with=others,
            artifacts={"run": str(run_of_fmp(folder / name / "run_test.json", ppl))},
        )
        for name, (ppl, wrong, others) in values.items()
    ]  # fmt: skip


def compared(rows: Sequence[Row], name: str, against: str) -> dict[str, Row]:
    return {row.metric: row for row in rows if (row.system, row.against) == (name, against)}


@pytest.mark.parametrize("of", [fedlm, fmp])
def test_every_pair_is_judged_by_both_and_they_are_one_family(tmp_path: Path, of: Make) -> None:
    systems = of(tmp_path)
    tests = layout(of.__name__).tests
    rows = rows_of(tmp_path, systems, *tests)
    declared = [(one.name, other) for one in systems for other in one.compare_with]
    assert len(declared) == 3
    for pair in declared:
        found = compared(rows, *pair)
        assert sorted(found) == sorted(BOTH), pair
        assert all(row.p is not None and row.p_holm is not None for row in found.values())
        wer, ppl = (found[metric] for metric in BOTH)
        assert (wer.clusters, ppl.clusters) == (6, {"fedlm": 6, "fmp": 7}[of.__name__])
    every = [row for row in rows if row.against]
    assert len(every) == 6 and [row.p_holm for row in every] == holm([row.p for row in every])


@pytest.mark.parametrize("of", [fedlm, fmp])
def test_a_row_of_a_table_has_the_p_of_each(tmp_path: Path, of: Make) -> None:
    rows = rows_of(tmp_path, of(tmp_path))
    made = layout(of.__name__)
    title, name, against = {
        "fedlm": ("Table 5: privacy for each speaker, by noise", "fl_all_noise", "pretrained"),
        "fmp": ("Table 2: rounds", "T2", "baseline"),
    }[made.recipe]
    [table] = [table for table in tables_of(made, rows) if table.title == title]
    [row] = [row for row in table.rows if row[0].text == name.replace("_", " ")]
    shown = {head: cell.text for (head, _), cell in zip(table.columns, row, strict=True)}
    found = compared(rows, name, against)
    assert shown["WER p"] == p_text(found["wer_difference"].p_holm)
    assert shown["PPL p"] == p_text(found["ppl_change"].p_holm)
    assert shown["WER p"] != shown["PPL p"]


@pytest.mark.parametrize("name", ["fedlm", "fmp"])
def test_tables_that_judge_one_judge_the_other(name: str) -> None:
    made, judging = layout(name), 0
    assert {"wer", "ppl"} <= set(made.tests)
    for table in made.all_tables:
        titles = {column.name: column.title for column in table.columns if column.view == "p"}
        assert set(titles) in (set(), {"wer", "ppl"}), table.title
        judging += len(set(titles.values())) == 2
    assert judging == 3


def test_the_first_table_of_the_page_has_a_row_for_each(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, fedlm(tmp_path))
    made = headline([(Index(rows), rows)])
    titles = [title for title, _ in made.columns]
    shown = [dict(zip(titles, (c.text for c in row), strict=True)) for row in made.rows]
    found = compared(rows, "fl_all_noise", "pretrained")
    assert [row["data"] for row in shown] == ["toy, test, WER %", "toy, PPL"]
    assert [row["public"] for row in shown] == [f"{100 * 20 / 120:.2f}", "100.00"]
    assert [row["private"].partition(" ")[0] for row in shown] == [f"{100 * 17 / 120:.2f}", "80.00"]
    assert [row["p (Holm)"] for row in shown] == [p_text(found[of].p_holm) for of in BOTH]
