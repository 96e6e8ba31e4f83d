"""What docs/results.md says of AMI with a LM of books is what the results have."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.report.measures import gap_closed
from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(ROOT / "egs/ami/results_fmp_books.jsonl")


@pytest.fixture(scope="module")
def figures(rows: list[Row]) -> dict[str, Row]:
    """The perplexity of each system, by its label."""
    return {row.label: row for row in rows if row.metric == "ppl" and not row.against}


def test_the_table(figures: dict[str, Row]) -> None:
    first = float(figures["no adaptation"].value)
    assert f"| no adaptation | {first:.1f} | |" in PAGE
    shown = set(figures) - {"no adaptation", "no adaptation, meeting_speaker", "not released"}
    assert len(shown) == 9
    for label in shown:
        ppl = float(figures[label].value)
        assert f"| {label} | {ppl:.1f} | {100 * (ppl / first - 1):.1f} |" in PAGE
    best = figures["T = 10"]
    cells = f"perplexity {first:.1f} to {best.value:.1f} | {best.low:.1f} to {best.high:.1f} |"
    assert cells in PAGE


def test_the_order_and_what_remains(figures: dict[str, Row], rows: list[Row]) -> None:
    labels = ("T = 10", "T = 5", "T = 2", "T = 1", "no adaptation")
    order = [float(figures[label].value) for label in labels]
    assert order == sorted(order)
    pair = [float(figures[label].value) for label in ("T = 10", "alpha alone", "beta alone")]
    assert pair == sorted(pair)
    parts = (figures[n].value for n in ("global = background", "released, epsilon 8, each user"))
    remains = gap_closed(*parts, figures["not released"].value)
    assert remains is not None and f"beyond the control ({100 * remains:.0f} %)" in PAGE
    [clients] = {row.pairs for row in rows if row.against == "baseline_meeting_speaker"}
    assert f"The {clients} pairs of meeting and speaker" in PAGE
