"""What docs/results.md says of mini's first pass and of its rescoring is what the results have."""

from __future__ import annotations

from privasr_k2.report.results import read_rows
from tests.support.pages import ROOT, rates, words_of

PAGE = words_of("docs/results.md")


def test_the_first_pass() -> None:
    rows = read_rows(ROOT / "egs/mini/results.jsonl")
    [test], [dev] = (rates(rows, part).values() for part in ("test", "dev"))
    [worst] = [r.value for r in rows if (r.metric, r.part) == ("speaker_max", "dev")]
    assert f"dev {dev.value:.2f} %, two of its seven voices being hard ({worst:.1f} %" in PAGE
    cells = f"| {test.value:.2f} | {test.low:.2f} to {test.high:.2f} |"
    assert f"| mini (synthetic) | test {cells}" in PAGE


def test_rescoring() -> None:
    rows = read_rows(ROOT / "egs/mini/results_rescore.jsonl")
    found = rates(rows)
    wer, dev = (
        {name: float(row.value) for name, row in rates(rows, part).items()}
        for part in ("test", "dev")
    )
    text = "first pass {:.2f} %, LSTM {:.2f} % on the N-best lists and {:.2f} % on whole lattices"
    assert text.format(*(wer[name] for name in ("first_pass", "lstm", "lattice_lstm"))) in PAGE
    text = "Transformer {:.2f} and {:.2f} %, all LMs interpolated {:.2f} %"
    names = ("transformer", "lattice_transformer", "all")
    assert text.format(*(wer[name] for name in names)) in PAGE
    p = {
        row.system: float(row.p_holm)
        for row in rows
        if row.metric == "wer_difference" and row.p_holm is not None
    }
    assert {name for name, value in p.items() if value >= 0.001} == {"ngram"}
    text = "is worse, {:.2f} % (p = {:.3f}), though better on dev ({:.2f} for {:.2f} %)."
    assert text.format(wer["ngram"], p["ngram"], dev["ngram"], dev["first_pass"]) in PAGE
    assert f"The oracle of the lists has {wer['oracle']:.2f} %." in PAGE
    best = found["all"]
    cells = f"| {best.value:.2f} | {best.low:.2f} to {best.high:.2f} |"
    assert f"| mini, all LMs interpolated | test {cells}" in PAGE
    auc, nce = (
        [float(row.value) for row in rows if row.metric == metric]
        for metric in ("confidence_auc", "nce")
    )
    assert f"an AUC of {auc[0]:.3f} and an NCE of {nce[0]:.3f}" in PAGE
    assert f"harder than test, {nce[1]:.3f}; the network" in PAGE
    assert f"worse than they are ({auc[2]:.3f} and {nce[2]:.3f})" in PAGE
