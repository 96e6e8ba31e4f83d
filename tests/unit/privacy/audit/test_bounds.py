from __future__ import annotations

import math
from dataclasses import replace

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit.bounds import AuditBound, Verdict, compare, judge

BOUND = AuditBound(0.5, 0.95, 1e-5, 4.0, 300, "one run")
CLAIM = {"claimed_epsilon": 2.0, "claimed_delta": 1e-5}


@pytest.mark.parametrize(
    ("epsilon_lower", "claimed_epsilon", "verdict"),
    [
        (0.5, 2.0, Verdict.STANDS_UNDER),
        (2.0, 2.0, Verdict.STANDS_UNDER),
        (2.1, 2.0, Verdict.EXCEEDS),
        (0.1, 0.0, Verdict.EXCEEDS),
        (0.5, 4.0, Verdict.TOO_FEW_TRIALS),
        (4.0, 4.0, Verdict.TOO_FEW_TRIALS),
    ],
)
def test_a_bound_beside_a_claim(
    epsilon_lower: float, claimed_epsilon: float, verdict: Verdict
) -> None:
    bound = replace(BOUND, epsilon_lower=epsilon_lower)
    assert compare(bound, claimed_epsilon=claimed_epsilon, claimed_delta=1e-5) is verdict


@pytest.mark.parametrize(
    ("sound", "broken", "noise_free", "verdict"),
    [
        (0.5, 2.1, 4.0, Verdict.STANDS_UNDER),
        (0.5, 2.1, 0.0, Verdict.WEAK_ATTACK),
        (0.5, 2.0, 4.0, Verdict.WEAK_ATTACK),
        (0.0, 0.0, 0.0, Verdict.WEAK_ATTACK),
        (2.1, 0.0, 0.0, Verdict.EXCEEDS),
    ],
)
def test_an_audit_counts_only_if_it_finds_what_is_there(
    sound: float, broken: float, noise_free: float, verdict: Verdict
) -> None:
    bounds = [replace(BOUND, epsilon_lower=epsilon) for epsilon in (sound, broken, noise_free)]
    assert judge(bounds[0], broken=bounds[1], noise_free=bounds[2], **CLAIM) is verdict


def test_too_few_canaries_are_named_before_the_attack_is_blamed() -> None:
    bound = replace(BOUND, epsilon_lower=0.0)
    large = {"claimed_epsilon": 5.0, "claimed_delta": 1e-5}
    assert judge(bound, broken=bound, noise_free=bound, **large) is Verdict.TOO_FEW_TRIALS


@pytest.mark.parametrize(
    "changed", [{"method": "exposure"}, {"trials": 301}, {"confidence": 0.9}, {"delta": 1e-6}]
)
def test_another_attack_is_not_compared(changed: dict[str, object]) -> None:
    with pytest.raises(PrivacyError, match="broken: expected the same attack"):
        judge(BOUND, broken=replace(BOUND, **changed), noise_free=BOUND, **CLAIM)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="noise_free: expected the same attack"):
        judge(BOUND, broken=BOUND, noise_free=replace(BOUND, **changed), **CLAIM)  # type: ignore[arg-type]


def test_a_claim_at_another_delta_is_refused() -> None:
    with pytest.raises(PrivacyError, match="claimed_delta: expected the delta of the audit, 1e-05"):
        compare(BOUND, claimed_epsilon=1.0, claimed_delta=1e-6)


@pytest.mark.parametrize("claimed", [-0.1, math.nan, math.inf])
def test_a_claim_that_is_no_epsilon_is_refused(claimed: float) -> None:
    with pytest.raises(PrivacyError, match="claimed_epsilon"):
        compare(BOUND, claimed_epsilon=claimed, claimed_delta=1e-5)


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon_lower": -0.1},
        {"epsilon_lower": 4.1},
        {"epsilon_lower": math.nan},
        {"largest_possible": math.inf},
        {"confidence": 1.0},
        {"confidence": 0.0},
        {"delta": 1.0},
        {"delta": -1e-5},
        {"trials": 0},
    ],
)
def test_a_bound_that_no_audit_can_have_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(PrivacyError, match=next(iter(changed))):
        replace(BOUND, **changed)  # type: ignore[arg-type]


def test_a_bound_of_zero_is_printed_with_what_could_have_been_shown() -> None:
    assert "could have shown 4" in str(replace(BOUND, epsilon_lower=0.0))
