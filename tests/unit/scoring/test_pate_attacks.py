"""Audits, membership inference and inversion in the report of recipes pate and dpsgd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privasr_k2.attack.inversion_report import examine, report_values
from privasr_k2.attack.membership import of_models, of_teachers
from privasr_k2.attack.settings import InversionReportConfig, MembershipConfig, VoteAuditConfig
from privasr_k2.attack.vote_audit import VoteClaim, audit_votes, neighbours
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.pate.gnmax import gnmax_event
from privasr_k2.scoring.comparisons import holm
from privasr_k2.scoring.pate_attacks import (
    Attacks,
    attack_blocks,
    read_audits,
    read_inversions,
    read_memberships,
)
from privasr_k2.scoring.pate_report import pate_report
from privasr_k2.scoring.pate_results import Name
from privasr_k2.scoring.report import p_text
from tests.unit.attack.attack_small import inversion, loaded, said
from tests.unit.scoring.test_pate_report import OPTIONS, entry, inputs, row_of, scores_of

PRIVATE = Name("rnnt", "gnmax_15_8")


def bound(claimed: float = 8.0, **lower: float) -> dict[str, Any]:
    """A bound as audits write it."""
    return {
        "claimed_epsilon": claimed, "delta": 1e-5, "confidence": 0.95,
        "epsilon_lower": {"sound": 2.96, "broken": 53.1, "noise_free": 67.3, **lower},
        "largest_possible": 67.34, "trials": 20000, "verdict": "stands under the claim",
    }  # fmt: skip


def audit(folder: Path, name: Name, content: dict[str, Any]) -> Path:
    path = folder / name.model / name.system / "audit.json"
    write_json(path, content)
    return path


def labels(**bounds: dict[str, Any]) -> dict[str, Any]:
    return {"mechanism": "gnmax", **{pair: {"whole_release": one} for pair, one in bounds.items()}}


def test_bounds_stand_beside_the_claims(tmp_path: Path) -> None:
    scores = scores_of(tmp_path, rnnt__public="many", rnnt__gnmax_15_8="few", rnnt__dpsgd_8="some")
    trained = Name("rnnt", "dpsgd_8")
    paths = [
        audit(tmp_path, PRIVATE, labels(tied=bound(), at_threshold=bound(sound=3.5))),
        audit(tmp_path, trained, bound(7.9, sound=1.25, broken=4.0)),
    ]
    found = Attacks(audits=read_audits(paths))
    entries = {PRIVATE: entry(2.0), trained: entry(3.0)}
    text = pate_report(inputs(scores, entries, attacks=found), OPTIONS)
    claims = [row_of(text, "## What is guaranteed", f"RNN-T: {name}") for name in ("GNMax", "DP-SGD")]
    assert [row["epsilon at least, by audit"] for row in claims] == ["3.5", "1.25"]
    row = row_of(text, "## Audits", "RNN-T: GNMax, 15 teachers, epsilon 8")
    assert (row["attacked"], row["claimed epsilon"], row["at least"]) == ("votes tied", "8.00", "2.96")
    assert (row["a tenth of the noise"], row["without noise"], row["could show"]) == ("53.1", "67.3", "67.3")
    assert (row["confidence"], row["trials"], row["delta"]) == ("95 %", "20,000", "1e-05")
    row = row_of(text, "## Audits", "RNN-T: DP-SGD, epsilon 8")
    assert (row["attacked"], row["claimed epsilon"], row["at least"]) == ("units with marks", "7.91", "1.25")
    assert "0 of 3 bounds are above the claim; with a tenth of the noise 2 of 3 are." in text
    assert "refuted" not in text and "bound no epsilon" not in text
    paths = [audit(tmp_path, PRIVATE, labels(tied=bound(sound=8.1)))]
    text = "".join(attack_blocks(Attacks(audits=read_audits(paths))))
    assert "**Above the claim**, which is refuted: RNN-T: GNMax, 15 teachers, epsilon 8." in text


def test_nothing_is_said_where_nothing_was_attacked(tmp_path: Path) -> None:
    scores = scores_of(tmp_path, rnnt__public="many", rnnt__gnmax_15_8="few")
    text = pate_report(inputs(scores, {PRIVATE: entry(2.0)}), OPTIONS)
    assert "audit" not in text.lower() and "attack" not in text.lower()


def test_an_audit_as_it_is_made(tmp_path: Path) -> None:
    claim = VoteClaim(
        gnmax_event(sigma=4.0, answers=1, discrete=True),
        gnmax_event(sigma=4.0, answers=3, discrete=True), 3, 1e-5, Relation.ADD_OR_REMOVE_ONE,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    config = VoteAuditConfig(draws=200, broken=10.0, confidence=0.95)
    found = audit_votes(
        lambda votes, share: (votes + rng.normal(size=votes.shape) * 4.0 * share).argmax(1),
        neighbours(15), claim, config,
    )  # fmt: skip
    [[read]] = read_audits([audit(tmp_path, PRIVATE, {"tied": found})]).values()
    whole = found["whole_release"]
    assert (read.sound, read.broken) == (whole["epsilon_lower"]["sound"], whole["epsilon_lower"]["broken"])
    assert (read.claimed, read.trials) == (whole["claimed_epsilon"], 200)


def test_members_and_shards_as_they_are_inferred(tmp_path: Path) -> None:
    config = loaded(MembershipConfig, "membership")
    rng = np.random.default_rng(1)
    roster = {f"s{n}": n % 3 + 1 for n in range(30)}
    losses = {unit: rng.normal(size=3) - 3.0 * np.eye(3)[shard - 1] for unit, shard in roster.items()}
    others = {f"o{n}": rng.normal(size=3) for n in range(20)}
    told = of_teachers(losses, roster, config)
    write_json(tmp_path / "rnnt" / "membership_teachers.json", {"unit": "speaker", "teachers": told})
    gains = of_models(losses, others, ["gnmax_15_8/am", "nonprivate/am"], config, reference=True)
    write_json(tmp_path / "rnnt" / "membership_models.json", {"unit": "speaker", "models": gains})
    shards, members = read_memberships(sorted((tmp_path / "rnnt").glob("*.json")))
    text = "".join(attack_blocks(Attacks(shards=shards, members=members)))
    row = row_of(text, "### Whose speech", "RNN-T, 3 teachers")
    assert (row["speakers"], row["by chance"]) == ("30", "0.333")
    assert row["shard guessed"] == f"{told['right_shard']:.3f}" and told["right_shard"] > 0.5
    assert row["AUC"] == f"{told['auc']:.3f}"
    for label, name in (("RNN-T: GNMax, 15", "gnmax_15_8/am"), ("RNN-T: not private", "nonprivate/am")):
        row, of = row_of(text, "### Who was", label), gains[name]
        assert (row["speakers"], row["others"], row["AUC"]) == ("30", "20", f"{of['auc']:.3f}")
        assert row["TPR at FPR 0.1"] == ("–" if of["tpr"] is None else f"{of['tpr']:.3f}")
    assert gains["gnmax_15_8/am"]["auc"] != gains["nonprivate/am"]["auc"]
    assert "no guarantee covers the tables" in text and "lower bounds" not in text


def test_inversions_as_they_are_reported(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def group(names: str, voice: float) -> dict[str, list[Any]]:
        tilt = np.linspace(0, voice, 30)[:, None] * np.array([[1.0, -1.0]])
        return {"STOP": [said(name, tilt + 0.1 * rng.normal(size=(30, 2))) for name in names for _ in "12"]}

    members, others = group("abcdef", 1.0), group("uvwxyz", -1.0)
    found = [
        inversion("teacher_15_1", {"STOP": members["STOP"][0].features}),
        inversion("control", {"STOP": rng.normal(size=(30, 2))}, control=True),
        inversion("ensemble_15", {"GO": rng.normal(size=(30, 2))}),
    ]
    config = loaded(InversionReportConfig, "report_inversion", "permutations=499")
    results = examine(found, [members] * 3, others, config)
    path = tmp_path / "las" / "inversion_white_box" / "inversion.json"
    write_json(path, report_values(results, config))
    text = "".join(attack_blocks(Attacks(inversions=read_inversions([path]))))
    row = row_of(text, "### Model inversion: white box, LAS", "teacher 1 of 15")
    alone, less = results[0].alone, results[0].less_control
    assert alone is not None and less is not None
    assert row["distance to members"] == f"{alone.member_distance:.4f}"
    assert row["advantage"] == f"{alone.value:+.4f}" and row["members and others"] == "6 and 6"
    assert row["95 % interval"] == f"{alone.low:+.4f} to {alone.high:+.4f}"
    assert row["less control: advantage"] == f"{less.value:+.4f}"
    tests = [test for one in results for test in (one.alone, one.less_control)]
    corrected = holm([None if test is None else test.p_value for test in tests])
    assert row["p (Holm)"] == p_text(corrected[0]) and row["words"] == "STOP"
    assert row_of(text, "### Model", "randomly")["p (Holm)"] == p_text(corrected[2]) != p_text(corrected[0])
    assert row_of(text, "### Model", "randomly")["less control: advantage"] == "–"
    assert row_of(text, "### Model", "ensemble of 15")["members and others"] == "too few to test"
    assert "no bound on epsilon follows from either" in text


@pytest.mark.parametrize(
    "content", [{}, [], {"tied": {}}, {"epsilon_lower": {}}, labels(at_threshold=bound())]
)
def test_what_is_no_audit(tmp_path: Path, content: Any) -> None:
    with pytest.raises(DataError, match="what audit_pate or audit_dpsgd writes"):
        read_audits([audit(tmp_path, PRIVATE, content)])


def test_what_is_no_attack(tmp_path: Path) -> None:
    path = tmp_path / "rnnt" / "x" / "some.json"
    for content in ({}, {"unit": "speaker", "teachers": {}}, {"unit": "speaker", "models": {"clean_3": {}}}):
        write_json(path, content)
        with pytest.raises(DataError, match="what infer_membership writes"):
            read_memberships([path])
    write_json(path, {"unit": "speaker", "models": {"other/am": {}}})
    with pytest.raises(DataError, match="a system"):
        read_memberships([path])
    for content in ({}, {"systems": {}}, {"confidence": 0.95, "systems": {"clean_3": {}}}):
        write_json(path, content)
        with pytest.raises(DataError, match="what report_inversion writes"):
            read_inversions([path])
