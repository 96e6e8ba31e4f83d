"""privacy_plan and ledger from the command line."""

from __future__ import annotations

import dataclasses
import json

import pytest

from privasr_k2.privacy import events, release
from tests.support.made_spending import COUNTS
from tests.support.verbs import run

PLAN = ("--privacy-unit", "speaker", "--num-units", "74", "--client-fraction", "0.1")
PLAN += ("--delta", "1e-5")


def test_the_command_of_the_documents(tmp_path):
    out = tmp_path / "plan.json"
    text = run("privacy_plan", *PLAN, "--rounds", "100", "--noise", "1.0", "--out-plan", str(out))
    assert "epsilon (RDP) 7.90" in text and "epsilon (PLD) 7.05" in text
    assert json.loads(out.read_text())["epsilon_pld"] == pytest.approx(7.05, abs=0.01)
    assert "for epsilon 3, noise 1.67" in run("privacy_plan", *PLAN, "--rounds 100 --epsilon 3")


def test_values_by_set_are_those_of_a_recipe():
    by_flags = run("privacy_plan", *PLAN, "--rounds", "100", "--noise", "1.0")
    values = ("privacy_unit=speaker", "num_units=74", "client_fraction=0.1", "delta=1e-5")
    values += ("rounds=100", "noise=1.0")
    assert run("privacy_plan", "--set", *values) == by_flags


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*PLAN, "--rounds", "100", "--noise", "1.0", "--max-epsilon", "5"), "max_epsilon"),
        (("--privacy-unit speaker --num-units 74 --delta 0.1 --rounds 1 --noise 1",), "1/units"),
        (("--num-units", "74", "--delta", "1e-5"), "--privacy-unit"),
        (("--unit", "speaker"), "--privacy-unit"),
        (("--units=74",), "--num-units"),
        (("--set", "rate=0.1"), "client_fraction="),
        ((*PLAN, "--rounds 100 --noise 1 --person-units 0"), "person_units"),
        ((*PLAN, "--noise", "strong", "--rounds", "1"), "noise"),
        ((*PLAN, "--cohorts", "3"), "--cohorts"),
    ],
)
def test_bad_plans_end_with_code_2(arguments, message):
    assert message in run("privacy_plan", *arguments, code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--in-path or --ledger"),
        (("--ledger", "nothing.json"), "nothing.json"),
        (("--in-path", "/"), "recipe"),
    ],
)
def test_bad_reports_end_with_code_2(arguments, message):
    assert message in run("ledger", *arguments, code=2)


def test_a_report_on_one_release_counts_what_bares_the_same_people(tmp_path):
    ledger = tmp_path / "privacy" / "ledger.json"
    bare = dataclasses.replace(COUNTS, data="mini/train and mini/adapt", event=events.unprotected())
    for name, spending in (("counts", COUNTS), ("text", bare)):
        beside = tmp_path / name / "privacy.json"
        with release.begin(
            ledger, beside=beside, spending=spending, fingerprint=name, max_epsilon=None
        ) as begun:
            begun.finish()
    said = run(f"ledger --in-path {tmp_path}/counts/privacy.json --ledger {ledger}")
    guarantees = [line for line in said.splitlines() if not line.startswith("  each ")]
    assert any(line.startswith("mini/train: epsilon infinite") for line in guarantees)
    assert "mini/adapt: epsilon" not in " ".join(guarantees)
