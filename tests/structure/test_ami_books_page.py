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


def test_error_rates_with_the_same_gap() -> None:
    rows = read_rows(ROOT / "egs/ami/results_fmp_books_speech.jsonl")
    wer = {row.label: row for row in rows if row.metric == "wer" and not row.against}
    ppl = {row.label: row.value for row in rows if row.metric == "ppl" and not row.against}
    pairs = {
        (row.label, row.against): row
        for row in rows
        if row.metric == "wer_difference" and row.p_holm is not None
    }
    first = float(wer["no adaptation"].value)
    assert f"| no adaptation | {first:.2f} | | |" in PAGE
    for label in (
        *(f"T = {rounds}" for rounds in (1, 2, 5, 10)),
        "T = 10, clients meeting_speaker",
        "alpha, beta, bandwidth of dev",
        "alpha alone",
        "beta alone",
        "global = background",
        "released, epsilon 8, each user",
    ):
        began = "baseline" + "_meeting_speaker" * label.endswith("meeting_speaker")
        value, pair = float(wer[label].value), pairs[label, began]
        change = 100 * (value / first - 1)
        assert f"| {label} | {value:.2f} | {change:+.1f} | {pair.p_holm:.3f} |" in PAGE
    assert (
        wer["T = 10"].value < wer["T = 5"].value < wer["T = 2"].value < wer["T = 1"].value < first
    )
    best = wer["T = 10"]
    cells = f"| {first:.2f} to {best.value:.2f} | {best.low:.2f} to {best.high:.2f} |"
    assert cells in PAGE
    assert f"Alpha alone is as good as both (p = {pairs['alpha alone', 'T10'].p_holm:.3f})" in PAGE
    assert f"better than beta alone (p = {pairs['beta alone', 'T10'].p_holm:.3f})" in PAGE
    assert f"has {wer['kernel bandwidth 100'].value:.2f} %; of 0.1" in PAGE
    assert f"*not released* has {wer['not released'].value:.2f} %" in PAGE
    released = [row for label, row in wer.items() if label.startswith("released")]
    assert len(released) == 5 and all(row.value > first for row in released)
    assert f"{ppl['no adaptation']:.1f} becomes {ppl['T = 10']:,.1f}" in PAGE
    sizes = {row.metric: row.value for row in rows if row.label == "T = 10" and not row.against}
    assert f"{sizes['utterances']:,.0f} utterances and {sizes['words']:,.0f} words" in PAGE
    page = " ".join((ROOT / "docs/fmp.md").read_text(encoding="utf-8").split())
    assert f"gain {100 * (1 - float(best.value) / first):.1f} % in WER at T = 10" in page
