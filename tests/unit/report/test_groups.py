"""Error rates of groups: their rows, their table, and who is told of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2.fileio import read_jsonl, write_json
from privasr_k2.recipe.systems import System, write_systems
from privasr_k2.report.beside import beside_papers
from privasr_k2.report.figures import plots_of
from privasr_k2.report.kinds import read
from privasr_k2.report.page import headline, headline_plots
from privasr_k2.report.phones import phone_measures
from privasr_k2.report.results import (
    Row,
    collect,
    owners_groups,
    owners_rows,
    read_rows,
    write_rows,
)
from privasr_k2.report.tables import Index, Table, tables_of
from tests.support.conf import section
from tests.support.made_recipe import (
    CONF,
    CORPUS,
    REFS,
    context,
    hyps,
    layout,
    origin,
    pate,
    rows_of,
)
from tests.support.made_scores import write_score
from tests.support.verbs import call

WRONG = {"public": 28, "all_data": 8, "gnmax": 12, "lnmax": 17}
# Of u00 to u29, whose six speakers take turns, the first 12 are said by children. u12, u15, ..., by
# s0 and s3, have a prompt of train.
GROUPS = {
    f"u{n:02d}": {
        "age": "child" if n < 12 else "adult",
        "seen": "true" if n >= 12 and n % 3 == 0 else "false",
    }
    for n in range(30)
}
SEEN = replace(CORPUS, groups=("age",), train_groups=("seen",))


def grouped(folder: Path) -> list[System]:
    """Systems whose first ``WRONG`` utterances have one wrong word of four."""
    systems = pate(folder)
    for one in systems:
        scored = {"test": (REFS, hyps(WRONG[one.name]))}
        write_score(Path(one.artifacts["score_test"]), scored, groups=GROUPS)
    return systems


def by_group(tables: list[Table]) -> list[dict[str, str]]:
    [table] = [table for table in tables if table.title == "By group"]
    titles = [title for title, _ in table.columns]
    return [dict(zip(titles, (c.text for c in row), strict=True)) for row in table.rows]


def test_rows_name_group_and_value(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, grouped(tmp_path))
    found = {
        (row.group, row.item, row.metric): (row.value, row.part, row.kind)
        for row in rows
        if row.system == "gnmax" and row.group
    }
    # Children: 12 wrong of 12 x 4 words.
    assert found["age", "child", "wer"] == (25.0, "test", "score_test")
    assert found["age", "adult", "wer"] == (0.0, "test", "score_test")
    assert found["age", "adult", "words"][0] == 72
    assert found["seen", "true", "utterances"][0] == 6
    assert found["seen", "true", "speakers"][0] == 2
    write_rows(tmp_path / "results.jsonl", rows)
    assert read_rows(tmp_path / "results.jsonl") == rows


def test_older_rows_have_no_group(tmp_path: Path) -> None:
    row = rows_of(tmp_path, pate(tmp_path))[0]
    older = row.to_json()
    del older["group"]
    assert Row.from_json(older) == row


def test_the_table(tmp_path: Path) -> None:
    systems = grouped(tmp_path)
    rows = by_group(tables_of(layout("pate"), rows_of(tmp_path, systems)))
    assert len(rows) == 4 * 4
    own = [row for row in rows if row["system"] == "lnmax"]
    assert [(row["group"], row["value"]) for row in own] == [
        ("age", "adult"),
        ("age", "child"),
        ("seen", "false"),
        ("seen", "true"),
    ]
    adult, _, _, seen = own
    assert adult == {
        "system": "lnmax", "model": "CTC", "part": "test", "group": "age", "value": "adult",
        "utterances": "18", "words": "72", "WER %": "6.94", "WER interval": "4.17 to 8.33",
        "speakers": "6",
    }  # fmt: skip
    # u12 and u15 are wrong; two speakers have no interval.
    assert (seen["WER %"], seen["WER interval"], seen["speakers"]) == ("8.33", "–", "2")
    titles = [t.title for t in tables_of(layout("pate"), rows_of(tmp_path, pate(tmp_path)))]
    assert "By group" not in titles


def test_phones_of_groups(tmp_path: Path) -> None:
    systems = grouped(tmp_path)
    more = phone_measures(systems, "auto", "none")
    rows = collect(systems, origin(), context(systems), more)
    shown = by_group(tables_of(layout("ctc"), rows))
    rates = {(row["system"], row["value"]): row["PER of the words %"] for row in shown}
    # x (eh k s) for a (ah): 3 errors among the 7 phones of a b c d.
    assert rates["gnmax", "child"] == "42.86"
    assert rates["lnmax", "adult"] == f"{100 * 5 * 3 / (18 * 7):.2f}"


def test_all_other_tables_and_plots_are_those_without_groups(tmp_path: Path) -> None:
    with_groups = rows_of(tmp_path, grouped(tmp_path))
    without = [row for row in with_groups if not row.group]
    assert len(without) < len(with_groups)
    made = layout("pate")
    for rows in (with_groups, without):
        tables = [table for table in tables_of(made, rows) if table.title != "By group"]
        index = [(Index(rows), rows)]
        outcome = (
            tables, headline(index), headline_plots(index), plots_of(made, rows),
            beside_papers([(made, rows)]),
        )  # fmt: skip
        if rows is with_groups:
            first = outcome
    assert outcome == first


def test_layouts_may_compare_groups_with_another_system(tmp_path: Path) -> None:
    columns = "[label, group, {item: value}, wer, cer, wer change public, wer p public]"
    table = f"{{title: G, kinds: [score_test], groups: true, columns: {columns}}}"
    made = layout("pate", f"tables=[{table}]")
    first, *_ = tables_of(made, rows_of(tmp_path, grouped(tmp_path)))
    titles = [title for title, _ in first.columns]
    # A group has no test and no CER, and takes neither from its part.
    assert first.title == "G"
    assert titles == ["system", "group", "value", "WER %", "WER change against public %"]
    [row] = [row for row in first.rows if [c.text for c in row[:3]] == ["lnmax", "age", "adult"]]
    assert row[-1].text == f"{100 * (5 / 16 - 1):+.2f}"


def test_groups_that_tell_of_train_are_its_owners_where_a_guarantee_is_claimed(
    tmp_path: Path,
) -> None:
    systems = grouped(tmp_path)
    assert owners_groups(systems, SEEN) == ("seen",)
    assert owners_groups([one for one in systems if not one.protects], SEEN) == ()
    of = context(systems)._replace(owners_groups=owners_groups(systems, SEEN))
    more = phone_measures(systems, "auto", "none")
    rows = collect(systems, origin(), of, more)
    assert {row.group for row in rows} == {"", "age"}
    hidden = [row for row in owners_rows(systems, of) if row["system"] == "public"]
    assert {row["group"] for row in hidden} == {"seen"}
    words = {row["item"]: row["value"] for row in hidden if row["metric"] == "words"}
    assert words == {"true": 24, "false": 96}
    assert owners_rows(systems, context(systems)) == []


@pytest.mark.parametrize("kind", ["protected_score_adapt", "protected_score_test"])
def test_groups_of_protected_people_are_their_owners(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "score_adapt"
    write_score(folder, {"adapt": (REFS, hyps(3))}, groups=GROUPS)
    one = System("adapt", "adapt", "recipe", "", artifacts={kind: str(folder)})
    assert read(kind, str(folder), context([one])).measures == ()
    assert not [row for row in rows_of(tmp_path, [one]) if row.group]
    assert {row["group"] for row in owners_rows([one], context([one]))} == {"", "age", "seen"}


@pytest.mark.parametrize("unit", ["word", "phone"])
def test_the_verb_tells_the_owner_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    monkeypatch.chdir(tmp_path)
    about = {"name": "toy", "unit": unit, "groups": ["age"], "train_groups": ["seen"]}
    write_json(tmp_path / "manifests" / "corpus.json", about)
    write_systems(tmp_path / "systems.jsonl", grouped(tmp_path))
    call(
        "report --in-systems systems.jsonl --in-manifests manifests --out-report RESULTS.md"
        " --out-results results.jsonl --out-owner owner.jsonl --ledger ledger.json"
        f" --config {section('report')} {CONF}/reports/pate.yaml --set recipe=pate phones=true"
        " g2p=none",
    )
    rows = read_rows(tmp_path / "results.jsonl")
    assert {row.group for row in rows} == {"", "age"}
    assert {row["group"] for row in read_jsonl(tmp_path / "owner.jsonl")} == {"seen"}
    assert "seen" not in (tmp_path / "RESULTS.md").read_text()
    # What is in phones anyway has no phones of words.
    assert any(row.metric == "word_per" for row in rows) == (unit == "word")
