from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from scipy.stats import binom

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit.bounds import AuditBound, Verdict, judge
from privasr_k2.privacy.audit.one_run import (
    bound_from_correct,
    guesses_from_scores,
    inclusion_coins,
    one_run_bound,
    p_value,
)
from privasr_k2.randomness import noise_stream

CANARIES, DELTA, CONFIDENCE = 2000, 1e-6, 0.999


def _audit(sigma: float, *, clip: float = 1.0) -> AuditBound:
    """One release of the sum of canaries, each a direction of its own, of norm 8 unclipped."""
    rng = np.random.default_rng(11)
    coins = rng.random(CANARIES) < 0.5
    release = coins * min(8.0, clip) + sigma * rng.normal(size=CANARIES)
    guesses = guesses_from_scores(release, guess_in=200, guess_out=200)
    return one_run_bound(coins, guesses, delta=DELTA, confidence=CONFIDENCE)


def test_sound_broken_and_without_noise() -> None:
    claim = get_epsilon_gaussian(2.0, DELTA)
    sound, noise_free = _audit(2.0), _audit(0.0)
    # At the claim 9 of 10 guesses would be right; the canaries give away about 7 of 10.
    assert 0.2 < sound.epsilon_lower < claim / 2
    assert noise_free.epsilon_lower == noise_free.largest_possible > claim
    claims = {"claimed_epsilon": claim, "claimed_delta": DELTA}
    for broken in (_audit(0.2), _audit(2.0, clip=math.inf)):
        assert broken.epsilon_lower > claim
        verdict = judge(sound, broken=broken, noise_free=noise_free, **claims)
        assert verdict is Verdict.STANDS_UNDER


def test_a_perfect_attack_on_pure_privacy_by_hand() -> None:
    # (e^eps / (1 + e^eps))^guesses = 0.05
    rate = 0.05 ** (1 / 40)
    found = bound_from_correct(40, guesses=40, canaries=100, delta=0.0, confidence=0.95)
    assert found.epsilon_lower == pytest.approx(math.log(rate / (1 - rate)), abs=1e-8)
    assert found.largest_possible == found.epsilon_lower
    assert found.trials == 100


def test_the_bound_rises_with_right_guesses_and_falls_with_confidence_delta_and_canaries() -> None:
    usual = {"correct": 80, "guesses": 100, "canaries": 500, "delta": 1e-4, "confidence": 0.95}

    def bound(**changed: float) -> float:
        return bound_from_correct(**usual | changed).epsilon_lower  # type: ignore[arg-type]

    rising = [bound(correct=v) for v in range(0, 101, 5)]
    assert rising == sorted(rising)
    assert rising[0] == 0 < rising[-1]
    for falling in (
        [bound(confidence=c) for c in (0.5, 0.9, 0.99, 0.999)],
        [bound(delta=d) for d in (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1)],
        [bound(canaries=m) for m in (100, 200, 1000, 10_000)],
    ):
        assert falling == sorted(falling, reverse=True)
        assert falling[0] > falling[-1]


def test_a_perfect_attack_with_delta_by_hand() -> None:
    # f + (canaries / guesses) delta (1 - f) = 0.05, f = rate^guesses
    share = 3 * 0.01
    rate = ((0.05 - share) / (1 - share)) ** (1 / 50)
    found = bound_from_correct(50, guesses=50, canaries=150, delta=0.01, confidence=0.95)
    assert found.epsilon_lower == pytest.approx(math.log(rate / (1 - rate)), abs=1e-8)


def test_chances_too_small_for_floats() -> None:
    # 2^-5000 and less: what is left is the chance that delta gives all guesses away.
    tiny = p_value(5000, guesses=5000, canaries=10_000, epsilon=0.0, delta=1e-6)
    assert tiny == pytest.approx(2e-6)
    assert p_value(5000, guesses=5000, canaries=5000, epsilon=0.0, delta=0.0) == 0
    # One right guess of 5000 is less than anybody would get.
    assert p_value(1, guesses=5000, canaries=5000, epsilon=3.0, delta=1e-6) == 1
    # The two forms meet where the floats end.
    first_zero = next(v for v in range(2000, 4000) if binom.pmf(v, 4000, 0.5) == 0)
    given = {"guesses": 4000, "canaries": 4000, "epsilon": 0.0, "delta": 1e-3}
    near, beyond = (p_value(first_zero + step, **given) for step in (-10, 1))
    assert 0.98 < beyond / near < 1


def test_a_large_delta_shows_nothing_and_could_show_nothing() -> None:
    found = bound_from_correct(100, guesses=100, canaries=100, delta=0.5, confidence=0.95)
    assert (found.epsilon_lower, found.largest_possible) == (0, 0)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3, 0.01, 0.1])
def test_the_p_value_rises_with_epsilon_and_falls_with_right_guesses(delta: float) -> None:
    given = {"guesses": 100, "canaries": 200, "delta": delta}
    for correct in (60, 75, 99):
        values = [p_value(correct, epsilon=e, **given) for e in np.linspace(0, 6, 61)]
        assert (np.diff(values) >= -1e-15).all()
    by_correct = [p_value(v, epsilon=1.0, **given) for v in range(101)]
    assert (np.diff(by_correct) <= 1e-15).all()
    assert by_correct[0] == 1


@pytest.mark.parametrize(
    ("guess_in", "guess_out", "expected"),
    [(2, 2, [0, 1, -1, 1, -1]), (0, 1, [0, 0, -1, 0, 0]), (5, 0, [1, 1, 1, 1, 1])],
)
def test_guesses_take_the_ends_of_the_scores(
    guess_in: int, guess_out: int, expected: list[int]
) -> None:
    scores = [0.0, np.inf, -np.inf, 5.0, -5.0]
    found = guesses_from_scores(scores, guess_in=guess_in, guess_out=guess_out)
    assert found.tolist() == expected


def test_right_guesses_of_both_kinds_are_counted() -> None:
    coins = np.array([True, True, True, False, False, False])
    guesses = np.array([1, -1, 0, -1, 1, 0])  # right, wrong, none, right, wrong, none
    found = one_run_bound(coins, guesses, delta=0.0, confidence=0.1)
    assert found == bound_from_correct(2, guesses=4, canaries=6, delta=0.0, confidence=0.1)


def test_coins_follow_their_stream_alone() -> None:
    streams = (noise_stream(bytes(32), "audit", n) for n in (1, 1, 2))
    drawn = [inclusion_coins(stream, canaries=100_003) for stream in streams]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert drawn[0].shape == (100_003,)
    # Standard deviation 158 for each count; the streams of two names are independent.
    assert abs(drawn[0].sum() - 50_001) < 6 * 158
    assert abs((drawn[0] == drawn[2]).sum() - 50_001) < 6 * 158


@pytest.mark.parametrize(
    ("correct", "guesses", "canaries", "place"),
    [
        (0, 0, 0, "canaries"),
        (0, 0, 10, "guesses"),
        (0, 11, 10, "guesses"),
        (6, 5, 10, "correct"),
        (-1, 5, 10, "correct"),
        (2.0, 5, 10, "correct"),
    ],
)
def test_counts_that_do_not_fit_are_refused(
    correct: int, guesses: int, canaries: int, place: str
) -> None:
    with pytest.raises(PrivacyError) as raised:
        bound_from_correct(correct, guesses=guesses, canaries=canaries, delta=0.0, confidence=0.95)
    assert raised.value.place == place


@pytest.mark.parametrize(
    ("included", "guesses", "place"),
    [
        ([True, False], [1, 2], "guesses"),
        ([True, False], [1.0, -1.0], "guesses"),
        ([1, 0], [1, -1], "included"),
        ([True], [1, -1], "included"),
        ([True, False], [0, 0], "guesses"),
    ],
)
def test_guesses_and_coins_that_do_not_fit_are_refused(
    included: list[object], guesses: list[float], place: str
) -> None:
    with pytest.raises(PrivacyError) as raised:
        one_run_bound(included, guesses, delta=0.0, confidence=0.95)  # type: ignore[arg-type]
    assert raised.value.place == place


@pytest.mark.parametrize(
    ("scores", "guess_in", "guess_out", "place"),
    [
        ([1.0, 2.0], 2, 1, "guess_out"),
        ([1.0, 2.0], 3, 0, "guess_in"),
        ([1.0, 2.0], 0, 0, "guess_in + guess_out"),
        ([1.0, np.nan], 1, 0, "scores[1]"),
        ([], 1, 0, "scores"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(
    scores: list[float], guess_in: int, guess_out: int, place: str
) -> None:
    with pytest.raises(PrivacyError) as raised:
        guesses_from_scores(scores, guess_in=guess_in, guess_out=guess_out)
    assert raised.value.place == place


@pytest.mark.parametrize(
    ("options", "place"),
    [({"epsilon": -1.0}, "epsilon"), ({"delta": 1.0}, "delta"), ({"epsilon": math.nan}, "epsilon")],
)
def test_no_p_value_without_an_epsilon_and_a_delta(options: dict[str, float], place: str) -> None:
    with pytest.raises(PrivacyError) as raised:
        p_value(1, guesses=1, canaries=1, **({"epsilon": 1.0, "delta": 0.0} | options))
    assert raised.value.place == place
