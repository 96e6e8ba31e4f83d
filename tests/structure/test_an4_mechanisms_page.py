"""What docs/results.md says of mechanisms of votes on AN4 is what the committed results have."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
MECHANISMS = {
    "Gumbel-max": "gumbel_max_42_8",
    "GNMax": "gnmax_42_8",
    "Confident-GNMax, threshold 60 %": "confident_gnmax_42_8",
    "posteriors with Gaussian noise (eq. 4, 5)": "gaussian_posteriors_42_8",
    "posteriors with Laplace noise (eq. 4, 5)": "laplace_posteriors_42_8",
    "votes without noise": "clean_42",
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(ROOT / "egs/an4/mechanisms.jsonl")


def rates(rows: list[Row]) -> dict[str, float]:
    return {
        row.system.removeprefix("ctc/"): float(row.value)  # type: ignore[arg-type]
        for row in rows
        if (row.metric, row.kind) == ("wer", "score_test") and not row.group
    }


def difference(rows: list[Row], system: str, against: str) -> Row:
    [found] = [
        row
        for row in rows
        if (row.system, row.against) == (f"ctc/{system}", f"ctc/{against}")
        and row.metric == "wer_difference"
    ]
    return found


def test_the_table(rows: list[Row]) -> None:
    found = rates(rows)
    votes = {(row.system, row.metric): row.value for row in rows if row.kind == "labels"}
    for label, system in MECHANISMS.items():
        labels, noise = (votes[f"ctc/{system}", name] for name in ("labels", "vote_noise"))
        assert f"| {label} | {labels:.0f} | {noise:.4g} | {found[system]:.2f} |" in PAGE
    said = "has {:.2f} %, taught by its own guesses {:.2f}, not private {:.2f}; all 42 heads"
    names = ("public", "self_trained", "nonprivate")
    assert said.format(*(found[name] for name in names)) in PAGE
    assert f"mean posteriors (eq. 3), have {found['ensemble_42']:.2f}" in PAGE


def test_significance(rows: list[Row]) -> None:
    best = difference(rows, "gumbel_max_42_8", "public")
    assert f"Gumbel-max is {-best.value:.2f} points better (p = {best.p:.2f} without" in PAGE  # type: ignore[operator]
    noisy = [
        difference(rows, f"{kind}_posteriors_42_8", "public") for kind in ("gaussian", "laplace")
    ]
    said = "by {:.2f} and {:.2f} points (p = {:.3f} and {:.3f} after Holm)"
    assert said.format(*(row.value for row in noisy), *(row.p_holm for row in noisy)) in PAGE
    for system in MECHANISMS.values():
        row = difference(rows, system, "public")
        assert not (float(row.value) < 0 and (row.p_holm or 1.0) < 0.05)  # type: ignore[arg-type]
    private = [system for system in MECHANISMS.values() if system != "clean_42"]
    gains = [-float(difference(rows, system, "self_trained").value) for system in private]  # type: ignore[arg-type]
    assert f"votes gain {min(gains):.1f} to {max(gains):.1f} points" in PAGE
