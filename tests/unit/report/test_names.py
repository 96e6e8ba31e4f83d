"""Names in every report: figures, paired tests, tables, and what is cut first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.fileio import read_json, read_jsonl, write_json, write_jsonl
from privasr_k2.recipe.systems import System
from privasr_k2.report.compare import comparison_text
from privasr_k2.report.kinds import read
from privasr_k2.report.markdown import report_text
from privasr_k2.report.page import page
from privasr_k2.report.results import OF_NAMES, Row, with_holm
from privasr_k2.report.tables import Table, tables_of
from privasr_k2.scoring.holm import holm
from privasr_k2.scoring.matched_pairs import mapsswe
from tests.support.classlm_folders import write_system
from tests.support.made_recipe import CORPUS, context, figure, layout, rows_of

TESTS = ("wer", "name_wer", "other_wer", "recall", "false_alarm_rate")
NAMES = "Words of names"


def _system(folder: Path, name: str, errors: int, lost: int, *others: str, **more: bool) -> System:
    """Of 60 utterances, ``errors`` lack another word and ``lost`` have a wrong name."""
    score = str(write_system(folder, name, errors, lost, **more))
    own = str(folder / name)
    return System(name, name, "public", own, {}, others, artifacts={"score_test": score})


@pytest.fixture
def rows(tmp_path: Path) -> list[Row]:
    systems = [_system(tmp_path, "a", 6, 12), _system(tmp_path, "b", 6, 3, "a")]
    return rows_of(tmp_path, systems, *TESTS)


def _tables(rows: list[Row], name: str = "ctc") -> dict[str, Table]:
    return {table.title: table for table in tables_of(layout(name), rows)}


def _cells(table: Table, number: int) -> dict[str, str]:
    titles = [title for title, _ in table.columns]
    return dict(zip(titles, (cell.text for cell in table.rows[number]), strict=True))


def test_errors_are_parted_and_add_up(rows: list[Row]) -> None:
    assert figure(rows, "a", "name_wer", item="").value == pytest.approx(100 * 12 / 60)
    assert figure(rows, "a", "name_wer", item="PER").value == pytest.approx(100 * 12 / 60)
    assert figure(rows, "a", "other_wer").value == pytest.approx(100 * 6 / 240)
    words = figure(rows, "a", "entity_words", item="").value, figure(rows, "a", "other_words").value
    assert words == (60, 240)
    assert figure(rows, "a", "false_alarm_rate", item="").value == 0.0
    wer = figure(rows, "a", "name_wer", item="")
    assert wer.low is not None and wer.low <= 20.0 <= (wer.high or 0.0) and wer.clusters == 6


def test_names_and_other_words_are_tested_apart(rows: list[Row]) -> None:
    tests = {row.metric: row for row in rows if row.against}
    assert set(tests) == {f"{name}_difference" for name in TESTS}
    # Each name is parted from the last word by two right ones: a segment of its own.
    names = mapsswe(np.array([(1, 1)] * 3 + [(0, 1)] * 9))
    named = tests["name_wer_difference"]
    assert (named.p, named.pairs) == (names.p_value, 12)
    assert named.value == pytest.approx(-100 * 9 / 60) and named.high is not None
    assert named.low is not None and named.low <= named.value <= named.high < 0
    other = tests["other_wer_difference"]
    assert (other.value, other.p, other.pairs) == (0.0, 1.0, 6)
    assert tests["recall_difference"].value == pytest.approx(100 * 9 / 60)
    assert tests["wer_difference"].pairs == 12 + 6
    fewer = tests["false_alarm_rate_difference"]
    assert (fewer.value, fewer.p) == (0.0, 1.0)


def test_names_are_a_family_of_their_own(rows: list[Row]) -> None:
    of_names = [row for row in rows if row.metric in OF_NAMES]
    assert [row.p_holm for row in of_names] == holm([row.p for row in of_names])
    [wer] = [row for row in rows if row.metric == "wer_difference"]
    assert wer.p_holm == wer.p and len(of_names) == 4
    assert with_holm(rows) == rows


def test_tables_of_names_stand_in_every_report(rows: list[Row]) -> None:
    for recipe in ("ctc", "wordvotes", "pate", "personal"):
        tables = _tables(rows, recipe)
        shown = _cells(tables[NAMES], 0)
        assert (shown["names: WER %"], shown["other words: WER %"]) == ("20.00", "2.50")
        assert (shown["recall %"], shown["false alarms"]) == ("80.00", "0")
        by_class = _cells(tables[f"{NAMES}, by class"], 1)
        assert (by_class["class"], by_class["names: WER %"]) == ("PER", "5.00")
        compared = tables["Comparisons of names"]
        assert len(compared.rows) == 1 and len(compared.columns) == 3 + 3 * len(OF_NAMES)
        assert _cells(compared, 0)["names: WER difference"] == "-15.00"
        assert len(tables["Comparisons"].rows) == 1
        details = {title: of.detail for title, of in tables.items() if of.detail}
        assert details == {NAMES: 1, f"{NAMES}, by class": 2, "Comparisons of names": 2}


def test_without_names_there_is_no_table_of_them(tmp_path: Path) -> None:
    systems = [
        _system(tmp_path, "a", 6, 12, entities=False),
        _system(tmp_path, "b", 6, 3, "a", entities=False),
    ]
    rows = rows_of(tmp_path, systems, *TESTS)
    assert not [title for title in _tables(rows) if "names" in title]
    assert [row.metric for row in rows if row.against] == ["wer_difference"]


def test_older_layouts_have_a_table_of_their_own(rows: list[Row]) -> None:
    own = f"{{title: {NAMES}, kinds: [score_test], items: true, columns: [label, recall]}}"
    titles = [table.title for table in tables_of(layout("ctc", f"tables=[{own}]"), rows)]
    assert titles == [NAMES, "Comparisons", "Comparisons of names"]


def test_older_scores_have_recall_alone(tmp_path: Path) -> None:
    folders = []
    for name, lost in (("a", 12), ("b", 3)):
        folder = write_system(tmp_path, name, 6, lost)
        told = read_json(folder / "wer.json")
        of_names = told["parts"]["test"]["entities"]
        for key in ("errors", "wer_percent", "wer_intervals", "false_alarm_intervals"):
            del of_names[key]
        write_json(folder / "wer.json", told)
        records = list(read_jsonl(folder / "utterances.jsonl"))
        for record in records:
            del record["entities"]
        write_jsonl(folder / "utterances.jsonl", records)
        folders.append(folder)
    old, other = (read("score_test", str(folder), context([])) for folder in folders)
    assert {metric for _, metric in old.pairs} == {"wer", "recall"}
    assert not {"name_wer", "other_wer", "false_alarm_rate"} & {m.metric for m in old.measures}
    new = read("score_test", str(write_system(tmp_path, "c", 6, 3)), context([]))
    for one in (other, new):
        test = old.pairs["test", "recall"].against(one.pairs["test", "recall"])
        assert test is not None and test.value == pytest.approx(-15.0)


def test_details_are_cut_before_anything_else(rows: list[Row]) -> None:
    many = [replace(row, system=f"{row.system}{n}", against=row.against and f"{row.against}{n}")
            for n in range(18) for row in rows]  # fmt: skip
    text = report_text(layout("ctc"), many, [], {})
    assert text.count("\n") <= layout("ctc").max_lines
    assert "more rows" not in text.split(f"## {NAMES}, by class")[0]
    more = [replace(row, system=f"{row.system}{n}") for n in range(30) for row in rows]
    text = report_text(layout("ctc"), more, [], {})
    assert text.count("\n") <= layout("ctc").max_lines and f"## {NAMES}, by class" not in text
    assert f"{NAMES}, by class (60 rows)" in text and "more rows" not in text
    most = [replace(row, system=f"{row.system}{n}") for n in range(60) for row in rows]
    rates, names = report_text(layout("ctc"), most, [], {}).split(f"## {NAMES}\n")
    assert rates.count("\n") > 120 and "more rows" not in rates and "more rows" in names
    most = [replace(row, system=f"{row.system}{n}") for n in range(70) for row in rows]
    text = report_text(layout("ctc"), most, [], {})
    assert text.count("\n") <= layout("ctc").max_lines and f"{NAMES} (140 rows)" in text


def test_the_page_shows_details_on_demand(rows: list[Row]) -> None:
    html = page([(layout("ctc"), rows)])
    assert f"<summary>{NAMES}, by class (2 rows)</summary>" in html
    assert f"<h3>{NAMES}</h3>" in html


def test_the_table_of_compare_has_names_too(tmp_path: Path) -> None:
    folders = [write_system(tmp_path, "a", 6, 12), write_system(tmp_path, "b", 6, 3)]
    text = comparison_text(folders, CORPUS)
    assert f"## {NAMES}\n" in text and "## Comparisons of names" in text
