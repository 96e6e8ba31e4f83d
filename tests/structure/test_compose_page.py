"""What docs/results.md says of mini compose is what its results have."""

from __future__ import annotations

from privasr_k2.report.results import read_rows
from tests.support.pages import ROOT, rates, words_of


def test_error_rates_and_costs_of_one_system() -> None:
    page = words_of("docs/results.md")
    rows = read_rows(ROOT / "egs/mini/results_compose.jsonl")
    wer = rates(rows)
    pairs = {
        (row.system, row.against): row.p_holm for row in rows if row.metric == "wer_difference"
    }
    first, neural, federated, personal = (
        float(wer[name].value) for name in ("first_pass", "pretrained", "federated", "personalized")
    )
    text = f"first pass has {first:.2f} %, its lists rescored with a neural LM of the same"
    assert text in page
    p = pairs["pretrained", "first_pass"]
    assert f"sanitized text {neural:.2f} % (p = {p:.3f})" in page
    assert f"on devices of adapt {federated:.2f} %, and personalized {personal:.2f} %." in page
    assert f"the first pass (p = {pairs['personalized', 'first_pass']:.3f})" in page
    assert f"gives alone (p = {pairs['personalized', 'pretrained']:.3f})" in page
    assert pairs["personalized", "first_pass"] < 0.05 < pairs["personalized", "pretrained"]
    best = wer["personalized"]
    assert f"| {personal:.2f} | {best.low:.2f} to {best.high:.2f} |" in page
    cost = {row.system: row for row in rows if row.kind == "privacy" and row.metric == "epsilon"}
    text = "{:.1f} (1e-6) for replacing one utterance's names of train, {:.1f} (1e-5) for each of 7"
    assert text.format(cost["sanitized_text"].value, cost["federated"].value) in page
    assert f"{cost['personalized'].value:.3f} (1e-6) for a user of test" in page
    # Their acoustic model is of the speech that the released text is about.
    assert not {"first_pass", "pretrained"} & cost.keys()
