from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit.bounds import AuditBound, Verdict, judge
from privasr_k2.privacy.audit.two_histograms import Mechanism, choose_event, two_histograms_bound

FIRST, SECOND = [51, 50, 3], [50, 51, 3]
CONFIDENCE = 1 - 1e-7


def _noisy_max(noise: str, scale: float, seed: int = 1) -> Mechanism:
    rng = np.random.default_rng(seed)

    def mechanism(votes: np.ndarray, draws: int) -> np.ndarray:
        drawn = getattr(rng, noise)(size=(draws, votes.size))
        return np.argmax(votes + scale * drawn, axis=1)

    return mechanism


def _audit(mechanism: Mechanism, delta: float) -> AuditBound:
    return two_histograms_bound(
        mechanism, FIRST, SECOND, draws=40_000, delta=delta, confidence=CONFIDENCE
    )


@pytest.mark.parametrize(
    ("noise", "scale", "delta", "claim"),
    [
        # One vote moved: two counts by one each.
        ("normal", 4.0, 1e-5, get_epsilon_gaussian(4 / math.sqrt(2), 1e-5)),
        ("laplace", 5.0, 0.0, 2 / 5),
    ],
)
def test_sound_broken_and_without_noise(
    noise: str, scale: float, delta: float, claim: float
) -> None:
    sound, broken, noise_free = (
        _audit(_noisy_max(noise, s), delta) for s in (scale, scale / 10, 0.0)
    )
    assert 0.1 < sound.epsilon_lower < claim
    assert broken.epsilon_lower > claim
    assert noise_free.epsilon_lower == noise_free.largest_possible > 6
    verdict = judge(
        sound, broken=broken, noise_free=noise_free, claimed_epsilon=claim, claimed_delta=delta
    )
    assert verdict is Verdict.STANDS_UNDER


def test_both_orders_of_the_histograms_find_it() -> None:
    mechanism = _noisy_max("laplace", 0.5)
    for first, second in ((FIRST, SECOND), (SECOND, FIRST)):
        found = two_histograms_bound(
            mechanism, first, second, draws=4000, delta=0.0, confidence=CONFIDENCE
        )
        assert found.epsilon_lower > 1


def test_an_answer_that_gives_the_second_away_is_found() -> None:
    # The first gives 0 or 1 alike; the second never gives 0. Only "the label is 0", a small set, is
    # infinite.
    def mechanism(votes: np.ndarray, draws: int) -> np.ndarray:
        coins = np.random.default_rng(5).random(draws)
        return np.where(coins < 0.1, 0, 1) if votes[0] == 51 else np.ones(draws, dtype=int)

    for first, second in ((FIRST, SECOND), (SECOND, FIRST)):
        found = two_histograms_bound(
            mechanism, first, second, draws=4000, delta=0.0, confidence=0.999
        )
        assert found.epsilon_lower > math.log(0.05 / 0.01)


def test_the_event_joins_labels_of_high_ratio() -> None:
    # Each of the labels 0 ... 9 comes three times as often with the first; alone they are too rare.
    first = np.repeat(np.arange(20), [30] * 10 + [10] * 10)
    second = np.repeat(np.arange(20), [10] * 10 + [30] * 10)
    labels = choose_event(first, second, delta=0.0, confidence=0.95)
    np.testing.assert_array_equal(np.sort(labels), np.arange(10))
    labels = choose_event(second, first, delta=0.0, confidence=0.95)
    np.testing.assert_array_equal(np.sort(labels), np.arange(10, 20))


def test_the_labels_are_chosen_on_other_draws_than_they_are_judged_on() -> None:
    calls: list[int] = []

    def mechanism(votes: np.ndarray, draws: int) -> np.ndarray:
        calls.append(draws)
        # In the first two calls label 0 gives the first histogram away; in the last two nothing
        # does.
        return np.full(draws, votes[0] == 50 if len(calls) <= 2 else 1, dtype=int)

    found = two_histograms_bound(mechanism, FIRST, SECOND, draws=1000, delta=0.0, confidence=0.95)
    assert calls == [500] * 4
    assert found.epsilon_lower == 0
    assert found.trials == 1000


@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        ([5, 3], [5, 3], "second"),
        ([5, 3], [3, 5], "second"),
        ([5, 3], [6, 4], "second"),
        ([5, 3, 1], [4, 4, 2], "second"),
        ([5, 3], [5, 3, 1], "second"),
        ([[5, 3]], [[4, 4]], "second"),
        ([5.5, 3], [4.5, 4], "histograms[0]"),
        ([5, 0], [6, -1], "histograms[1]"),
        ([1, 0], [0, 0], "histograms[1]"),
    ],
)
def test_histograms_that_are_no_neighbours_are_refused(
    first: object, second: object, place: str
) -> None:
    with pytest.raises(PrivacyError) as raised:
        two_histograms_bound(
            _noisy_max("normal", 1.0),
            first,  # type: ignore[arg-type]
            second,  # type: ignore[arg-type]
            draws=10,
            delta=0.0,
            confidence=0.95,
        )
    assert raised.value.place == place


@pytest.mark.parametrize("second", [[4, 4], [4, 3], [5, 4]])
def test_a_vote_changed_withdrawn_or_added_is_a_neighbour(second: list[int]) -> None:
    found = two_histograms_bound(
        _noisy_max("normal", 1.0), [5, 3], second, draws=10, delta=0.0, confidence=0.95
    )
    assert found.trials == 10


@pytest.mark.parametrize(
    "answer", [np.zeros(4), np.zeros((5, 1), dtype=int), np.zeros(6, dtype=int)]
)
def test_a_mechanism_without_labels_is_refused(answer: np.ndarray) -> None:
    with pytest.raises(PrivacyError, match=r"^mechanism"):
        two_histograms_bound(
            lambda votes, draws: answer, [5, 3], [4, 4], draws=10, delta=0.0, confidence=0.95
        )


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"draws": 0}, "draws"),
        ({"draws": 11}, "draws"),
        ({"delta": 1.0}, "delta"),
        ({"confidence": 0.0}, "confidence"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, float], place: str) -> None:
    given = {"draws": 10, "delta": 0.0, "confidence": 0.95} | options
    with pytest.raises(PrivacyError) as raised:
        two_histograms_bound(_noisy_max("normal", 1.0), [5, 3], [4, 4], **given)  # type: ignore[arg-type]
    assert raised.value.place == place
