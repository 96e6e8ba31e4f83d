"""What docs/results.md says of language models of AMI's text is what the results have."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.report.results import read_rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/results.md").read_text(encoding="utf-8")
FILE = "egs/ami/RESULTS_classlm_text.md"
[SECTION] = [" ".join(part.split()) for part in PAGE.split("\n## ") if FILE in part]
ROWS = read_rows(ROOT / "egs/ami/results_classlm_text.jsonl")
PPL = {row.system: row.value or 0.0 for row in ROWS if row.metric == "ppl" and not row.group}


def test_the_table() -> None:
    assert len(PPL) == 8
    for text in ("original", "sanitized"):
        cells = [f"{PPL[f'{text}/{model}']:.1f}" for model in ("M1", "M2", "M3", "M4")]
        assert f"| {text} | {' | '.join(cells)} |" in SECTION


def test_the_trigram_of_the_lstm() -> None:
    better = 100 * (1 - PPL["sanitized/M3"] / PPL["sanitized/M1"])
    assert f"is {better:.1f} % better than M1" in SECTION
