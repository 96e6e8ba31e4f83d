from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit.bounds import AuditBound, Verdict, judge
from privasr_k2.privacy.audit.intervals import epsilon_lower
from privasr_k2.privacy.audit.threshold import best_threshold, split_bound

DELTA, CONFIDENCE = 1e-5, 1 - 1e-7


def _runs(sigma: float, seed: int = 1, runs: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Releases of a sum that one unit changes by 1, with Gaussian noise of ``sigma``."""
    noise = sigma * np.random.default_rng(seed).normal(size=(2, runs))
    return 1 + noise[0], noise[1]


def _split(sigma: float) -> AuditBound:
    return split_bound(*_runs(sigma), delta=DELTA, confidence=CONFIDENCE)


def test_sound_broken_and_without_noise() -> None:
    claim = get_epsilon_gaussian(2.0, DELTA)
    sound, broken, free = _split(2.0), _split(0.2), _split(0.0)
    assert 0.2 < sound.epsilon_lower < claim < broken.epsilon_lower
    assert free.epsilon_lower == free.largest_possible > 6
    claims = {"claimed_epsilon": claim, "claimed_delta": DELTA}
    assert judge(sound, broken=broken, noise_free=free, **claims) is Verdict.STANDS_UNDER


def test_the_threshold_is_not_chosen_where_it_is_judged() -> None:
    # The halves disagree: what separates the first half perfectly says nothing on the second.
    first = np.arange(100.0)
    runs = np.concatenate([100 + first, first]), np.tile(first, 2)
    found = split_bound(*runs, delta=0.0, confidence=0.95)
    assert found.epsilon_lower == 0
    assert found.trials == 200


def test_no_half_is_used_twice() -> None:
    # In the first half the kinds lie apart; in the second, one kind has moved over.
    low, high = np.arange(100.0), 1000 + np.arange(100.0)
    for with_unit, without in (((high, low), (low, low)), ((high, high), (low, high))):
        runs = np.concatenate(with_unit), np.concatenate(without)
        found = split_bound(*runs, delta=0.0, confidence=0.95)
        assert found.epsilon_lower == 0


def test_scores_that_tell_nothing_rarely_show_something() -> None:
    # Taking the best threshold on the judged trials shows something more often than is allowed.
    rng = np.random.default_rng(7)
    shown = chosen_there = 0
    for _ in range(200):
        scores = rng.normal(size=(2, 200))
        shown += split_bound(*scores, delta=0.0, confidence=0.6).epsilon_lower > 0
        cut = best_threshold(*scores, delta=0.0, confidence=0.6)
        counts = [int(np.sum(part >= cut)) for part in scores]
        best = epsilon_lower(*counts, positives=200, negatives=200, delta=0.0, confidence=0.6)
        chosen_there += bool(best > 0)
    # At most 0.4 of 200 is allowed; with the error split over two ends it is far less.
    assert shown < 40
    assert chosen_there > 120


def test_the_best_threshold_of_a_few_by_trying_all() -> None:
    rng = np.random.default_rng(3)
    with_unit, without = rng.integers(0, 6, size=40) + 1.0, rng.integers(0, 6, size=30) + 0.0

    def bound(cut: float) -> float:
        counts = [sum(s >= cut for s in scores) for scores in (with_unit, without)]
        given = {"positives": 40, "negatives": 30, "delta": 0.0, "confidence": 0.9}
        return float(epsilon_lower(*counts, **given))

    found = best_threshold(with_unit, without, delta=0.0, confidence=0.9)
    assert bound(found) == max(bound(cut) for cut in range(8)) > 0


@pytest.mark.parametrize(
    ("with_unit", "without", "place"),
    [
        ([], [1.0, 2.0], "scores_with"),
        ([1.0], [1.0, 2.0], "scores_with"),
        ([1.0, 2.0], [0.0], "scores_without"),
        ([1.0, np.nan], [0.0, 1.0], "scores_with[1]"),
        ([1.0, 2.0], ["a", "b"], "scores_without"),
        ([[1.0, 2.0]], [0.0, 1.0], "scores_with"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(
    with_unit: object, without: object, place: str
) -> None:
    with pytest.raises(PrivacyError) as raised:
        split_bound(with_unit, without, delta=0.0, confidence=0.95)  # type: ignore[arg-type]
    assert raised.value.place == place


@pytest.mark.parametrize(
    ("delta", "confidence"), [(-0.1, 0.95), (1.0, 0.95), (0.0, 0.0), (0.0, 1.0)]
)
def test_impossible_options_are_refused(delta: float, confidence: float) -> None:
    with pytest.raises(PrivacyError):
        split_bound([1.0, 2.0], [1.0, 2.0], delta=delta, confidence=confidence)
