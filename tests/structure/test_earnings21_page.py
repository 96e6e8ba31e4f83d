"""The table of names in docs/results.md is that of the committed result file."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.report.measures import interval_text, text_of
from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "egs/earnings21/results_names.jsonl"
#: Heading -> metric and class.
COLUMNS = {
    "WER %": ("wer", ""),
    "inside names": ("name_wer", ""),
    "outside": ("other_wer", ""),
    "recall of names %": ("recall", ""),
    "of people %": ("recall", "PER"),
    "false alarms / 1,000 words": ("false_alarm_rate", ""),
}


def cell(rows: list[Row], system: str, metric: str, item: str) -> str:
    """A figure of one system with its interval."""
    [row] = [
        r for r in rows if (r.system, r.metric, r.item, r.against) == (system, metric, item, "")
    ]
    return f"{text_of(metric, row.value)} ({interval_text(metric, row.low, row.high)})"


def test_the_table_is_that_of_the_results() -> None:
    rows = read_rows(RESULTS)
    lines = [["recognizer", *COLUMNS], ["---", *("---:" for _ in COLUMNS)]]
    for system in dict.fromkeys(row.system for row in rows):
        lines.append([system, *(cell(rows, system, *column) for column in COLUMNS.values())])
    assert len(lines) == 2 + 2
    shown = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    assert shown in (ROOT / "docs/results.md").read_text(encoding="utf-8"), shown


def test_inside_and_outside_make_up_all_errors() -> None:
    rows = read_rows(RESULTS)
    for system in {row.system for row in rows}:
        of = {r.metric: r.value for r in rows if (r.system, r.item, r.against) == (system, "", "")}
        inside = of["name_wer"] * of["entity_words"] / 100
        assert round(inside + of["other_wer"] * of["other_words"] / 100) == of["errors"]
