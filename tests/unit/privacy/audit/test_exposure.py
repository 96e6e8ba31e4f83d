from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit.bounds import AuditBound, Verdict, judge
from privasr_k2.privacy.audit.exposure import (
    bound_in_one_run,
    bound_of_replacing,
    exposure,
    ranks,
)

SPACE, CANARIES, CONFIDENCE = 200, 400, 1 - 1e-7
# The bound in one run pays CANARIES * DELTA of its error.
DELTA = 1e-10


def _ranks(sigma: float) -> np.ndarray:
    """Ranks by noisy counts of each canary's candidates, one of which a unit raises by 1."""
    losses = sigma * np.random.default_rng(4).normal(size=(CANARIES, SPACE))
    losses[:, 0] -= 1  # the secrets are uniform: which candidate it is makes no difference
    return ranks(losses[:, 0], losses[:, 1:])


def _audit(sigma: float) -> AuditBound:
    return bound_in_one_run(_ranks(sigma), space=SPACE, top=1, delta=DELTA, confidence=CONFIDENCE)


def test_sound_broken_and_without_noise() -> None:
    claim = get_epsilon_gaussian(2.0, DELTA)
    sound, broken, free = _audit(2.0), _audit(0.2), _audit(0.0)
    assert sound.epsilon_lower < claim / 2 and broken.epsilon_lower > claim
    assert free.epsilon_lower == free.largest_possible > claim
    claims = {"claimed_epsilon": claim, "claimed_delta": DELTA}
    assert judge(sound, broken=broken, noise_free=free, **claims) is Verdict.STANDS_UNDER
    assert _audit(0.7).epsilon_lower > 0.2  # a leak shows in a sound release too


def test_ranks_and_ties() -> None:
    found = ranks([1.0, 1.0, 1.0, 9.0], [[2.0, 3.0], [1.0, 3.0], [1.0, 1.0], [1.0, np.inf]])
    np.testing.assert_array_equal(found, [1, 2, 3, 2])


def test_a_model_that_tells_nothing_apart_has_no_exposure() -> None:
    rank = ranks(np.ones(5), np.ones((5, 63)))
    np.testing.assert_array_equal(exposure(rank, space=64), np.zeros(5))


def test_exposure_by_hand() -> None:
    expected = [math.log2(100), math.log2(50), 1.0]
    np.testing.assert_allclose(exposure([1, 2, 50], space=100), expected, rtol=1e-14)


def test_replacing_by_hand_is_twice_the_bound_of_two_steps() -> None:
    found = bound_of_replacing([1] * 19 + [7], space=100, top=1, confidence=0.95)
    two = bound_in_one_run([1] * 19 + [7], space=100, top=1, delta=0.0, confidence=0.95)
    assert found.epsilon_lower == pytest.approx(2 * two.epsilon_lower) and found.epsilon_lower > 5


@pytest.mark.parametrize("keep", [0.02, 0.2, 0.6])
def test_replacing_stands_under_randomized_response_and_near_it(keep: float) -> None:
    """A word of 100 is kept, else drawn: its outcome is the best guess, at epsilon exactly."""
    rng = np.random.default_rng(7)
    secrets, drawn = rng.integers(100, size=(2, 20_000))
    outcomes = np.where(rng.random(20_000) < keep, secrets, drawn)
    rank = np.where(outcomes == secrets, 1, 2)
    claim = math.log(1 + 100 * keep / (1 - keep))
    found = bound_of_replacing(rank, space=100, top=1, confidence=1 - 1e-6)
    assert 0.8 * claim < found.epsilon_lower < claim


def test_one_run_by_hand() -> None:
    # p^20 + 20 delta = 0.05 with p = e^(2 eps) / (e^(2 eps) + 99)
    p = (0.05 - 20 * 1e-4) ** (1 / 20)
    found = bound_in_one_run([1] * 20, space=100, top=1, delta=1e-4, confidence=0.95)
    assert found.epsilon_lower == pytest.approx(math.log(99 * p / (1 - p)) / 2, abs=1e-8)
    found = bound_in_one_run([1] * 20, space=100, top=1, delta=0.01, confidence=0.95)
    assert found.epsilon_lower == 0


@pytest.mark.parametrize("top", [1, 10, 99])
def test_ranks_by_chance_show_nothing(top: int) -> None:
    found = bound_in_one_run(np.arange(100) + 1, space=100, top=top, delta=0.0, confidence=0.95)
    assert found.epsilon_lower == 0


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"rank": []}, "rank"),
        ({"rank": [1.0, 2.0]}, "rank"),
        ({"rank": [1, 0]}, "rank[1]"),
        ({"rank": [11, 2]}, "rank[0]"),
        ({"space": 1}, "space"),
        ({"top": 0}, "top"),
        ({"top": 10}, "top"),
        ({"delta": -0.1}, "delta"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_bounds_that_cannot_be_had_are_refused(changed: dict[str, object], place: str) -> None:
    given = {"rank": [1, 2], "space": 10, "top": 1, "delta": 0.0, "confidence": 0.95} | changed
    with pytest.raises(PrivacyError) as raised:
        bound_in_one_run(**given)  # type: ignore[arg-type]
    assert raised.value.place == place


@pytest.mark.parametrize(
    ("canaries", "candidates", "place"),
    [
        ([1.0], [1.0, 2.0], "candidate_losses"),
        ([1.0, 2.0], [[1.0, 2.0]], "candidate_losses"),
        ([1.0], [[1.0, np.nan]], "candidate_losses[0, 1]"),
        ([np.nan], [[1.0, 2.0]], "canary_losses[0]"),
        ([], [[1.0, 2.0]], "canary_losses"),
        ([1.0], np.zeros((1, 0)), "candidate_losses"),
    ],
)
def test_losses_that_cannot_be_ranked_are_refused(
    canaries: list[float], candidates: object, place: str
) -> None:
    with pytest.raises(PrivacyError) as raised:
        ranks(canaries, candidates)  # type: ignore[arg-type]
    assert raised.value.place == place
