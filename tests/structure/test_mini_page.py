"""What docs/results.md says of mini's first pass and of its rescoring is what the results have."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())


def rates(rows: list[Row], part: str = "test") -> dict[str, Row]:
    """WER by label."""
    return {
        row.label: row
        for row in rows
        if (row.metric, row.part, row.group, row.against) == ("wer", part, "", "")
    }


def test_the_first_pass() -> None:
    rows = read_rows(ROOT / "egs/mini/results.jsonl")
    label = "CTC, one pass"
    test, dev = rates(rows)[label], rates(rows, "dev")[label]
    [worst] = [r.value for r in rows if (r.metric, r.part) == ("speaker_max", "dev")]
    assert f"dev {dev.value:.2f} %, two of its seven voices being hard ({worst:.1f} %" in PAGE
    cells = f"| {test.value:.2f} | {test.low:.2f} to {test.high:.2f} |"
    assert f"| mini (synthetic) | test {cells}" in PAGE


def test_rescoring() -> None:
    rows = read_rows(ROOT / "egs/mini/results_rescore.jsonl")
    found = rates(rows)
    wer = {label: float(row.value) for label, row in found.items()}
    lists, lattices = "{}, N-best lists", "{}, lattices"
    text = "first pass {:.2f} %, LSTM {:.2f} % on the N-best lists and {:.2f} % on whole lattices"
    lstm = (wer[kind.format("lstm")] for kind in (lists, lattices))
    assert text.format(wer["first pass"], *lstm) in PAGE
    transformer = (wer[kind.format("transformer")] for kind in (lists, lattices))
    both = wer[lists.format("all LMs")]
    text = "Transformer {:.2f} and {:.2f} %, all LMs interpolated {:.2f} %"
    assert text.format(*transformer, both) in PAGE
    p = {
        row.label: float(row.p_holm)
        for row in rows
        if row.metric == "wer_difference" and row.p_holm is not None
    }
    ngram = lists.format("ngram")
    assert all((value < 0.001) == (label != ngram) for label, value in p.items())
    assert f"is worse, {wer[ngram]:.2f} % (p = {p[ngram]:.3f})" in PAGE
    assert f"The oracle of the lists has {wer['N-best oracle']:.2f} %." in PAGE
    best = found[lists.format("all LMs")]
    cells = f"| {best.value:.2f} | {best.low:.2f} to {best.high:.2f} |"
    assert f"| mini, all LMs interpolated | test {cells}" in PAGE
    auc, nce = (
        [float(row.value) for row in rows if row.metric == metric]
        for metric in ("confidence_auc", "nce")
    )
    assert f"an AUC of {auc[0]:.3f} and an NCE of {nce[0]:.3f}" in PAGE
    assert f"harder than test, {nce[1]:.3f}; the network" in PAGE
    assert f"worse than they are ({auc[2]:.3f} and {nce[2]:.3f})" in PAGE
