"""What docs/results.md says of SGD is what the results have."""

from __future__ import annotations

import math
from pathlib import Path

from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
PRIVATE = {noise: f"fl_all_from_dev_lora_noise_{noise}" for noise in ("1.5", "0.5", "0.2")}
ROWS = read_rows(ROOT / "egs/sgd/results_fedlm.jsonl")


def rounded_up(row: Row) -> str:
    """The epsilon of a person, as tables show it."""
    assert row.person_epsilon is not None
    digits = 2 if row.person_epsilon < 10 else 1
    return f"{math.ceil(10**digits * row.person_epsilon) / 10**digits:.{digits}f}"


def test_the_table() -> None:
    [section] = [part for part in PAGE.split("## ") if part.startswith("SGD: federated")]
    found = {row.system: row for row in ROWS if row.metric == "ppl" and not row.group}
    values = {system: row.value for system, row in found.items()}
    first = values.pop("pretrained")
    assert f"| pre-trained on books | {first:.1f} | | |" in section
    shown = {
        "dev": "trained on half of public dev",
        **{
            system: f"from there: adapters, noise {noise}, clip 0.3, 1,000 rounds"
            for noise, system in PRIVATE.items()
        },
        "fl_all": "federated without noise, 400 rounds",
        "server_all": "on the server, 5 epochs",
    }
    assert values.keys() == shown.keys()
    for system, label in shown.items():
        change = 100 * (values[system] / first - 1)  # type: ignore[operator]
        cell = f" {rounded_up(found[system])}" if system in PRIVATE.values() else ""
        assert f"| {label} | {values[system]:.1f} | {change:.1f} |{cell} |" in section


def test_the_comparisons() -> None:
    pairs = {(row.system, row.against): row for row in ROWS if row.metric == "ppl_change"}
    behind = pairs["fl_all", "server_all"]
    better = [(pairs[system, "dev"], -1, "is {:.1f} % better") for system in PRIVATE.values()]
    for row, sign, text in ((behind, 1, "is {:.1f} % behind"), *better):
        assert text.format(sign * row.value) in PAGE  # type: ignore[operator]
        ends = sorted(sign * end for end in (row.low, row.high))  # type: ignore[operator]
        assert f"(interval {ends[0]:.1f} to {ends[1]:.1f}" in PAGE
        assert row.p_holm < 0.0035  # type: ignore[operator]
