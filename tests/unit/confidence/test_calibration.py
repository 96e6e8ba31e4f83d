"""Calibration: what is fitted is the best of its kind, increasing, and never certain."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.confidence.calibration import (
    AUTO,
    IDENTITY,
    ISOTONIC,
    NONE,
    PLATT,
    Calibrator,
    fit,
    isotonic,
    platt,
    sigmoid,
)
from privasr_k2.randomness import stream


def words(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds that are too large by a factor of 3 and an offset of 1."""
    generator = stream(1, "calibration")
    true = generator.normal(1.0, 1.5, number)
    return 3 * true + 1, generator.random(number) < sigmoid(true)


def test_platt_finds_the_sigmoid() -> None:
    scores, correct = words(50_000)
    found = platt(scores, correct)
    assert found.x[0] == pytest.approx(1 / 3, rel=0.03)
    assert found.y[0] == pytest.approx(-1 / 3, abs=0.03)
    probabilities, share = found(scores), correct.mean()
    assert probabilities.mean() == pytest.approx(share, abs=1e-3)
    # The gradient is 0 at the maximum, with Platt's targets.
    right = correct.sum()
    targets = np.where(correct, (right + 1) / (right + 2), 1 / (len(correct) - right + 2))
    assert abs(((probabilities - targets) * scores).mean()) < 1e-4


def test_platt_of_words_that_can_be_parted_stays_finite() -> None:
    found = platt(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
    values = found(np.array([-1000.0, -1.0, 1.0, 1000.0]))
    assert np.isfinite(values).all() and (np.diff(values) >= 0).all() and 0.2 < values[2] < 0.95


def test_platt_never_turns_scores_round() -> None:
    scores, correct = words(2_000)
    found = platt(-scores, correct)
    values = found(np.array([-5.0, 0.0, 5.0]))
    assert values == pytest.approx(np.full(3, correct.mean()), abs=1e-3)


def test_isotonic_is_increasing_and_never_certain() -> None:
    scores, correct = words(4_000)
    found = isotonic(scores, correct)
    assert (np.diff(found.y) >= 0).all() and (np.diff(found.x) > 0).all()
    assert found.y[0] > 0 and found.y[-1] < 1
    assert found(np.array([-1e9, 1e9])).tolist() == [found.y[0], found.y[-1]]
    assert np.abs(found(scores) - sigmoid((scores - 1) / 3)).mean() < 0.03


def test_isotonic_squares_are_least() -> None:
    """Of all increasing functions on five points, by trying a grid of them."""
    scores = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    correct = np.array([False, True, False, True, True])
    found = isotonic(scores, correct)(scores)
    extended = np.array([0, 0, 1, 2, 3, 4, 4])
    truth = np.array([1, 0, 1, 0, 1, 1, 0])
    loss = ((found[extended] - truth) ** 2).sum()
    grid = np.linspace(0, 1, 13)
    tried = np.stack(np.meshgrid(*[grid] * 5, indexing="ij"), axis=-1).reshape(-1, 5)
    tried = tried[(np.diff(tried, axis=1) >= 0).all(axis=1)]
    assert loss <= ((tried[:, extended] - truth) ** 2).sum(axis=1).min() + 1e-12


def test_few_words_are_calibrated_by_a_sigmoid() -> None:
    scores, correct = words(100)
    assert fit(AUTO, scores, correct, isotonic_from=101).kind == PLATT
    assert fit(AUTO, scores, correct, isotonic_from=100).kind == ISOTONIC
    assert fit(NONE, scores, correct, isotonic_from=1).kind == NONE
    assert fit(PLATT, scores, correct, isotonic_from=1).kind == PLATT
    assert IDENTITY(np.array([0.0, 800.0, -800.0])).tolist() == [0.5, 1.0, 0.0]
    calibrator = Calibrator(PLATT, np.array([2.0]), np.array([1.0]))
    assert calibrator(np.array([-0.5])) == pytest.approx([0.5])
