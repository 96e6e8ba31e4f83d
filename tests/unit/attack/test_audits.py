"""Bounds on epsilon stand under sound claims and exceed them where the noise is divided."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.attack.settings import VoteAuditConfig
from privasr_k2.attack.vote_audit import (
    VoteClaim,
    audit_lines,
    audit_votes,
    coins_epsilon,
    composed_bound,
    neighbours,
)
from privasr_k2.errors import ConfigError, PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.pate.gnmax import gnmax_event
from privasr_k2.privacy.streams import Drawn
from tests.support.attack_small import loaded

DELTA = 1e-5
SIGMA = 8.0


def claim(answers: int, sigma: float = SIGMA) -> VoteClaim:
    def event(number: int) -> events.Event:
        return gnmax_event(sigma=sigma, answers=number, discrete=False)

    return VoteClaim(event(1), event(answers), answers, DELTA, Relation.ADD_OR_REMOVE_ONE)


RNG = np.random.default_rng(1)


def gnmax(votes: np.ndarray, share: float) -> np.ndarray:
    """Its continuous form: fast."""
    return (votes + SIGMA * share * RNG.normal(size=votes.shape)).argmax(axis=1)


def audit(*overrides: str) -> VoteAuditConfig:
    return loaded(VoteAuditConfig, "audit_pate", *overrides)


def test_votes_stand_under_the_claim_and_exceed_it_broken() -> None:
    found = audit_votes(gnmax, neighbours(15), claim(50), audit("draws=40000"))
    assert found["histograms"] == [[8, 7], [7, 8]]
    for what in ("one_answer", "whole_release"):
        lower, claimed = found[what]["epsilon_lower"], found[what]["claimed_epsilon"]
        assert 0 < lower["sound"] < claimed < lower["broken"] <= lower["noise_free"]
        assert found[what]["verdict"] == "stands under the claim"
    one, whole = (found[what]["epsilon_lower"] for what in ("one_answer", "whole_release"))
    assert whole["sound"] > 10 * one["sound"]
    assert any("stands under" in line for line in audit_lines("tied", found["one_answer"]))


def test_a_broken_release_is_found_out() -> None:
    """As if the code had forgotten to scale the noise of its claim."""

    def broken(votes: np.ndarray, share: float) -> np.ndarray:
        return gnmax(votes, share / 10)

    found = audit_votes(broken, neighbours(15), claim(50), audit("draws=40000"))
    verdicts = {found[what]["verdict"] for what in ("one_answer", "whole_release")}
    assert verdicts == {"exceeds the claim"}


def test_the_labels_are_chosen_that_speak_for_the_first() -> None:
    for pair in (neighbours(15), neighbours(15)[::-1]):
        found = audit_votes(gnmax, pair, claim(50), audit("draws=4000"))
        lower = found["one_answer"]["epsilon_lower"]
        assert lower["broken"] > 1 and lower["noise_free"] > 4


def test_a_release_that_answers_nothing_is_no_success() -> None:
    def mute(votes: np.ndarray, share: float) -> np.ndarray:
        return np.full(len(votes), -1)

    found = audit_votes(mute, neighbours(15), claim(50), audit("draws=1000"))
    assert found["one_answer"]["epsilon_lower"] == {"sound": 0.0, "broken": 0.0, "noise_free": 0.0}
    assert "does not count" in found["one_answer"]["verdict"]


def test_neighbours() -> None:
    assert [one.tolist() for one in neighbours(4)] == [[2, 2], [1, 3]]
    for wrong in (8, 16):
        with pytest.raises(PrivacyError, match="threshold"):
            neighbours(15, threshold=wrong)


def test_bounds_of_coins_grow_with_what_was_seen() -> None:
    def bound(first: int, answers: int) -> float:
        given = {"draws": 1000, "delta": DELTA, "confidence": 0.95}
        return composed_bound(first, 400, answers=answers, **given).epsilon_lower

    assert bound(450, 20) < bound(600, 20) < bound(600, 40) < bound(700, 40)
    assert bound(400, 20) == bound(300, 20) == 0.0
    assert coins_epsilon(0.4, 0.6, 9, DELTA) == 0.0


def test_secrets_differ_from_run_to_run() -> None:
    one, two = Drawn("batches", None), Drawn("batches", None)
    again, other = (made.stream(1).random_bytes(8) for made in (one, two))
    assert one.stream(1).random_bytes(8) == again != other
    assert one.noise(1).random_bytes(8) != one.stream(1).random_bytes(8)


def test_bad_input() -> None:
    for wrong in ("draws=3", "broken=1.0", "confidence=0.0"):
        with pytest.raises(ConfigError, match=wrong.partition("=")[0]):
            audit(wrong)
