"""What docs/results.md says of personalization is what the results have."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
CORPORA = ("scotus", "ami")
LABELS = {
    "shared": "shared by all",
    "cache": "n-gram cache",
    "marginals": "own unigrams",
    "names": "bonus for rare words",
    "fmp": "unigrams of the user and of all",
    "adapter": "adapters",
}


def rows_of(corpus: str) -> list[Row]:
    return read_rows(ROOT / f"egs/{corpus}/results_personal.jsonl")


def values_of(rows: list[Row]) -> dict[tuple[str, str], float]:
    whole = [row for row in rows if row.item in ("", "all") and not row.group]
    return {
        (r.system, r.metric): float(r.value) for r in whole if isinstance(r.value, (int, float))
    }


@pytest.mark.parametrize("corpus", CORPORA)
def test_ways(corpus: str) -> None:
    rows = rows_of(corpus)
    values = values_of(rows)
    assert LABELS.keys() == {row.system for row in rows if row.metric == "ppl"}
    for system, label in LABELS.items():
        ppl, last = values[system, "ppl"], values[system, "ppl_last_round"]
        change = better = ""
        if system != "shared":
            change = f" {100 * (ppl / values['shared', 'ppl'] - 1):.1f}"
            better = f" {values[system, 'wins_better']:.0f}"
        cells = f"{change} | {last:.1f} | {values[system, 'kept_kb']:.1f} |{better} |"
        assert f"| {label} | {ppl:.1f} |{cells}" in PAGE
    against = [row for row in rows if row.metric == "ppl_change"]
    assert len(against) == 5 and all(row.p_holm < 0.001 for row in against)


def test_scotus() -> None:
    values = values_of(rows_of("scotus"))
    best, people = values["cache", "wins_best"], values["shared", "wins_people"]
    assert f"the best way for {best:.0f} of {people:.0f} people" in PAGE
    learned, scored = values["cache", "learn_ms"], values["names", "score_ms"]
    assert f"{learned:.1f} ms of processor time for 100 words to learn" in PAGE
    assert f"and {scored:.0f} with the bonus" in PAGE


def test_ami() -> None:
    rows = rows_of("ami")
    values = values_of(rows)
    best = [f"{values[way, 'wins_best']:.0f}" for way in ("fmp", "cache")]
    assert "the best way for {} people, the cache for {}.".format(*best) in PAGE
    people = values["shared", "wins_people"]
    assert sum(values[way, "wins_best"] for way in LABELS) == people
    how = " ".join((ROOT / "docs/personal.md").read_text(encoding="utf-8").split())
    assert f"the best way for {best[0]} of {people:.0f} people" in how
    trained = [row for row in rows if row.system == "federated"]
    [bound] = {row.person_epsilon for row in trained if row.person_epsilon}
    assert f"of `adapt` at epsilon {math.ceil(10 * bound) / 10:.1f} for each" in PAGE
    edges = {row.system: row.value for row in rows if row.metric == "at_edge"}
    assert edges.pop("names") == "strength" and set(edges.values()) == {"no"}


def test_mini() -> None:
    rows = rows_of("mini")
    values = values_of(rows)
    assert LABELS.keys() == {row.system for row in rows if row.metric == "ppl"}
    wers = [row for row in rows if row.metric == "wer" and not row.group and not row.item]
    wer = {row.system: float(row.value) for row in wers}  # type: ignore[arg-type]
    for system, label in LABELS.items():
        change = better = ""
        if system != "shared":
            change = f" {100 * (wer[system] / wer['shared'] - 1):.1f}".replace("-0.0", "0.0")
            better = f" {values[system, 'wins_better']:.0f}"
        shown = [values[system, metric] for metric in ("ppl", "ppl_last_round", "kept_kb")]
        cells = " | ".join(f"{value:.1f}" for value in shown)
        assert f"| {label} | {wer[system]:.2f} |{change} | {cells} |{better} |" in PAGE
    p = {r.system: r.p_holm for r in rows if (r.metric, r.against) == ("wer_difference", "shared")}
    assert p["marginals"] < 0.001 and f"{p['fmp']:.2f}" == f"{p['names']:.2f}" == "0.30"
    people = values["shared", "wins_people"]
    assert people == 9
    assert {values[way, "strength"] for way in ("cache", "adapter")} == {0.0}
    trained = [row for row in rows if row.system == "federated"]
    [bound] = {row.person_epsilon for row in trained if row.person_epsilon}
    assert f"`adapt` at epsilon {math.ceil(10 * bound) / 10:.1f} for each" in PAGE
