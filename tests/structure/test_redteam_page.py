"""The table of docs/redteam.md is that of the committed result file."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.report.measures import interval_text, text_of
from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "egs/mini/results_redteam.jsonl"
#: Heading -> metric, and whether its interval is shown.
COLUMNS = {
    "WER %": ("wer", False),
    "claimed epsilon": ("claimed", False),
    "found": ("audit_lower", False),
    "with a tenth of the noise": ("audit_broken", False),
    "LM: found": ("lm_lower", False),
    "LM: with a tenth": ("lm_broken", False),
    "AUC": ("auc", False),
    "AUC - blind": ("beyond_blind", True),
    "perturbed AUC - blind": ("perturbed_beyond_blind", True),
    "canaries, bits": ("canary_exposure", False),
    "with LM, bits": ("fused_exposure", False),
    "silenced, bits": ("silenced_exposure", False),
    "true name %": ("true_name", False),
    "names beyond strangers', bits": ("name_beyond", True),
}


def cell(rows: list[Row], label: str, metric: str, interval: bool) -> str:
    """A figure of one system as reports show it; a dash where it has none."""
    found = [
        row
        for row in rows
        if (row.label, row.metric, row.item, row.group, row.against) == (label, metric, "", "", "")
    ]
    if not found:
        return "–"
    value = text_of(metric, found[0].value)
    ends = interval_text(metric, found[0].low, found[0].high)
    return f"{value} ({ends})" if interval else value


def table(rows: list[Row]) -> str:
    """The table of the page in Markdown."""
    labels = dict.fromkeys(row.label for row in rows if row.method not in ("recipe", "fedlm"))
    lines = [["setting", *COLUMNS], ["---", *("---:" for _ in COLUMNS)]]
    for label in labels:
        lines.append([label, *(cell(rows, label, *column) for column in COLUMNS.values())])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def test_the_table_is_that_of_the_results() -> None:
    rows = read_rows(RESULTS)
    page = (ROOT / "docs/redteam.md").read_text(encoding="utf-8")
    shown = table(rows)
    assert shown.count("\n") == 2 + 5  # public, not private, clipped, epsilon 8 and 1
    assert shown in page


def test_every_broken_variant_is_found() -> None:
    """A tenth of the claimed noise exceeds the claim; the claimed noise does not."""
    rows = read_rows(RESULTS)
    kinds = (("claimed", "audit_lower", "audit_broken"), ("lm_claimed", "lm_lower", "lm_broken"))
    for metrics in kinds:
        claimed, lower, broken = (
            {row.label: row.value for row in rows if row.metric == metric and not row.item}
            for metric in metrics
        )
        assert len(claimed) == 2
        for label, claim in claimed.items():
            assert isinstance(claim, float)
            assert lower[label] <= claim < broken[label], label
