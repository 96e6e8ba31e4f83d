"""What docs/results.md says of AN4 without public speech of its own is what the results have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "egs/an4_prompts"
PAGE = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def people() -> list[Row]:
    return read_rows(FOLDER / "people.jsonl")


@pytest.fixture(scope="module")
def result() -> list[Row]:
    return read_rows(FOLDER / "results_dpsgd.jsonl")


def values(rows: list[Row], metric: str, kind: str = "score_test") -> dict[str, float]:
    """Figures of whole parts by system and item, without ``ctc/``."""
    return {
        f"{row.system.removeprefix('ctc/')} {row.item}".strip(): float(row.value)  # type: ignore[arg-type]
        for row in rows
        if (row.metric, row.kind) == (metric, kind) and not row.group
    }


def test_the_table(people: list[Row]) -> None:
    rates, law = values(people, "wer"), values(people, "projected_wer", "projection")
    for label, system in (
        ("epsilon 1", "dpsgd_1"),
        ("epsilon 4", "dpsgd_4"),
        ("epsilon 8", "dpsgd_8"),
        ("without noise", "dpsgd_inf"),
        ("not private, all weights", "nonprivate"),
    ):
        cells = [f"{rates[f'{system}{some}']:.2f}" for some in ("_10people", "_25people", "")]
        projected = law.get(f"{system} 250")
        cells.append("–" if projected is None else f"{projected:.2f}")
        assert f"| {label} | {' | '.join(cells)} |" in PAGE
    public = rates["public"]
    gap = public - rates["nonprivate"]
    closed = [round(100 * (public - law[f"dpsgd_{epsilon} 250"]) / gap) for epsilon in (8, 4)]
    assert (
        "close {} % of the gap between {:.2f} and {:.2f}, and at epsilon 4 {} %".format(
            closed[0], public, rates["nonprivate"], closed[1]
        )
        in PAGE
    )


def test_both_tables_are_of_the_same_models(people: list[Row], result: list[Row]) -> None:
    found = values(result, "wer")
    assert len(found) == 7 and found.items() <= values(people, "wer").items()


def test_significance_and_audits(result: list[Row]) -> None:
    pairs = {
        (row.system.removeprefix("ctc/"), row.against.removeprefix("ctc/")): row
        for row in result
        if row.metric == "wer_difference" and row.against
    }
    eight, four = pairs["dpsgd_8", "self_trained"], pairs["dpsgd_4", "self_trained"]
    said = (
        "gain {:.2f} points on where they began** (p = {:.3f} after Holm), and at epsilon 4 {:.2f}"
    )
    assert said.format(-eight.value, eight.p_holm, -four.value) in PAGE
    assert f"(p = {four.p_holm:.3f})" in PAGE
    plain = pairs["dpsgd_8", "public"]
    assert f"gain {-plain.value:.2f}, which is not significant** (p = {plain.p:.2f}" in PAGE
    assert pairs["dpsgd_1", "public"].p_holm > 0.05 < pairs["dpsgd_1", "self_trained"].p_holm
    lower = values(result, "audit_lower", "audit")
    shown = [lower[f"dpsgd_{epsilon} units with marks"] for epsilon in (8, 4, 1)]
    assert "find {:.2f} of epsilon 8, {:.2f} of 4, and {:.2f} of 1".format(*shown) in PAGE


def test_the_other_beginning() -> None:
    lines = (FOLDER / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    rates = {row["system"]: row["test_wer"] for row in map(json.loads, lines)}
    clean, noisy = rates["DP-SGD, epsilon inf"], rates["DP-SGD, epsilon 8"]
    assert f"even without noise: {clean:.2f} %, at epsilon 8 {noisy:.2f}" in PAGE
