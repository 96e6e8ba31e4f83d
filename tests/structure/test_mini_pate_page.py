"""What docs/results.md says of mini_pate in a graph is what the committed results have."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "egs/mini_pate"


def rates(rows: list[Row]) -> dict[str, float]:
    """WER on test by system."""
    return {
        row.system: float(row.value)
        for row in rows
        if row.metric == "wer" and row.part == "test" and not row.group and not row.against
    }


def test_acoustic_models_and_words_in_the_graph() -> None:
    page = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    tuned = rates(read_rows(FOLDER / "results_dpsgd.jsonl"))
    names = ("ctc/public", "ctc/nonprivate", "ctc/dpsgd_8")
    text = "public {:.2f} %, not private {:.2f} %, DP-SGD at epsilon 8 {:.2f} %"
    assert text.format(*(tuned[name] for name in names)) in page
    words = rates(read_rows(FOLDER / "results_wordvotes.jsonl"))
    names = ("public", "nonprivate", "eps_8")
    text = "public words {:.2f} %, all private words {:.2f} %, words by votes at epsilon 8 {:.2f} %"
    assert text.format(*(words[name] for name in names)) in page
