"""Bounds of one run by the whole curve of a claim."""

from __future__ import annotations

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.audit.bounds import Verdict, compare
from privasr_k2.privacy.audit.one_run import bound_from_correct
from privasr_k2.privacy.audit.one_run_curve import (
    FACTORS,
    Claim,
    CurveAudit,
    largest_tail,
    lines_of,
)
from privasr_k2.privacy.events import gaussian

AOR = Relation.ADD_OR_REMOVE_ONE
GIVEN = {"delta": 1e-5, "canaries": 400, "guesses": 40, "confidence": 0.95}


def audit_of(noise: float, **changed: float) -> CurveAudit:
    given = {**GIVEN, **changed}
    claim = Claim(lambda factor: gaussian(noise * factor), AOR, given.pop("delta"))
    return CurveAudit(claim, **given)


def test_more_right_guesses_show_more_and_all_right_the_most() -> None:
    audit = audit_of(0.8)
    lower = [audit.bound(correct).epsilon_lower for correct in (0, 20, 30, 36, 40)]
    assert lower == sorted(lower) and lower[0] == lower[1] == 0 < lower[2]
    assert lower[-1] == audit.bound(5).largest_possible


def test_it_shows_more_than_one_epsilon_and_delta() -> None:
    by_point = bound_from_correct(38, **GIVEN)
    by_curve = audit_of(0.8).bound(38)
    assert by_curve.epsilon_lower > 1.2 * by_point.epsilon_lower


def test_a_rejected_claim_is_exceeded() -> None:
    audit = audit_of(2.0)  # epsilon 1.99
    assert audit.p_value(37) < 0.05
    found = audit.bound(37)
    claim = {"claimed_epsilon": audit.claim.epsilon, "claimed_delta": 1e-5}
    assert compare(found, **claim) is Verdict.EXCEEDS
    # 30 of 40 is well within what such noise allows.
    assert audit.p_value(30) > 0.05 and audit.bound(30).epsilon_lower < audit.claim.epsilon


def test_the_bound_is_the_epsilon_of_the_least_noise_that_is_rejected() -> None:
    audit = audit_of(0.8)
    rejected = [factor for factor in FACTORS if audit.p_value(36, factor) <= 0.05]
    assert rejected == [factor for factor in FACTORS if factor >= rejected[0]]
    other = audit_of(0.8 * rejected[0])
    assert audit.bound(36).epsilon_lower == pytest.approx(other.claim.epsilon)


def test_the_chance_falls_with_noise_and_rises_with_canaries() -> None:
    lines = [lines_of(gaussian(noise), AOR) for noise in (0.5, 1.0, 2.0)]
    given = {"guesses": 40, "canaries": 400}
    tails = [largest_tail(34, lines=of, **given) for of in lines]
    assert tails == sorted(tails, reverse=True)
    assert largest_tail(34, guesses=40, canaries=4000, lines=lines[1]) > tails[1]
    assert largest_tail(0, lines=lines[0], **given) == 1.0


@pytest.mark.parametrize(
    "wrong", [{"guesses": 0}, {"canaries": 5, "guesses": 6}, {"delta": 0.0}, {"confidence": 1.0}]
)
def test_bad_input(wrong: dict[str, float]) -> None:
    if "delta" in wrong:
        wrong = {"delta": -0.1}
    with pytest.raises(PrivacyError, match=next(iter(wrong)) if len(wrong) == 1 else "guesses"):
        audit_of(1.0, **wrong)
