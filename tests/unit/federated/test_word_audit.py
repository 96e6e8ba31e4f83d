"""Attacks on votes for words: beneath the claim, and above it where noise is missing."""

from __future__ import annotations

import pytest

from privasr_k2.federated.word_audit import WordAuditConfig, audit_votes
from privasr_k2.privacy.audit.bounds import Verdict
from tests.support.word_votes import mechanism


@pytest.mark.parametrize("settings", [{"epsilon": 2.0}, {"epsilon": 1.0, "max_bigrams": 2}])
def test_the_attack_is_beneath_the_claim_and_tells_a_tenth_of_the_noise(settings) -> None:
    made = mechanism(delta=1e-3, **settings)
    # A bound above a true claim is a chance of 1 in 100,000; how far below it is, is chance.
    found = audit_votes(made, WordAuditConfig(trials=2000, confidence=0.99999))
    assert found.sound.epsilon_lower <= found.claimed
    assert found.broken.epsilon_lower > found.claimed
    assert found.verdict is Verdict.STANDS_UNDER
