"""From counts to answers: loops as oracles, caps, thresholds, and noise that is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privasr_k2.pate.mechanisms import Setting, make_setting
from privasr_k2.pate.noisy_answers import (
    UNANSWERED,
    noisy_posteriors,
    noisy_winners,
    on_simplex,
    winners,
)
from privasr_k2.pate.plan import winning_chance
from privasr_k2.randomness import NoiseStream, noise_stream
from tests.support.small_pate import mechanism


def ties(name: str = "ties") -> NoiseStream:
    return noise_stream(bytes(32), name)


def setting(available: int, **changes: object) -> Setting:
    config = mechanism(**changes)
    pool = dict(teachers=10, available=available, largest_weight=1.0, utterances=available)
    return make_setting(config, **pool)


def random_rows(seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 4, size=rng.integers(1, 6)) for _ in range(40)]


def flat(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(rows), np.array([len(row) for row in rows])


def test_winners_are_the_first_of_the_largest():
    rows = random_rows()
    assert winners(*flat(rows)).tolist() == [int(row.argmax()) for row in rows]
    assert winners(np.zeros(0), np.zeros(0, int)).tolist() == []


def test_the_simplex_is_reached_on_the_shortest_way():
    rng = np.random.default_rng(2)
    rows = [rng.normal(size=size) for size in (1, 2, 3, 5, 9)]
    found = np.split(on_simplex(*flat(rows)), np.cumsum([1, 2, 3, 5])[:4])
    for row, own in zip(rows, found):
        levels = np.linspace(row.min() - 2, row.max(), 400_001)
        misses = [np.maximum(row - level, 0).sum() - 1 for level in levels[::40]]
        level = levels[40 * np.abs(misses).argmin()]
        assert np.abs(own - np.maximum(row - level, 0)).max() < 1e-3
        assert abs(own.sum() - 1) < 1e-12 and own.min() >= 0


def test_without_noise_the_cap_is_kept():
    rows = random_rows()
    clean = setting(40, epsilon=np.inf, noise=0.0, max_answers=7)
    found = noisy_winners(*flat(rows), clean, None)
    assert found[:7].tolist() == [int(row.argmax()) for row in rows[:7]]
    assert set(found[7:]) == {UNANSWERED}


@pytest.mark.parametrize("name", ["gnmax", "lnmax", "gumbel_max"])
def test_answers_come_as_often_as_is_planned(name):
    number, row = 4000, np.array([6, 3, 1])
    made = setting(10, mechanism=name, noise=3.0, epsilon=1e4)
    made = replace(made, max_answers=number, max_queries=number)
    found = noisy_winners(np.tile(row, number), np.full(number, 3), made, ties())
    for first in range(3):
        turned = [int(row[first]), *(int(row[k]) for k in range(3) if k != first)]
        wanted = winning_chance(turned, name, 3.0)
        assert abs((found == first).mean() - wanted) < 5 * (wanted * (1 - wanted) / number) ** 0.5


@pytest.mark.parametrize("name", ["gnmax", "gumbel_max"])
def test_ties_are_broken_at_random(name):
    number = 2000
    made = setting(10, mechanism=name, noise=0.05, epsilon=1e6)
    made = replace(made, max_answers=number, max_queries=number)
    found = noisy_winners(np.tile([5, 5], number), np.full(number, 2), made, ties())
    assert 0.44 < found.mean() < 0.56


def test_the_check_asks_all_and_answers_what_passes_up_to_the_cap():
    counts = np.tile([9, 1, 0, 5, 5, 0], 50)
    checked = dict(mechanism="confident_gnmax", noise=0.1, threshold=7.0, epsilon=1e6)
    sure = setting(100, threshold_ratio=0.5, max_answers=30, **checked)
    found = noisy_winners(counts, np.full(100, 3), sure, ties())
    assert np.flatnonzero(found != UNANSWERED).tolist() == list(range(0, 60, 2))
    assert set(found[found != UNANSWERED]) == {0}


def test_the_threshold_has_noise_of_its_own():
    checked = dict(mechanism="confident_gnmax", noise=0.1, threshold=7.0, epsilon=1e6)
    made = replace(setting(2000, threshold_ratio=30.0, **checked), max_answers=2000)
    found = noisy_winners(np.tile([6, 2, 2], 2000), np.full(2000, 3), made, ties())
    share = (found != UNANSWERED).mean()
    noise = np.arange(-40, 41)
    chances = np.exp(-(noise**2) / (2 * 3.0**2))
    wanted = chances[noise >= 1].sum() / chances.sum()
    assert abs(share - wanted) < 0.06


@pytest.mark.parametrize("name", ["gaussian_posteriors", "laplace_posteriors"])
def test_posteriors_get_the_noise_that_was_planned(name):
    made = setting(5000, mechanism=name, noise=2.0, epsilon=1e7)
    values = np.tile([7.5, 2.5], 5000)
    found = noisy_posteriors(values, np.full(5000, 2), made, 1.0, ties()) - values
    wanted = 2.0 if name == "gaussian_posteriors" else 2.0 * 2.0**0.5
    assert abs(found.std() / wanted - 1) < 0.05 and abs(found.mean()) < 0.1
    again = noisy_posteriors(values, np.full(5000, 2), made, 1.0, ties()) - values
    assert (found == again).all()  # a killed run draws the same
