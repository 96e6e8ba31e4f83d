"""Holm's correction against hand-made values, the step-down procedure, and its promise."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.scoring.holm import holm


def test_holm_by_hand() -> None:
    # [holm1979]'s steps: 4 * 0.005, 3 * 0.01, 2 * 0.03, 1 * 0.04, none below the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_rejects_what_the_step_down_procedure_rejects() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        p_values = rng.random(rng.integers(1, 9)) ** 3
        rejected, level = set(), 0.05
        for step, i in enumerate(np.argsort(p_values)):
            if p_values[i] > level / (len(p_values) - step):
                break
            rejected.add(int(i))
        adjusted = holm(p_values.tolist())
        assert {i for i, p in enumerate(adjusted) if p is not None and p <= level} == rejected


def test_holm_keeps_its_promise_where_nothing_differs() -> None:
    rng = np.random.default_rng(2)
    wrong = sum(
        min(p for p in holm(rng.random(10).tolist()) if p is not None) < 0.05 for _ in range(2000)
    )
    assert 0.035 < wrong / 2000 < 0.065  # uncorrected: 0.4
