from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from scipy.stats import skewnorm

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit.bounds import AuditBound, Verdict, judge
from privasr_k2.privacy.audit.exposure import (
    bound_in_one_run,
    bound_over_runs,
    exposure,
    extrapolated_exposure,
    ranks,
)

SPACE, CANARIES, CONFIDENCE = 200, 400, 1 - 1e-7
# The bound in one run pays CANARIES * DELTA of its error.
DELTA = 1e-10


def _ranks(sigma: float) -> np.ndarray:
    """Counts of all candidates of each canary, of which one unit raises one by 1, with Gaussian
    noise.

    The same figures serve as one release of all canaries, and as one release for each.
    """
    losses = sigma * np.random.default_rng(4).normal(size=(CANARIES, SPACE))
    losses[:, 0] -= 1  # the secrets are uniform: which candidate it is makes no difference
    return ranks(losses[:, 0], losses[:, 1:])


def _over_runs(sigma: float, top: int) -> AuditBound:
    return bound_over_runs(_ranks(sigma), space=SPACE, top=top, delta=DELTA, confidence=CONFIDENCE)


def _in_one_run(sigma: float, top: int) -> AuditBound:
    return bound_in_one_run(_ranks(sigma), space=SPACE, top=top, delta=DELTA, confidence=CONFIDENCE)


@pytest.mark.parametrize(("audit", "top"), [(_over_runs, 1), (_over_runs, 2), (_in_one_run, 1)])
def test_sound_broken_and_without_noise(audit: object, top: int) -> None:
    assert callable(audit)
    claim = get_epsilon_gaussian(2.0, DELTA)
    sound, broken, noise_free = (audit(sigma, top) for sigma in (2.0, 0.2, 0.0))
    assert sound.epsilon_lower < claim / 2
    assert broken.epsilon_lower > claim
    assert noise_free.epsilon_lower == noise_free.largest_possible > claim
    verdict = judge(
        sound, broken=broken, noise_free=noise_free, claimed_epsilon=claim, claimed_delta=DELTA
    )
    assert verdict is Verdict.STANDS_UNDER


def test_a_leak_shows_in_a_sound_release_too() -> None:
    assert _over_runs(0.7, 1).epsilon_lower > 0.5
    assert _in_one_run(0.7, 1).epsilon_lower > 0.2


def test_many_runs_show_more_than_as_many_canaries_in_one() -> None:
    assert _over_runs(0.2, 1).epsilon_lower > _in_one_run(0.2, 1).epsilon_lower


def test_ranks_and_ties() -> None:
    found = ranks([1.0, 1.0, 1.0, 9.0], [[2.0, 3.0], [1.0, 3.0], [1.0, 1.0], [1.0, np.inf]])
    np.testing.assert_array_equal(found, [1, 2, 3, 2])


def test_a_model_that_tells_nothing_apart_has_no_exposure() -> None:
    rank = ranks(np.ones(5), np.ones((5, 63)))
    np.testing.assert_array_equal(exposure(rank, space=64), np.zeros(5))


def test_exposure_by_hand() -> None:
    np.testing.assert_allclose(
        exposure([1, 2, 50], space=100), [math.log2(100), math.log2(50), 1.0], rtol=1e-14
    )


@pytest.mark.parametrize("shape", [-3.0, 0.0, 3.0])
def test_extrapolation_finds_the_bits_of_a_skew_normal(shape: float) -> None:
    sample = skewnorm.rvs(
        shape, loc=40, scale=5, size=20_000, random_state=np.random.default_rng(8)
    )
    bits = np.array([1.0, 5.0, 10.0, 20.0])
    losses = skewnorm.ppf(2.0**-bits, shape, loc=40, scale=5)
    np.testing.assert_allclose(extrapolated_exposure(losses, sample), bits, rtol=0.1)


def test_extrapolation_agrees_with_ranks_where_both_apply() -> None:
    candidates = np.random.default_rng(2).normal(30, 4, size=4095)
    canaries = np.quantile(candidates, [0.5, 0.1, 0.01])
    ranked = exposure(ranks(canaries, np.tile(candidates, (3, 1))), space=4096)
    np.testing.assert_allclose(extrapolated_exposure(canaries, candidates), ranked, atol=0.3)


def test_runs_by_hand() -> None:
    # All of 30 canaries first: rate_low = 0.05^(1/30), and the guess at random is right once in
    # 1000.
    found = bound_over_runs([1] * 30, space=1000, top=1, delta=0.01, confidence=0.95)
    low = 0.05 ** (1 / 30)
    assert found.epsilon_lower == pytest.approx(math.log((low - 0.01) * 1000), rel=1e-12)
    # With a large top the missing failures show more.
    low = 0.05 ** (1 / 300)
    found = bound_over_runs([1] * 300, space=10, top=9, delta=0.01, confidence=0.95)
    assert found.epsilon_lower == pytest.approx(math.log((0.1 - 0.01) / (1 - low)), rel=1e-12)


def test_one_run_by_hand() -> None:
    # p^20 + 20 delta = 0.05 with p = e^(2 eps) / (e^(2 eps) + 99)
    p = (0.05 - 20 * 1e-4) ** (1 / 20)
    found = bound_in_one_run([1] * 20, space=100, top=1, delta=1e-4, confidence=0.95)
    assert found.epsilon_lower == pytest.approx(math.log(99 * p / (1 - p)) / 2, abs=1e-8)
    assert (
        bound_in_one_run([1] * 20, space=100, top=1, delta=0.01, confidence=0.95).epsilon_lower == 0
    )


@pytest.mark.parametrize("bound", [bound_over_runs, bound_in_one_run])
def test_ranks_by_chance_show_nothing(bound: object) -> None:
    assert callable(bound)
    rank = np.arange(100) + 1
    for top in (1, 10, 99):
        assert bound(rank, space=100, top=top, delta=0.0, confidence=0.95).epsilon_lower == 0


@pytest.mark.parametrize("bound", [bound_over_runs, bound_in_one_run])
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
def test_bounds_that_cannot_be_had_are_refused(
    bound: object, changed: dict[str, object], place: str
) -> None:
    assert callable(bound)
    given = {"rank": [1, 2], "space": 10, "top": 1, "delta": 0.0, "confidence": 0.95} | changed
    with pytest.raises(PrivacyError) as raised:
        bound(given.pop("rank"), **given)
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


@pytest.mark.parametrize(
    "sample", [np.arange(99.0), np.full(200, 3.0), np.append(np.arange(200.0), np.inf)]
)
def test_a_sample_that_cannot_be_fitted_is_refused(sample: np.ndarray) -> None:
    with pytest.raises(PrivacyError, match=r"^candidate_losses"):
        extrapolated_exposure([1.0], sample)
