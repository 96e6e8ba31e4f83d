"""What docs/results.md says of mini's 600 people is what the results have."""

from __future__ import annotations

import math

from privasr_k2.report.results import read_rows
from tests.support.pages import ROOT, rates, words_of

NOISES = {"1.14": 600, "0.57": 1200, "0.38": 1800}


def test_six_hundred_people_and_what_more_of_them_would_gain() -> None:
    page = words_of("docs/results.md")
    rows = read_rows(ROOT / "egs/mini/results_fedlm_600.jsonl")
    wer = rates(rows)
    ppl = {row.system: row.value for row in rows if row.metric == "ppl" and not row.against}
    pairs = {
        (row.system, row.against): float(row.p_holm)
        for row in rows
        if row.metric == "wer_difference" and row.p_holm is not None
    }
    first = float(wer["pretrained"].value)
    assert f"| no adaptation | {ppl['pretrained']:.1f} | {first:.2f} | | |" in page
    epsilon = {z: math.ceil(100 * wer[f"fl_all_noise_{z}"].person_epsilon) / 100 for z in NOISES}
    labels = {
        "dev": "on the server, half of public dev",
        "server_all": "on the server, all transcripts",
        "fl_all": "federated, without noise",
        "fl_all_noise_1.14": f"600 people, epsilon {epsilon['1.14']:.2f} for each",
        "fl_all_noise_0.57": "noise of 1,200 people",
        "fl_all_noise_0.38": "noise of 1,800 people",
    }
    changes = {}
    for system, label in labels.items():
        changes[system] = 100 * (float(wer[system].value) / first - 1)
        p = pairs[system, "pretrained"]
        shown = "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")
        figures = (
            f"{ppl[system]:.1f} | {wer[system].value:.2f} | {changes[system]:+.1f} | {shown} |"
        )
        assert f"| {label} | {figures}" in page
    assert changes["fl_all_noise_1.14"] > -2 > changes["fl_all_noise_0.57"]
    [clients] = {row.value for row in rows if (row.kind, row.metric) == ("privacy", "units")}
    assert all(float(z) * people / clients == 1.14 for z, people in NOISES.items())
    text = "for these 600 the epsilon is {:.2f} and {:.2f}."
    assert text.format(epsilon["0.57"], epsilon["0.38"]) in page
    assert epsilon["1.14"] <= 8
    text = "{:.2f} 600 people gain {:.1f} %, and {:.1f} % with the noise of 1,200."
    gains = [-changes[f"fl_all_noise_{z}"] for z in ("1.14", "0.57")]
    assert text.format(epsilon["1.14"], *gains) in page
    assert pairs["fl_all_noise_1.14", "dev"] < 0.001
    p = f"{pairs['fl_all_noise_0.38', 'dev']:.3f}".removeprefix("0")
    assert f"that of 1,800 is not told apart from it (p = {p})" in page
    audit = {row.metric: row.value for row in rows if row.item == "marks in updates"}
    text = "at least {:.2f} of the claimed {:.2f}, and {:.2f} with a tenth of the noise"
    bounds = audit["audit_lower"], epsilon["1.14"], audit["audit_broken"]
    assert text.format(*bounds) in page
    row = wer["fl_all_noise_1.14"]
    assert f"| {row.low:.2f} to {row.high:.2f} | 54 min" in page
    choose = words_of("docs/choose.md")
    text = "[600 people gained {:.1f} % in WER at epsilon 8]"
    assert text.format(gains[0]) in choose
    assert f"and the noise of 1,200 would leave {gains[1]:.1f}." in choose
