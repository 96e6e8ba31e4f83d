from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

from privasr_k2.privacy.audit.bounds import AuditBound, Verdict, judge
from privasr_k2.privacy.audit.intervals import bound_from_counts
from privasr_k2.privacy.audit.two_histograms import choose_event, event_counts

FIRST, SECOND = [51, 50, 3], [50, 51, 3]
CONFIDENCE = 1 - 1e-7
Mechanism = Callable[[np.ndarray, int], np.ndarray]


def _noisy_max(noise: str, scale: float, seed: int = 1) -> Mechanism:
    rng = np.random.default_rng(seed)

    def mechanism(votes: np.ndarray, draws: int) -> np.ndarray:
        drawn = getattr(rng, noise)(size=(draws, votes.size))
        return np.argmax(votes + scale * drawn, axis=1)

    return mechanism


def _audit(
    mechanism: Mechanism, delta: float, draws: int = 40_000, pair: tuple = (FIRST, SECOND)
) -> AuditBound:
    labels = [mechanism(np.array(votes), draws) for votes in pair]
    given = {"delta": delta, "confidence": CONFIDENCE}
    true, false = event_counts(*labels, **given)
    return bound_from_counts(
        true_positives=true, positives=draws // 2, false_positives=false, negatives=draws // 2,
        method="two histograms", **given,
    )  # fmt: skip


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
    sound, broken, free = (_audit(_noisy_max(noise, s), delta) for s in (scale, scale / 10, 0.0))
    assert 0.1 < sound.epsilon_lower < claim < broken.epsilon_lower
    assert free.epsilon_lower == free.largest_possible > 6
    claims = {"claimed_epsilon": claim, "claimed_delta": delta}
    assert judge(sound, broken=broken, noise_free=free, **claims) is Verdict.STANDS_UNDER


@pytest.mark.parametrize("pair", [(FIRST, SECOND), (SECOND, FIRST)])
def test_both_orders_of_the_histograms_find_it(pair: tuple) -> None:
    # The first gives 0 or 1 alike; the second never gives 0. Only "the label is 0" is infinite.
    def gives_away(votes: np.ndarray, draws: int) -> np.ndarray:
        coins = np.random.default_rng(5).random(draws)
        return np.where(coins < 0.1, 0, 1) if votes[0] == 51 else np.ones(draws, dtype=int)

    assert _audit(_noisy_max("laplace", 0.5), 0.0, 4000, pair).epsilon_lower > 1
    assert _audit(gives_away, 0.0, 4000, pair).epsilon_lower > math.log(0.05 / 0.01)


def test_the_event_joins_labels_of_high_ratio() -> None:
    # Each of the labels 0 ... 9 comes three times as often with the first; alone they are too rare.
    first = np.repeat(np.arange(20), [30] * 10 + [10] * 10)
    second = np.repeat(np.arange(20), [10] * 10 + [30] * 10)
    labels = choose_event(first, second, delta=0.0, confidence=0.95)
    np.testing.assert_array_equal(np.sort(labels), np.arange(10))
    labels = choose_event(second, first, delta=0.0, confidence=0.95)
    np.testing.assert_array_equal(np.sort(labels), np.arange(10, 20))


def test_the_labels_are_chosen_on_other_draws_than_they_are_judged_on() -> None:
    # In the first half label 0 gives the first histogram away; in the second nothing does.
    first, second = np.repeat([0, 1], 500), np.ones(1000, dtype=int)
    assert event_counts(first, second, delta=0.0, confidence=0.95) == (0, 0)
