"""What docs/results.md says of DP-SGD on AN4 is what the committed results have."""

from __future__ import annotations

import json
from pathlib import Path

from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())


def rows(name: str) -> list[Row]:
    return read_rows(ROOT / "egs/an4" / name)


def rates(found: list[Row]) -> dict[str, float]:
    """WER on test by system, without ``ctc/``."""
    return {
        row.system.removeprefix("ctc/"): float(row.value)  # type: ignore[arg-type]
        for row in found
        if (row.metric, row.kind) == ("wer", "score_test") and not row.group
    }


def trained(found: list[Row]) -> set[int]:
    return {int(row.value) for row in found if row.metric == "trained_parameters"}  # type: ignore[arg-type]


def test_the_table() -> None:
    norms, output = rates(rows("people.jsonl")), rates(rows("people_output.jsonl"))
    for label, kind in (
        ("epsilon 1", "dpsgd_1"),
        ("epsilon 4", "dpsgd_4"),
        ("epsilon 8", "dpsgd_8"),
        ("without noise", "dpsgd_inf"),
        ("not private, all weights", "nonprivate"),
    ):
        cells = [norms[f"{kind}{some}"] for some in ("_10people", "_25people", "")]
        shown = " | ".join(f"{cell:.2f}" for cell in (*cells, output[kind]))
        assert f"| {label} | {shown} |" in PAGE
    assert f"The public model has {norms['public']:.2f} %" in PAGE
    gap, gained = norms["public"] - norms["nonprivate"], norms["public"] - norms["dpsgd_inf"]
    assert f"close {100 * gained / gap:.0f} % of it" in PAGE
    assert f"epsilon 1,000 has {output['dpsgd_1000']:.2f} %" in PAGE


def test_parts_and_significance() -> None:
    for name in ("people.jsonl", "people_output.jsonl"):
        found = rows(name)
        [number] = trained(found)
        assert f"({number:,}" in PAGE
        pairs = [row for row in found if row.against and row.metric == "wer_difference"]
        claims = [row for row in pairs if "dpsgd_" in row.system]
        better = [row for row in claims if float(row.value) < 0 and (row.p_holm or 1.0) < 0.05]  # type: ignore[arg-type]
        assert claims and not better


def test_how_many_people_the_noise_is_of() -> None:
    """Noise of a mean by 42 people at epsilon 1,000, and that of 1,000 at epsilon 8."""
    noise = {
        row.system: float(row.value)  # type: ignore[arg-type]
        for row in rows("people_output.jsonl")
        if row.metric == "noise_multiplier"
    }
    people = 42 * noise["ctc/dpsgd_8"] / noise["ctc/dpsgd_1000"]
    assert round(people, -2) == 1000, people


def test_trials_before_them() -> None:
    lines = (ROOT / "egs/an4/trials.jsonl").read_text(encoding="utf-8").splitlines()
    public, output, norms, block, most, taught = (json.loads(line) for line in lines)
    on_dev = [f"{row['dev_wer']:.2f}" for row in (public, output, norms, block, most)]
    text = (
        "public {} %, output layer {}, norms and biases {}, last block {}, norms, biases and output"
    )
    assert f"{text} layer {{}})".format(*on_dev) in PAGE
    assert f"public model ({taught['test_wer']:.2f} %)" in PAGE
