"""Layouts and the tables, Markdown and figures that come of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.federated.train import paper_epsilon
from privasr_k2.fileio import write_json
from privasr_k2.recipe.front import declare
from privasr_k2.recipe.systems import System
from privasr_k2.report.compare import comparison_text
from privasr_k2.report.figures import Plot, Point, plots_of, scale_of, svg_of, write_figures
from privasr_k2.report.layout import fits
from privasr_k2.report.markdown import report_text
from privasr_k2.report.measures import METRICS, p_text
from privasr_k2.report.notes import notes_of
from privasr_k2.report.tables import Table, tables_of
from privasr_k2.scoring.corpus_info import UNKNOWN
from tests.support.made_recipe import (
    CONF,
    REFS,
    changed,
    figure,
    hyps,
    layout,
    pate,
    perplexities,
    rows_of,
    spend,
    system,
)
from tests.support.made_scores import write_score

LAYOUTS = sorted(path.stem for path in (CONF / "reports").glob("*.yaml"))


def cells(table: Table, label: str) -> dict[str, str]:
    """The row of a system by heading."""
    [row] = [row for row in table.rows if row[0].text == label]
    return {title: cell.text for (title, _), cell in zip(table.columns, row, strict=True)}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_whole(name: str) -> None:
    read = layout(name)
    assert read.recipe == name
    assert read.all_tables
    assert all(fact in read.facts for table in read.all_tables for fact in [table.split] if fact)
    assert all(table.literal for table in read.all_tables if table.title.endswith("as published"))
    for told in read.published:
        figures = {name: of for name, of in told.items() if name != "where"}
        assert figures and all(set(of) <= set(METRICS) for of in figures.values()), told
    shown = {column.name for table in read.all_tables for column in table.columns
             if column.view == "published"}  # fmt: skip
    assert shown == {metric for metric in METRICS if read.data_sets(metric)}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tables=[{title: a, colums: [wer]}]", "colums"),
        ("tables=[{title: a, columns: [wre]}]", "wre"),
        ("tables=[{title: a, columns: [wer chnge]}]", "chnge"),
        ("tables=[{title: a, columns: [facts.techers]}]", "techers"),
        ("figures=[{name: a, title: a, x: epsilon, y: wre}]", "wre"),
        ("num_replicates=0", "num_replicates"),
    ],
)
def test_a_layout_with_an_error_is_refused(value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        layout("pate", value)


def test_figures_of_the_papers_stand_beside_the_same_facts(tmp_path: Path) -> None:
    row = figure(rows_of(tmp_path, [system(tmp_path, "a", "x", 3)]), "a", "wer")

    first = {"classlm": "AMI", "fedlm": "Conversation", "fmp": "AMI Meeting"}

    def published(name: str, metric: str = "wer", data: str = "", **facts: object) -> object:
        of = replace(row, facts=facts)  # type: ignore[arg-type]
        return layout(name).published_for(of, metric, data or first[name])

    assert published("classlm", setting="sanitized", model="M1") == 32.3
    assert published("classlm", "ppl", setting="adapt", percent=15, model="M2", equation=2) == 91
    assert published("classlm", setting="adapt", percent=16, model="M2") is None
    assert (
        published("fedlm", "ppl", adaptation="federated", init="pretrained", confidences="token")
        == 30.3
    )
    noise = {"adaptation": "federated", "confidences": "all", "noise": 0.5}
    assert published("fedlm", "epsilon", **noise, client_sampling="poisson") == 14.2
    assert published("fedlm", "ppl", **noise, client_sampling="ordered") is None
    assert published("fmp", study="release", published=True, epsilon=0.1) == 31.59
    assert published("fmp", study="release", epsilon=0.1) is None
    sharp = {"study": "weights", "kernel_bandwidth": 1, "alpha": 0.5, "beta": 0.25}
    assert published("fmp", **sharp) == 30.96
    assert published("fmp", data="Curated Video", **sharp) == 7.65
    assert published("fmp", data="Curated Video", study="rounds", rounds=5) is None
    hard = {"adaptation": "federated", "init": "pretrained", "confidences": "hard"}
    assert published("fedlm", data="Voice Command", **hard) == 8.82
    assert published("fedlm", "ppl", "Voice Command", **hard) == 8.0
    assert published("fedlm", "ppl", "Voice Command", **noise, client_sampling="poisson") is None


def test_a_column_for_each_data_set_of_the_paper(tmp_path: Path) -> None:
    """Those of liu2021, table 2 and 3; in table 4 one has no figures."""
    values = {
        "none": ({"adaptation": "none"}, "109.4", "420.4", "7.96", "9.89"),
        "server": ({"adaptation": "server", "init": "pretrained", "confidences": "all"},
                   "31.3", "7.9", "7.79", "9.04"),
        "scratch": ({"adaptation": "server", "init": "scratch", "confidences": "all"},
                    "34.7", None, "7.81", None),
    }  # fmt: skip
    path = perplexities(tmp_path / "p.json", dict.fromkeys(values, 50.0))
    systems = [
        system(
            tmp_path, name, "x", 3, facts=of, artifacts={"perplexity": f"{path}#{name}"}
        )
        for name, (of, *_) in values.items()
    ]  # fmt: skip
    titles = [
        f"published, {data}: {figure}"
        for figure in ("PPL", "WER %") for data in ("Conversation", "Voice Command")
    ]  # fmt: skip
    tables = [table for table in tables_of(layout("fedlm"), rows_of(tmp_path, systems))]
    shown = {
        row[0].text: {title: cell.text for (title, _), cell in zip(table.columns, row, strict=True)}
        for table in tables
        if table.title.startswith(("Tables 2 and 3", "Table 4"))
        for row in table.rows
    }
    for name, (_, *expected) in values.items():
        assert [shown[name].get(title) for title in titles] == expected, name


def test_layouts_of_older_results_have_figures_without_a_data_set(tmp_path: Path) -> None:
    told = "published=[{where: {study: all}, wer: 32.83}]"
    rows = rows_of(tmp_path, [system(tmp_path, "a", "public", 3, facts={"study": "all"})])
    first, *_ = tables_of(layout("fmp", told), rows)
    assert first.columns[-1][0] == "published: WER %" and first.rows[0][-1].text == "32.83"


@pytest.mark.parametrize(
    ("recipe", "words"),
    [("fedlm", []), ("fmp", ["--as-published", "true"]), ("classlm", [])],
)
def test_every_published_figure_has_its_system(
    tmp_path: Path, recipe: str, words: list[str]
) -> None:
    declared = declare("mini", recipe, ["--work-dir", str(tmp_path), *words], CONF.parent, tmp_path)
    for told in layout(recipe).published:
        found = [of for of in declared.systems if fits(of, told["where"])]  # type: ignore[arg-type]
        assert found, told["where"]


def test_the_published_epsilons_are_near_those_of_its_plan() -> None:
    # [liu2021, table 5] by RDP: 10,000 devices, 100 of them in each of 1,000 rounds.
    for noise, epsilon in ((0.5, 14.2), (1.5, 0.9)):
        assert paper_epsilon(noise, 1e-5).value < 1.15 * epsilon


def test_facts_are_compared_as_they_are_written(tmp_path: Path) -> None:
    row = rows_of(
        tmp_path, [system(tmp_path, "a", "pate", 3, facts={"teachers": 40, "epsilon": "inf"})]
    )[0]
    assert fits(
        row, {"method": ["pate", "clean"], "teachers": 40.0, "epsilon": "inf", "noise": None}
    )
    assert fits(row, {"teachers": "any"}) and not fits(row, {"noise": "any"})
    assert not fits(row, {"teachers": 4}) and not fits(row, {"teachers": True})


def test_a_row_says_what_was_measured(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, pate(tmp_path))
    rates, *_ = tables_of(layout("pate"), rows)
    assert rates.title == "Error rates: CTC"
    found = cells(rates, "gnmax")
    own = figure(rows, "gnmax", "wer")
    [test] = [row for row in rows if (row.system, row.against) == ("gnmax", "public")]
    assert found["WER %"] == "10.00" and found["WER interval"] == f"{own.low:.2f} to {own.high:.2f}"
    assert found["WER change against public %"] == f"{100 * (12 / 28 - 1):+.2f}"
    assert found["p against public"] == p_text(test.p_holm)
    assert found["unit"] == "speaker" and found["epsilon"] == found["epsilon, person"] != "infinite"
    assert cells(rates, "public")["epsilon"] == "–"
    assert cells(rates, "all data")["epsilon"] == "infinite"
    tables = {table.title: table for table in tables_of(layout("pate"), rows)}
    spent = tables["All that was spent"]
    items = [row[0].text for row in spent.rows]
    assert [item.rpartition(", for ")[2] for item in items[:2]] == [
        "a whole person",
        "each speaker",
    ]
    ends = [item.rpartition(": ")[2] for item in items[2:]]
    assert ends == ["all of this report", "all in the ledger"]
    assert spent.notes == ("Not covered: the roster; and the pool",)


def test_titles_name_the_units_of_their_rows(tmp_path: Path) -> None:
    systems = [
        system(
            tmp_path, unit, "fedlm", 3, facts={"noise": 0.5},
            artifacts={"privacy": str(spend(tmp_path / unit, 2.0, unit=unit))},
        )
        for unit in ("device", "user", "device")
    ]  # fmt: skip
    table = (
        "{title: 'for each {unit}', notes: ['{unit}s'], kinds: [score_test], columns: [label, wer]}"
    )
    figure = "{name: a, title: '{unit}', kinds: [score_test], x: epsilon, y: wer, by: [noise]}"
    values = (f"tables=[{table}]", f"figures=[{figure}]")

    def titles(of: Sequence[System]) -> tuple[str, tuple[str, ...], str, str]:
        rows, made = rows_of(tmp_path, of), layout("fedlm", *values)
        first, [(_, plot)] = tables_of(made, rows)[0], plots_of(made, rows)
        return first.title, first.notes, plot.title, plot.xlabel

    both = ("for each device or user", ("device or users",), "device or user, test")
    assert titles(systems[:2]) == (*both, "epsilon for each device or user")
    twice = [systems[0], changed(systems[2], name="again")]
    assert titles(twice)[0] == "for each device"
    with pytest.raises(ConfigError, match="placeholder"):
        layout("pate", "tables=[{title: 'a {units}', columns: [wer]}]")


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_table_shows_an_epsilon_without_unit_and_person(name: str) -> None:
    for table in layout(name).all_tables:
        columns = {column.name for column in table.columns if column.view == "value"}
        if "epsilon" in columns:
            assert columns >= {"unit", "person_epsilon", "person_units"}, table.title
    titles = [one.title for one in (*layout(name).all_tables, *layout(name).all_figures)]
    claims = re.compile(r"\b(user|speaker|person|people|device)(s|-level)?\b", re.IGNORECASE)
    assert not [title for title in titles if claims.search(title)]


def test_a_report_says_once_why_nothing_is_drawn(tmp_path: Path) -> None:
    """Five speakers and groups: the columns stay, with dashes; six have their intervals."""
    found = {}
    for number in (5, 6):
        systems = []
        for name, ppl, wrong in (("a", 100.0, 20), ("b", 80.0, 9)):
            folder = tmp_path / f"{number}{name}"
            path = perplexities(folder / "p.json", {"lm": ppl}, groups=number)
            scored = {"test": (REFS, hyps(wrong))}
            write_score(folder / "score_test", scored, num_speakers=number)
            artifacts = {"perplexity": f"{path}#lm", "score_test": str(folder / "score_test")}
            facts = {"adaptation": "server", "init": "pretrained"}
            others = ("a",) if name == "b" else ()
            more = {"artifacts": artifacts, "facts": facts, "compare_with": others}
            systems.append(system(tmp_path, name, "server", **more))
        made, rows = layout("fedlm"), rows_of(tmp_path, systems)
        notes = report_text(made, rows, [], {}).splitlines()[-len(made.notes) - 1 :]
        tables = {table.title: table for table in tables_of(made, rows)}
        row = cells(tables["Tables 2 and 3: adapted models"], "b")
        intervals = [row["WER interval"], row["PPL interval"]]
        found[number] = notes_of(rows), notes, intervals, row["PPL change %"]
    few, notes, intervals, change = found[5]
    assert len(few) == 1 and notes[-1] == f"- {few[0]}" and re.findall(r"\d+", few[0]) == ["6", "5"]
    assert intervals == ["–", "–"] and change == "-20.00"
    none, notes, intervals, _ = found[6]
    assert none == () and notes[-1] == f"- {layout('fedlm').notes[-1]}"
    assert all(re.fullmatch(r"[\d.]+ to [\d.]+", interval) for interval in intervals)


def test_tables_sort_split_and_leave_out(tmp_path: Path) -> None:
    models = zip(pate(tmp_path), "bbab")
    systems = [changed(of, facts={**of.facts, "model": model}) for of, model in models]
    rows = rows_of(tmp_path, systems)
    columns = "columns: [label, facts.teachers, wer, cer p]"
    table = f"{{title: T, kinds: [score_test], split: model, sort: [wer], {columns}}}"
    made = tables_of(layout("pate", f"tables=[{table}]"), rows)[:2]
    assert [one.title for one in made] == ["T: b", "T: a"]
    assert [row[0].text for row in made[0].rows] == ["all data", "lnmax", "public"]
    assert [title for title, _ in made[0].columns] == ["system", "teachers", "WER %"]


def test_parts_have_rows_and_whole_figures_stand_in_each(tmp_path: Path) -> None:
    artifacts = {"score_test": str(tmp_path / "a" / "score_test")}
    one = system(tmp_path, "a", "pate", artifacts=artifacts)
    write_score(tmp_path / "a" / "score_test", {"x": (REFS, hyps(3)), "y": (REFS, hyps(6))})
    [rates] = tables_of(layout("ctc"), rows_of(tmp_path, [one]))
    assert [[cell.text for cell in row[:2]] for row in rates.rows] == [["a", "x"], ["a", "y"]]


def test_artifacts_of_the_whole_recipe_have_their_tables(tmp_path: Path) -> None:
    write_json(tmp_path / "lambda.json", {"lam": 0.6, "criterion": "errors", "at_end": False})
    artifacts = {"weights": str(tmp_path / "lambda.json")}
    facts = {"study": "rounds", "rounds": 1}
    systems = [
        system(tmp_path, "baseline", "public", 20, facts={"study": "all"}),
        system(tmp_path, "T1", "fmp", 12, facts=facts, compare_with=("baseline",)),
        system(tmp_path, "all_systems", "recipe", artifacts=artifacts),
    ]
    made = {table.title: table for table in tables_of(layout("fmp"), rows_of(tmp_path, systems))}
    assert cells(made["Chosen on the clients of dev"], "all systems")["lambda"] == "0.6"
    assert [row[0].text for row in made["Table 2: rounds"].rows] == ["baseline", "T1"]
    assert cells(made["Table 2: rounds"], "T1")["published, AMI Meeting: WER %"] == "31.44"


def test_the_gain_that_remains_is_counted_beyond_the_control(tmp_path: Path) -> None:
    """20 errors unadapted, 14 with the background alone, 10 exact: noise has to show itself."""
    study = {"study": "release"}
    beyond = {"public": "control", "not_private": "exact", "compare_with": ("baseline", "control")}
    systems = [
        system(tmp_path, "baseline", "public", 20, facts={"study": "all"}),
        system(tmp_path, "control", "fmp", 14, facts={**study, "alpha": 0.0}, public="baseline"),
        system(tmp_path, "exact", "fmp", 10, facts=study, public="control"),
        *(
            system(tmp_path, f"eps_{n}", "fmp", errors, facts={**study, "epsilon": n}, **beyond)
            for n, errors in ((1, 15), (2, 14), (8, 11))
        ),
    ]
    made = {table.title: table for table in tables_of(layout("fmp"), rows_of(tmp_path, systems))}
    [table] = [table for title, table in made.items() if title.startswith("Table 4")]
    [remains] = [title for title, _ in table.columns if "remains" in title]
    shown = {n: cells(table, f"eps {n}")[remains] for n in (1, 2, 8)}
    assert shown == {1: "-25", 2: "0", 8: "75"}
    published = cells(table, "control").get("published, AMI Meeting: WER %")
    assert published != "31.02" == cells(table, "exact")["published, AMI Meeting: WER %"]


def test_a_report_has_at_most_so_many_lines(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, pate(tmp_path))
    made = layout("pate", "command='./run.sh toy pate --words a:b'")
    text = report_text(made, rows, [], {"plot": "figures/plot.svg"})
    again = report_text(made, rows, [], {"plot": "figures/plot.svg"})
    assert text == again
    assert "```bash\n./run.sh toy pate --words a:b\n```" in text and "](figures/plot.svg)" in text
    copies = [(row, n) for n in range(50) for row in rows]
    many = [replace(row, system=f"{row.system}{n}", label=f"{row.label} {n}") for row, n in copies]
    text = report_text(made, many, [], {})
    assert text.count("\n") <= made.max_lines and re.search(
        r"\d+ more rows in `results.jsonl`", text
    )
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(line) for line in block.splitlines()}) == 1


def test_nothing_is_read_out_of_names() -> None:
    parsed = re.compile(
        r"(system|row|one)\.(system|name|label|folder)\b[^\n]*\.(startswith|partition|match|split)\("
    )
    for path in (CONF.parent / "privasr_k2" / "report").rglob("*.py"):
        assert not parsed.search(path.read_text(encoding="utf-8")), path


def test_compare_tests_every_pair(tmp_path: Path) -> None:
    folders = []
    for name, wrong in (("x/ctc", 30), ("y/ctc", 20), ("y/lm", 19)):
        folders.append(tmp_path / name / "score_test")
        write_score(folders[-1], {"test": (REFS, hyps(wrong))})
    text = comparison_text(folders, UNKNOWN)
    assert text.count("| WER difference |") == 3 and "x/ctc" in text and "-0.83" in text
    with pytest.raises(DataError, match="two or more"):
        comparison_text(folders[:1], UNKNOWN)


def test_plots(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, pate(tmp_path))
    [(name, plot)] = plots_of(layout("pate"), rows)  # none against teachers
    assert name == "epsilon.svg"
    assert plot.levels == pytest.approx({"public": 23.33, "all data": 6.67}, abs=0.01)
    points = {label: len(points) for label, points in plot.lines.items()}
    assert points == {"pate, CTC, gnmax, teachers 40": 1, "pate, CTC, lnmax, teachers 40": 1}
    [point] = plot.lines["pate, CTC, gnmax, teachers 40"]
    own = figure(rows, "gnmax", "wer")
    assert point == (own.epsilon, own.value, own.low, own.high)
    assert svg_of(plot) == svg_of(plot)
    for word in ("epsilon", "WER %", "public", "gnmax"):
        assert word in svg_of(plot)
    assert write_figures(layout("pate"), rows, tmp_path / "figures") == {plot.title: "epsilon.svg"}
    assert plots_of(layout("pate"), [row for row in rows if row.system != "lnmax"]) == []


def test_an_axis_is_no_rounding_error() -> None:
    plot = Plot("t", "epsilon", "WER %", {"a": [Point(7.99984, 1.0)], "b": [Point(7.99992, 2.0)]})
    assert "7.9999" not in svg_of(plot)
    assert scale_of([0.1, 8.0]) == "log"
