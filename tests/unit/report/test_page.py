"""The page: its first table, one family of tests, and how it looks in a browser."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import stat
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json, write_jsonl
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.groups import for_group
from privasr_k2.privacy.people import People
from privasr_k2.privacy.spending import shown
from privasr_k2.recipe.systems import System, write_systems
from privasr_k2.report.beside import END, START, beside_papers, with_block
from privasr_k2.report.measures import p_text
from privasr_k2.report.page import headline, headline_plots, page
from privasr_k2.report.results import collect, read_rows
from privasr_k2.report.tables import Index
from tests.support.conf import section
from tests.support.made_recipe import (
    CONF,
    context,
    figure,
    layout,
    origin,
    pate,
    rows_of,
    spend,
    system,
)
from tests.support.verbs import call, refused

ROOT = CONF.parent
CHROMIUM = shutil.which("chromium")
PROBE = """<script>window.addEventListener("load", () => {
const wide = document.documentElement;
document.querySelectorAll("details").forEach((one) => { one.open = true; });
document.querySelectorAll("th button").forEach((one) => one.click());
const first = document.querySelector("tbody").rows;
const boxes = [...document.querySelectorAll("table, pre, img")];
document.title = JSON.stringify({ over: wide.scrollWidth - wide.clientWidth, rows: first.length,
broken: [...document.images].filter((one) => !one.complete || !one.naturalWidth).length,
lost: [...document.links].filter((one) => !one.hash || !document.querySelector(one.hash)).length,
clipped: boxes.filter((one) => { const box = one.closest(".scroll, pre") || one;
return box.getBoundingClientRect().right > wide.clientWidth + 1; }).length,
images: document.images.length });
}); </script></body>"""


class _Text(HTMLParser):
    """The cells of all tables."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.tables[-1][-1][-1] += data


def test_the_first_table_answers(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, pate(tmp_path))
    made = headline([(Index(rows), rows)])
    assert [row[0].text for row in made.rows] == ["gnmax", "lnmax"]
    assert headline([(Index(rows), rows)] * 2) == made  # recipes that share a system
    scored = [r for r in rows if (r.system, r.kind, r.metric) == ("gnmax", "score_test", "wer")]
    both = [*rows, *(dataclasses.replace(row, metric="per") for row in scored)]
    assert len(headline([(Index(both), both)]).rows) == len(made.rows) + len(scored)
    cells = zip(made.columns, made.rows[0], strict=True)
    found = {title: cell.text for (title, _), cell in cells}
    own = figure(rows, "gnmax", "wer")
    assert own.epsilon is not None
    assert found["epsilon"] == found["epsilon of a person"] == shown(own.epsilon)
    assert (found["public"], found["not private"], found["gap closed %"]) == ("23.33", "6.67", "80")
    assert found["private"] == f"10.00 ({own.low:.2f} to {own.high:.2f})"
    [test] = [row for row in rows if (row.system, row.against) == ("gnmax", "public")]
    assert (
        found["p (Holm)"] == p_text(test.p_holm)
        and found["for each"] == "speaker, delta 1e\u201105"
    )


def test_the_first_table_says_what_a_person_has(tmp_path: Path) -> None:
    """Noise for each device is no such noise for whoever is on six of them."""
    people = People.of([(f"d{n}", "anna") for n in range(6)], source="clients")
    event = events.repeated(events.poisson_sampled(0.05, events.gaussian(1.5)), 5)
    spent = spend(tmp_path / "fl", 1.5, unit="device", people=people, event=event)
    shared = {"protects": "each {unit} of toy", "headline": True}
    one = system(tmp_path, "fl", "fedlm", 3, artifacts={"privacy": str(spent)}, **shared)
    names = {"relation": Relation.REPLACE_ONE, "event": events.randomized_response(0.9, 50)}
    mentions = spend(tmp_path / "text", 1.0, unit="mention", people=people, **names)
    two = system(tmp_path, "text", "x", artifacts={"privacy": str(mentions)}, **shared)
    rows = rows_of(tmp_path, [one, two])
    made = headline([(Index(rows), rows)])
    of_device, of_names = (
        {title: cell.text for (title, _), cell in zip(made.columns, row, strict=True)}
        for row in made.rows
    )
    own = figure(rows, "fl", "wer")
    whole = account(for_group(event, 8), Relation.ADD_OR_REMOVE_ONE, 1e-5).value
    assert own.epsilon is not None and whole > 5 * own.epsilon
    assert of_device["epsilon of a person"] == f"{shown(whole)} (at most 8 devices)"
    assert of_device["protects"] == "each device of toy" and of_device["epsilon"] != shown(whole)
    assert of_names["epsilon of a person"].startswith("infinite (all names of one: ")
    [beside] = [r for r in beside_papers([(layout("fedlm"), rows)]).split("\n") if "| fl " in r]
    assert [cell.strip() for cell in beside.split("|")][-4:-1] == [
        shown(own.epsilon), "device", shown(whole)
    ]  # fmt: skip


def test_a_release_that_was_not_measured_has_its_row(tmp_path: Path) -> None:
    spent = {"privacy": str(spend(tmp_path / "text", 2.0, unit="utterance"))}
    one = system(tmp_path, "text", "release", artifacts=spent, protects="names", headline=True)
    rows = rows_of(tmp_path, [one])
    [row] = headline([(Index(rows), rows)]).rows
    texts = [cell.text for cell in row]
    assert texts[:2] == ["text", "names"] and texts[4] == "infinite" and texts[6] == "–"
    assert texts[-1] == "toy"


def test_epsilons_of_different_units_share_no_axis(tmp_path: Path) -> None:
    systems = [
        system(
            tmp_path, f"{unit}_{noise}", "fedlm", 3, protects="each {unit}",
            artifacts={"privacy": str(spend(tmp_path / f"{unit}_{noise}", noise, unit=unit))},
        )
        for unit in ("device", "user") for noise in (2.0, 4.0)
    ]  # fmt: skip
    rows = rows_of(tmp_path, systems)
    plots = headline_plots([(Index(rows), rows)])
    names = [(plot.title, plot.xlabel, plot.num_points) for plot in plots]
    assert names == [
        (f"toy, test, each {unit}", f"epsilon for each {unit}", 2) for unit in ("device", "user")
    ]


def test_a_comparison_stands_once_with_one_p(tmp_path: Path) -> None:
    systems = pate(tmp_path)
    rows = rows_of(tmp_path, systems)
    dpsgd = collect(systems[:2], origin(None, "dpsgd"), context(systems))
    html = page([(layout("pate"), rows), (layout("pate"), dpsgd)])
    lines = [row for table in _Text(html).tables for row in table if "WER difference" in row]
    pairs = [(row[0], row[1]) for row in lines]
    assert len(pairs) == len(set(pairs)) == 4 and ("all data", "public") in pairs
    rates = [table for table in _Text(html).tables if "p against public" in table[0]]
    shown_p = {table[2][table[0].index("p against public")] for table in rates}
    assert len(rates) == 2 and len(shown_p) == 1


def test_what_is_written_is_escaped(tmp_path: Path) -> None:
    systems = pate(tmp_path)
    made = layout("pate", "command=./run.sh <script>", "title=A & B")
    html = page([(made, collect(systems, origin(), context(systems)))])
    assert "A &amp; B" in html and "<script>" in html and "./run.sh &lt;script&gt;" not in html
    assert html.count("<script>") == 1 and "http" not in re.sub(r"data:[^\"]*", "", html)


@pytest.fixture
def html(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page of two recipes, made by the verb."""
    monkeypatch.chdir(tmp_path)
    about = {"name": "toy", "synthetic": True, "scored_units": {}}
    write_json(tmp_path / "manifests" / "corpus.json", about)
    for recipe in ("one", "two"):
        exp = tmp_path / "exp" / recipe
        turns = [{"client": "c", "user": "u", "ref_words": 7654}]
        write_jsonl(exp / "timeline.jsonl", turns)
        about = {"protected_timeline": str(exp / "timeline.jsonl")}
        clients = System("clients", "test", "recipe", "", artifacts=about)
        write_systems(exp / "systems.jsonl", [*pate(exp), clients])
        call(
            f"report --in-systems {exp}/systems.jsonl --in-manifests manifests"
            f" --ledger {exp}/ledger.json --out-report {exp}/RESULTS.md"
            f" --out-results {exp}/results.jsonl --out-figures {exp}/figures"
            f" --out-layout {exp}/layout.yaml --out-owner {exp}/owner_figures.jsonl"
            f" --config {section('report')}"
            f" {CONF}/reports/pate.yaml --set recipe={recipe}",
            "command=./run.sh toy pate --a-long-option 'with many words, so that it does not fit'",
        )
    results, layouts = (
        [f"exp/{recipe}/{name}" for recipe in ("one", "two")]
        for name in ("results.jsonl", "layout.yaml")
    )
    call("report --in-results", *results, "--in-layouts", *layouts, "--out-page p.html")
    return tmp_path / "p.html"


def test_the_verb_writes_all(html: Path) -> None:
    exp = html.parent / "exp" / "one"
    results = (exp / "RESULTS.md").read_text()
    assert results.startswith("# PATE and DP-SGD for end-to-end recognizers: toy\n")
    assert "**Synthetic speech.**" in results
    assert (exp / "figures" / "epsilon.svg").is_file()
    rows = read_rows(exp / "results.jsonl")
    assert {row.recipe for row in rows} == {"one"}
    owners = exp / "owner_figures.jsonl"
    assert "7654" in owners.read_text() and stat.S_IMODE(owners.stat().st_mode) == 0o600
    published = [html, *(path for path in exp.iterdir() if path.suffix in (".md", ".svg"))]
    for path in (*published, exp / "results.jsonl"):
        assert "7654" not in path.read_text() and "7,654" not in path.read_text()
    assert all(row.commit for row in rows if row.kind != "ledger")
    text = html.read_text()
    assert text.count("<section") == 2 and "synthetic speech" in text and "--a-long-option" in text


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
@pytest.mark.parametrize("width", [390, 1000, 1400, 1600])
def test_in_a_browser(html: Path, width: int) -> None:
    probe = html.with_name("probe.html")
    frame = f'<iframe src="inner.html" width="{width}" height="900" style="border:0"></iframe>'
    inner = html.with_name("inner.html")
    told = PROBE.replace("document.title =", "parent.document.title =")
    inner.write_text(html.read_text().replace("</body>", told), encoding="utf-8")
    probe.write_text(f"<!DOCTYPE html><body style='margin:0'>{frame}</body>", encoding="utf-8")
    flags = "--headless --no-sandbox --disable-gpu --allow-file-access-from-files --dump-dom"
    flags += f" --virtual-time-budget=3000 --window-size={max(width, 600)},900"
    profile = f"--user-data-dir={html.parent / 'chromium'}"
    command = [str(CHROMIUM), *flags.split(), profile, probe.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = json.loads(re.search(r"<title>(.*?)</title>", dom)[1].replace("&quot;", '"'))  # type: ignore[index]
    assert found.pop("rows") == 4 and found.pop("images") == 3
    assert found == {"over": 0, "broken": 0, "lost": 0, "clipped": 0}


def test_the_table_beside_the_papers_is_that_of_the_committed_results(tmp_path: Path) -> None:
    """By the command line of the verb's help."""
    text, path = (ROOT / "docs" / "results.md").read_text(encoding="utf-8"), tmp_path / "page.md"
    path.write_text(with_block(text, f"{START}\nold\n{END}\n", path), encoding="utf-8")
    results = sorted(map(str, (ROOT / "egs").glob("*/results*.jsonl")))
    layouts = sorted(map(str, (CONF / "reports").glob("*.yaml")))
    of_papers = f"--in-published {CONF}/published.yaml --config {section('report')}"
    call("report --in-results", *results, "--in-layouts", *layouts, of_papers, "--out-beside", path)
    assert path.read_text(encoding="utf-8") == text


def test_results_without_a_layout_are_named(tmp_path: Path) -> None:
    results = ROOT / "egs" / "mini_pate" / "results_dpsgd.jsonl"
    given = f"--in-layouts {CONF}/reports/ctc.yaml --config {section('report')}"
    with refused("the layout of dpsgd"):
        call(f"report --in-results {results} {given} --out-page {tmp_path}/page.html")


def test_the_verb_reads_published_figures_for_layouts_without(tmp_path: Path) -> None:
    page_of = f"--in-layouts {CONF}/reports/fedlm.yaml --config {section('report')} --out-page"
    shown = {}
    for name, published in (("with", f"--in-published {CONF}/published.yaml"), ("without", "")):
        results = f"--in-results {ROOT}/egs/scotus/results_fedlm.jsonl"
        call(f"report {results} {published} {page_of} {tmp_path}/{name}.html")
        tables = _Text((tmp_path / f"{name}.html").read_text()).tables
        shown[name] = {head for table in tables for head in table[0] if "published" in head}
    both = {f"{of}: {figure}" for of in ("Conversation", "Voice Command")
            for figure in ("PPL", "WER %")}  # fmt: skip
    expected = {f"published, {of}" for of in {*both, "Conversation: epsilon"}}
    assert shown == {"with": expected, "without": set()}


def test_the_block_is_renewed_and_needs_its_markers(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, pate(tmp_path))
    block = beside_papers([(layout("pate"), rows)])
    assert block.count("\n| yang2022 |") == 2 and "| 10.00 |" in block
    text = with_block(f"a\n{START}\nold\n{END}\nb\n", block, Path("x"))
    assert text == f"a\n{block}b\n" == with_block(text, block, Path("x"))
    with pytest.raises(DataError, match="write both"):
        with_block("a\n", block, Path("x"))
