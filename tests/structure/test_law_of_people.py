"""The law of people in docs/pate.md is that of the committed rows."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.report.projection import MEASURED, METRIC, projections
from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "egs/speechocean762"
PAGE = " ".join((ROOT / "docs/pate.md").read_text(encoding="utf-8").split())
EPSILONS = ("1", "4", "8", "inf")
MEASURED_PEOPLE, FURTHER = (10, 25, 50, 111), (250, 1000, 2338, 1000000)


def rows() -> list[Row]:
    return read_rows(FOLDER / "people.jsonl")


def wer(found: list[Row], system: str) -> float:
    [row] = [r for r in found if (r.system, r.metric, r.kind) == (system, "wer", "score_test")]
    return float(row.value)  # type: ignore[arg-type]


def of(kind: str, people: int) -> str:
    return f"whisper/{kind}{'' if people == 111 else f'_{people}people'}"


def law(found: list[Row]) -> dict[tuple[str, int, str], float]:
    return {
        (str(r.facts["epsilon"]).removesuffix(".0"), int(r.item), r.metric): float(r.value)  # type: ignore[arg-type]
        for r in found
        if r.kind == "projection"
    }


def test_the_table() -> None:
    found = rows()
    lines = []
    for people in MEASURED_PEOPLE:
        values = [wer(found, of(f"dpsgd_{epsilon}", people)) for epsilon in EPSILONS]
        values.append(wer(found, of("nonprivate", people)))
        lines.append([f"{people}", *(f"{value:.2f}" for value in values)])
    for people in FURTHER:
        by = [law(found).get((epsilon, people, METRIC)) for epsilon in EPSILONS[:3]]
        shown = [f"{value:.2f}" for value in by if value is not None]
        lines.append([f"{people:,}, by the law", *shown, "–", "–"])
    for line in lines:
        assert f"| {' | '.join(line)} |" in PAGE, line


def test_rows_of_the_law_follow_from_those_of_the_systems() -> None:
    found = rows()
    made = list(projections([r for r in found if r.kind != "projection"], FURTHER))
    assert law(made) == law(found)


def test_pairs_with_whispers_own_search() -> None:
    page = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    pairs = {r.system: r for r in rows() if r.against == "whisper/own"}
    eight, four, one = (pairs[f"whisper/dpsgd_{epsilon}"] for epsilon in (8, 4, 1))
    text = "epsilon 8 has {:.2f} points less and 4 has {:.2f} (p < .001 after Holm)"
    assert text.format(*(-float(row.value) for row in (eight, four))) in page  # type: ignore[arg-type]
    assert all(row.p_holm is not None and row.p_holm < 0.001 for row in (eight, four))
    text = f"1 has {-float(one.value):.2f} less, p = {one.p:.2f} alone and {one.p_holm:.2f} after"  # type: ignore[arg-type]
    assert text in page


def test_how_far_off_it_is() -> None:
    """It says more than was measured, by at most what the page says."""
    told = law(rows())
    off = [
        value - told[epsilon, people, MEASURED]
        for (epsilon, people, metric), value in told.items()
        if metric == METRIC and (epsilon, people, MEASURED) in told
    ]
    assert len(off) == 3
    assert f"{min(off):.2f} to {max(off):.2f} points too high" in PAGE


def test_who_gains() -> None:
    found = rows()
    gains = {
        r.system: r for r in found if r.metric == "wer_difference" and r.against == "whisper/public"
    }
    for kind, people in (("dpsgd_8", 25), ("dpsgd_4", 50), ("dpsgd_1", 111)):
        row = gains[of(kind, people)]
        assert row.p_holm is not None and row.p_holm < 0.002
        assert f"{-float(row.value):.2f}" in PAGE  # type: ignore[arg-type]
    for kind, people in (("dpsgd_8", 10), ("dpsgd_4", 25), ("dpsgd_1", 50)):
        p_holm = gains[of(kind, people)].p_holm
        assert p_holm is not None and p_holm > 0.05
