"""Bounds by marks stand under sound claims and exceed them where the noise is divided."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.dp_event import ZCDpEvent

from privasr_k2.errors import DataError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.audit.canaries import (
    CanaryConfig,
    CanaryRun,
    audit_canaries,
    log_likelihood_ratio,
)
from privasr_k2.privacy.audit.one_run_curve import Claim
from privasr_k2.privacy.sampling import PoissonSampling

DELTA, AOR, RATE, STEPS = 1e-5, Relation.ADD_OR_REMOVE_ONE, 0.2, 40


def config(marks: int = 500, guesses: float = 0.1, broken: float = 10.0) -> CanaryConfig:
    return CanaryConfig(marks, guesses, broken, confidence=0.95)


def claim(noise: float) -> Claim:
    sampling = PoissonSampling(RATE)
    return Claim(lambda f: sampling.event(events.gaussian(noise * f), STEPS, AOR), AOR, DELTA)


def run_with(noise: float) -> CanaryRun:
    """Poisson batches of marks as long as the clip, with noise, as DP-SGD releases them."""

    def run(inside: np.ndarray, coordinates: np.ndarray, share: float) -> np.ndarray:
        rng = np.random.default_rng(len(inside))
        is_in = np.isin(coordinates, inside)
        scores = np.zeros(len(coordinates))
        for _ in range(STEPS):
            drawn = is_in & (rng.random(len(coordinates)) < RATE)
            sums = drawn + share * noise * rng.normal(size=len(coordinates))
            scores += log_likelihood_ratio(sums, rate=RATE, noise=noise * share)
        return scores

    return run


def test_the_bound_is_a_good_part_of_the_claim_and_exceeds_it_with_less_noise() -> None:
    given = dict(size=5000, seed=1, config=config(marks=2000))
    found = audit_canaries(run_with(1.3), claim=claim(1.3), **given)
    lower, claimed = found["epsilon_lower"], found["claimed_epsilon"]
    assert 5 < claimed < 8
    assert 0.3 * claimed < lower["sound"] < claimed < lower["broken"]
    assert found["verdict"] == "stands under the claim"
    # Half of the noise that is claimed.
    wrong = audit_canaries(run_with(0.65), claim=claim(1.3), **given)
    assert wrong["verdict"] == "exceeds the claim"


def test_without_a_curve_one_epsilon_and_delta_are_audited() -> None:
    zcdp = Claim(lambda f: ZCDpEvent(2.0 / f**2), AOR, DELTA)
    assert not zcdp.has_curve and claim(1.3).has_curve
    found = audit_canaries(run_with(1.3), claim=zcdp, size=5000, seed=1, config=config())
    assert found["method"] == "one run" and found["epsilon_lower"]["noise_free"] > 0


@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_scores_are_the_logarithm_of_the_mixture_of_densities(rate: float) -> None:
    def density(x: float, mean: float) -> float:
        return math.exp(-((x - mean) ** 2) / (2 * 0.7**2))

    for x in (-1.0, 0.3, 2.0):
        mixture = (1 - rate) * density(x, 0.0) + rate * density(x, 1.0)
        [score] = log_likelihood_ratio([3.0 * x], rate=rate, noise=0.7, clip=3.0)
        assert score == pytest.approx(math.log(mixture / density(x, 0.0)))


def test_processes_agree_on_who_is_in() -> None:
    """As the second of two processes, which is told the leader's marks and not its own."""
    leaders = np.array([0, 3, 4])
    inside = []

    def run(own: np.ndarray, coordinates: np.ndarray, share: float) -> np.ndarray:
        inside.append(own.tolist() == coordinates[leaders].tolist())
        return run_with(1.3)(own, coordinates, share)

    given = dict(size=5000, claim=claim(1.3), seed=1, config=config(marks=50))
    audit_canaries(run, agree=lambda own: leaders, **given)
    assert inside == [True] * 3


def test_bad_input() -> None:
    with pytest.raises(DataError, match="marks"):
        audit_canaries(run_with(1.3), size=10, claim=claim(1.3), seed=1, config=config())
    for wrong in ({"marks": 1}, {"guesses": 0.0}, {"broken": 1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            config(**wrong)
