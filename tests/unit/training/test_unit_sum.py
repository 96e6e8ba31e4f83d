"""The sum that no unit moves by more than the clip, and no order changes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.privacy.clipping import clip_rows, grid_step
from privasr_k2.training import unit_sum
from privasr_k2.training.unit_sum import LayerSum, UnitSum, layer_clip

CPU = torch.device("cpu")
NUMBERS = st.floats(width=32, allow_nan=True, allow_infinity=True)


def summed(
    rows: torch.Tensor, clip: float | None, weights: list[float] | None = None
) -> torch.Tensor:
    """Two parameters a unit; all units at once, or one by one with weights."""
    total = UnitSum(rows.size(1), clip, CPU)
    if weights is None:
        total.add([rows[:, :2], rows[:, 2:]])
    else:
        for row, weight in zip(rows.split(1), weights):
            total.add([row[:, :2], row[:, 2:]], weight)
    return total.values()


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=2, max_size=6),
    st.lists(NUMBERS, min_size=3, max_size=3),
    st.floats(1e-6, 1e6),
    st.floats(0.01, 1.0),
)
def test_one_unit_moves_the_sum_by_at_most_the_clip(rows, other, clip, weight):
    """Removed, it moves the sum by the clip at most, in whole numbers of steps."""
    made, step = torch.tensor(rows, dtype=torch.float32), grid_step(clip)
    weights = [1.0] * (len(rows) - 1) + [weight]
    changed = torch.cat((made[:-1], torch.tensor([other], dtype=torch.float32)))
    limit = Fraction(clip) ** 2 / Fraction(step) ** 2
    sums = summed(made, clip, weights), summed(made[:-1], clip), summed(changed, clip)
    whole, without, replaced = ([int(v) for v in (total / step).tolist()] for total in sums)
    assert math.dist(whole, without) <= weight * clip / step + math.sqrt(3) / 2
    assert sum((a - b) ** 2 for a, b in zip(whole, without)) <= limit
    assert sum((a - b) ** 2 for a, b in zip(without, replaced)) <= limit


def test_short_rows_are_as_they_are_and_long_ones_have_their_direction():
    rows = torch.tensor([[0.3, -0.4, 0.0], [30.0, 0.0, -40.0]])
    np.testing.assert_allclose(summed(rows[:1], 1.0), rows[0], atol=1e-9)
    np.testing.assert_allclose(summed(rows[1:], 1.0), [0.6, 0.0, -0.8], atol=1e-8)
    np.testing.assert_allclose(summed(rows, None), rows.double().sum(0), atol=1e-7)


def test_it_is_what_clip_rows_does():
    rows = torch.randn(7, 1000, generator=torch.Generator().manual_seed(1))
    rows *= torch.logspace(-3, 1, 7).unsqueeze(1)
    expected = clip_rows(rows.numpy(), bound=2.0, norm="l2").values.sum(axis=0)
    np.testing.assert_allclose(summed(rows, 2.0).numpy(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("clip", [None, 0.7])
def test_order_and_company_change_nothing(clip):
    rows = torch.randn(50, 300, generator=torch.Generator().manual_seed(2))
    weights = [float(n) if clip is None else 1.0 for n in range(1, 51)]
    expected = summed(rows, clip, weights)
    assert torch.equal(summed(rows.flip(0), clip, weights[::-1]), expected)
    if clip is not None:
        assert torch.equal(summed(rows, clip), expected)
    halves = [UnitSum(300, clip, CPU) for _ in range(2)]
    for number, row in enumerate(rows.split(1)):
        halves[number % 2].add([row], weights[number])
    halves[0].steps += halves[1].steps
    assert torch.equal(halves[0].values(), expected)
    if clip is not None:
        weights = [min(1.0, clip / float(row.double().norm())) for row in rows]
    plain = sum(row.double() * weight for row, weight in zip(rows, weights))
    torch.testing.assert_close(expected, plain, rtol=0, atol=1e-4 if clip is None else 1e-6)


def test_blocks_change_nothing(monkeypatch):
    rows = torch.randn(7, 9, generator=torch.Generator().manual_seed(3))
    expected = summed(rows, 0.1)
    monkeypatch.setattr(unit_sum, "_BLOCK", 5)
    assert torch.equal(summed(rows, 0.1), expected)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_adds_nothing(value):
    rows = torch.zeros(2, 70_000)
    rows[0, 0], rows[1, -1] = 1.0, value
    total = UnitSum(70_000, 5.0, CPU)
    assert total.add([rows]) == 1 and total.add([rows[1:]]) == 0
    assert (total.count, total.left_out, total.weight) == (1, 2, 1.0)
    assert (total.within, total.norm) == (0.5, 1.0)
    values = total.values()
    assert values[0] == 1.0 and not values[1:].any()


def test_bits_and_weights_are_counted():
    total = UnitSum(1, 1.0, CPU)
    for value, weight in ((0.5, 1.0), (3.0, 0.5), (0.1, 1.0)):
        assert total.add([torch.tensor([[value]])], weight) == 1
    assert (total.count, total.weight, total.within) == (3, 2.5, 0.5)
    assert total.norm == pytest.approx(3.6)


LAYERS = [[1], [2, 1], [3]]


def layered(rows: torch.Tensor, clip: float | None) -> LayerSum:
    """Layers of one, two and one parameters; all units at once."""
    total = LayerSum(LAYERS, clip, CPU)
    total.add(rows.split([size for sizes in LAYERS for size in sizes], dim=1))
    return total


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(NUMBERS, min_size=7, max_size=7), min_size=2, max_size=5),
    st.floats(1e-6, 1e6),
)
def test_clipped_by_layer_one_unit_moves_the_sum_by_at_most_the_clip(rows, clip):
    """Over all layers together, without rounding; within a layer by that layer's clip."""
    made = torch.tensor(rows, dtype=torch.float32)
    own = layer_clip(clip, 3)
    assert 3 * Fraction(own) ** 2 <= Fraction(clip) ** 2 and own == pytest.approx(clip / 3**0.5)
    moved = [
        Fraction(whole) - Fraction(without)
        for whole, without in zip(
            layered(made, clip).values().tolist(), layered(made[:-1], clip).values().tolist()
        )
    ]
    squares = [value**2 for value in moved]
    assert sum(squares) <= Fraction(clip) ** 2
    for part in (squares[:1], squares[1:4], squares[4:]):
        assert sum(part) <= Fraction(own) ** 2


def test_each_layer_is_clipped_by_itself():
    rows = torch.randn(9, 7, generator=torch.Generator().manual_seed(4))
    rows *= torch.logspace(-2, 1, 9).unsqueeze(1)
    own, expected = 1.2 / 3**0.5, torch.zeros(7, dtype=torch.float64)
    for row in rows.double():
        for part in (slice(0, 1), slice(1, 4), slice(4, 7)):
            expected[part] += row[part] * min(1.0, own / float(row[part].norm()))
    torch.testing.assert_close(layered(rows, 1.2).values(), expected, rtol=0, atol=1e-7)
    torch.testing.assert_close(layered(rows, None).values(), rows.double().sum(0))


def test_one_layer_is_clipped_as_the_whole_is():
    rows = torch.randn(9, 7, generator=torch.Generator().manual_seed(5))
    total = LayerSum([[2, 5]], 0.7, CPU)
    total.add([rows[:, :2], rows[:, 2:]])
    assert torch.equal(total.values(), summed(rows, 0.7))


@pytest.mark.parametrize("clip", [None, 2.0])
@pytest.mark.parametrize("place", [0, 2, 6])
def test_a_unit_that_is_not_finite_in_one_layer_adds_nothing_to_any(clip, place):
    rows = torch.full((3, 7), 0.5)
    rows[1, place] = math.nan
    rows[2, place] = math.inf
    total = layered(rows, clip)
    assert (total.count, total.left_out) == (1, 2)
    assert total.values().tolist() == [0.5] * 7
