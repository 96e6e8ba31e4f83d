"""The sum that no unit moves by more than the clip."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.dpsgd import unit_sum
from privasr_k2.dpsgd.unit_sum import UnitSum

CPU = torch.device("cpu")


def summed(rows: torch.Tensor, clip: float | None) -> torch.Tensor:
    total = UnitSum(rows.size(1), clip, CPU)
    total.add([rows[:, :2], rows[:, 2:]])
    return total.values()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=5, max_size=5), min_size=1, max_size=6),
    st.floats(1e-6, 1e3),
)
def test_removing_any_row_moves_it_by_the_clip_at_most(rows: list[list[float]], clip: float) -> None:
    made = torch.tensor(rows)
    whole = summed(made, clip)
    for left_out in range(len(rows)):
        kept = [place for place in range(len(rows)) if place != left_out]
        moved = whole - (summed(made[kept], clip) if kept else 0)
        squares = sum(Fraction(value) ** 2 for value in moved.tolist())
        assert squares <= Fraction(clip) ** 2  # exactly: without any rounding


def test_short_rows_are_as_they_are_and_long_ones_have_their_direction() -> None:
    rows = torch.tensor([[0.3, -0.4, 0.0], [30.0, 0.0, -40.0]])
    np.testing.assert_allclose(summed(rows[:1], 1.0), rows[0], atol=1e-9)
    np.testing.assert_allclose(summed(rows[1:], 1.0), [0.6, 0.0, -0.8], atol=1e-8)
    np.testing.assert_allclose(summed(rows, None), rows.double().sum(0), atol=1e-7)


def test_neither_order_nor_company_changes_a_bit() -> None:
    rows = torch.randn(40, 3, generator=torch.Generator().manual_seed(1)) * torch.logspace(-6, 6, 40)[:, None]
    one_by_one = UnitSum(3, 0.1, CPU)
    for row in rows.flip(0):
        one_by_one.add([row[None, :2], row[None, 2:]])
    assert torch.equal(one_by_one.values(), summed(rows, 0.1)) and one_by_one.count == 40


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.randn(7, 9)
    expected = summed(rows, 0.1)
    monkeypatch.setattr(unit_sum, "_BLOCK", 5)
    assert torch.equal(summed(rows, 0.1), expected)


def test_rows_that_are_not_finite_add_nothing() -> None:
    rows = torch.tensor([[1.0, 0.0, 0.0], [float("nan"), 1.0, 1.0], [float("inf"), 0.0, 0.0]])
    total = UnitSum(3, 5.0, CPU)
    total.add([rows])
    assert total.values().tolist() == [1.0, 0.0, 0.0] and (total.count, total.left_out) == (1, 2)
