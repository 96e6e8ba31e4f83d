"""The law of people: numbers, rows, table and plot."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.fileio import write_json
from privasr_k2.report.figures import plots_of, svg_of
from privasr_k2.report.kinds import read
from privasr_k2.report.layout import Layout
from privasr_k2.report.measures import Context
from privasr_k2.report.projection import KIND, MEASURED, METRIC, Measured, law, projections
from privasr_k2.report.results import Row
from privasr_k2.report.tables import tables_of

CONF = Path(__file__).parents[3] / "conf"
NOISE = {8.0: 2.0, 4.0: 4.0, 1.0: 16.0, math.inf: 0.0}
PEOPLE = (50, 100)


def row(people: int, epsilon: float, kind: str, metric: str, value: float) -> Row:
    return Row(
        recipe="dpsgd", corpus="toy", synthetic=True, system=f"ctc/dpsgd_{epsilon}_{people}",
        label=f"DP-SGD, epsilon {epsilon:g}, {people} people", method="dpsgd", folder="",
        protects="", headline=False, public="", not_private="", kind=kind,
        part="test" if kind == "score_test" else "", item="", metric=metric, value=value,
        epsilon=epsilon, unit="speaker",
        facts={"model": "ctc", "epsilon": "inf" if epsilon == math.inf else epsilon},
    )  # fmt: skip


def wer(people: int, epsilon: float) -> float:
    return 20 + 100 * NOISE[epsilon] / people + 10 / people


def rows(*, size: int = 9984) -> list[Row]:
    found = []
    for people in PEOPLE:
        for epsilon, noise in NOISE.items():
            about = {
                "noise_multiplier": noise,
                "trained_parameters": size,
                "steps": 20,
                "clip": 0.1,
            }
            found += [row(people, epsilon, "dpsgd", name, value) for name, value in about.items()]
            found.append(row(people, epsilon, "people", "people", people))
            found.append(row(people, epsilon, "score_test", "wer", wer(people, epsilon)))
    return found


def layout() -> Layout:
    return config.load(Layout, [f"{CONF}/common.yaml#report", CONF / "reports/pate.yaml"], [])


def test_it_is_linear_between_measured_noises_and_nothing_outside() -> None:
    nobody = rows()[0]
    measured = [Measured(100, noise, wer(100, e), nobody) for e, noise in NOISE.items()]
    measured.append(Measured(50, 2.0, 99.0, nobody))  # of fewer people: not asked
    for people, epsilon in ((250, 1.0), (1000, 8.0), (10**6, 4.0), (50, 4.0)):
        expected = 20.1 + 100 * NOISE[epsilon] / people
        assert law(measured, people, NOISE[epsilon]) == pytest.approx(expected)
    assert law(measured, 50, NOISE[1.0]) is None  # more noise than was measured
    without = [each for each in measured if each.noise]
    assert law(without, 1000, NOISE[8.0]) is None  # less


def test_rows_say_what_was_measured_beside() -> None:
    rows_of_law = projections(rows(), [100, 2338])  # 100 are measured
    made = {(r.epsilon, int(r.item), r.metric): r.value for r in rows_of_law}
    assert {people for _, people, _ in made} == {50, 2338}
    # Epsilon inf has no noise to compare: no people change it.
    assert {epsilon for epsilon, *_ in made} == {8.0, 4.0, 1.0}
    assert made[8.0, 2338, METRIC] == pytest.approx(20.1 + 200 / 2338)
    assert (8.0, 2338, MEASURED) not in made
    assert made[8.0, 50, METRIC] == pytest.approx(24.1) and made[8.0, 50, MEASURED] == 24.2
    assert (1.0, 50, METRIC) not in made and made[1.0, 50, MEASURED] == wer(50, 1.0)


def test_other_models_have_a_law_of_their_own() -> None:
    other = [dataclasses.replace(r, facts={"model": "las"}) for r in rows()]
    other = [dataclasses.replace(r, system=f"las {r.system}") for r in other]
    doubled = [
        dataclasses.replace(r, value=2 * r.value) if r.metric == "wer" else r  # type: ignore[operator]
        for r in other
    ]
    both = list(projections([*rows(), *doubled], [2338]))
    assert both == [*projections(rows(), [2338]), *projections(doubled, [2338])]
    one = [r for r in rows() if "_100" in r.system]
    assert list(projections(one, [2338])) == []


def test_table_and_plot() -> None:
    every = [*rows(), *projections(rows(), [2338])]
    tables = {table.title: table for table in tables_of(layout(), every)}
    table = tables["Other numbers of speakers"]
    shown = [[cell.text for cell in cells] for cells in table.rows]
    assert ["DP-SGD, epsilon 8, 100 people", "CTC", "2338", "20.19", "–"] in shown
    assert ["DP-SGD, epsilon 8, 100 people", "CTC", "50", "24.10", "24.20"] in shown
    plots = dict(plots_of(layout(), every))
    plot = plots["people.svg"]
    assert set(plot.lines) == {
        *(f"dpsgd, CTC, epsilon asked {epsilon}" for epsilon in (8, 4, 1)),
        "dpsgd, CTC, without noise",
    }
    points = plot.lines["dpsgd, CTC, epsilon asked 8"]
    assert [(point.x, point.y) for point in points] == [(50, wer(50, 8.0)), (100, wer(100, 8.0))]
    dashed = plot.dashed["dpsgd, CTC, epsilon asked 8"]
    assert dashed[0] == points[-1] and dashed[1].x == 2338
    assert svg_of(plot) == svg_of(plot)


def test_readers(tmp_path: Path) -> None:
    context = Context((), 10, 0.95, 1, ())
    about = {"steps": 20, "trained_parameters": 9984, "clip": 0.1, "noise_multiplier": 2.684,
             "units": 111, "kind": "whisper"}  # fmt: skip
    write_json(tmp_path / "dpsgd.json", about)
    found = {
        m.metric: m.value for m in read("dpsgd", str(tmp_path / "dpsgd.json"), context).measures
    }
    assert found["relative_noise"] == pytest.approx(2.684 * math.sqrt(9984) / 111)
    sides = {"format": "privasr_k2 sides 1", "private": {"speakers": ["a", "b"]}}
    write_json(tmp_path / "sides.json", sides)
    (people,) = read("people", str(tmp_path / "sides.json"), context).measures
    assert (people.metric, people.value) == ("people", 2)
    assert KIND not in {row.kind for row in rows()}
