"""Bounds by marks stand under sound claims and exceed them where the noise is divided."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.errors import DataError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.audit.canaries import CanaryConfig, audit_canaries
from privasr_k2.privacy.sampling import PoissonSampling

DELTA = 1e-5


def config(marks: int = 500, guesses: float = 0.25, broken: float = 10.0) -> CanaryConfig:
    return CanaryConfig(marks, guesses, broken, confidence=0.95)


def run_sums(inside: np.ndarray, coordinates: np.ndarray, share: float) -> np.ndarray:
    """Poisson batches of marks as long as the clip, with noise, as DP-SGD releases them."""
    rng = np.random.default_rng(len(inside))
    is_in = np.isin(coordinates, inside)
    scores = np.zeros(len(coordinates))
    for _ in range(40):
        drawn = is_in & (rng.random(len(coordinates)) < 0.2)
        scores += drawn + share * rng.normal(size=len(coordinates))
    return scores


def test_marks_stand_under_the_claim_and_exceed_it_broken() -> None:
    event = PoissonSampling(0.2).event(events.gaussian(1.0), 40, Relation.ADD_OR_REMOVE_ONE)
    epsilon = account(event, Relation.ADD_OR_REMOVE_ONE, DELTA).value
    given = dict(size=5000, delta=DELTA, seed=1, config=config(marks=2000))
    found = audit_canaries(run_sums, claimed_epsilon=epsilon, **given)
    lower = found["epsilon_lower"]
    assert 0 < lower["sound"] < epsilon and lower["broken"] > lower["sound"]
    less = audit_canaries(run_sums, claimed_epsilon=lower["sound"] / 2, **given)
    assert less["verdict"] == "exceeds the claim"
    given["config"] = config(marks=2000, broken=50.0)
    small = audit_canaries(run_sums, claimed_epsilon=2.0, **given)
    assert small["epsilon_lower"]["broken"] > 2.0


def test_processes_agree_on_who_is_in() -> None:
    """As the second of two processes, which is told the leader's marks and not its own."""
    leaders = np.array([0, 3, 4])
    inside = []

    def run(own: np.ndarray, coordinates: np.ndarray, share: float) -> np.ndarray:
        inside.append(own.tolist() == coordinates[leaders].tolist())
        return run_sums(own, coordinates, share)

    given = dict(size=5000, claimed_epsilon=1.0, delta=DELTA, seed=1, config=config())
    audit_canaries(run, agree=lambda own: leaders, **given)
    assert inside == [True] * 3


def test_bad_input() -> None:
    with pytest.raises(DataError, match="marks"):
        audit_canaries(run_sums, size=10, claimed_epsilon=1.0, delta=DELTA, seed=1, config=config())
    for wrong in ({"marks": 1}, {"guesses": 0.0}, {"broken": 1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            config(**wrong)
