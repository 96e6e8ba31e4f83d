"""The sum of updates: no client moves it by more than the clip, and no order changes it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.federated.private_sum import QuantileClip, UpdateSum, noise_of_sum
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.clipping import clip_rows, grid_step
from privasr_k2.privacy.events import gaussian

CPU = torch.device("cpu")
NUMBERS = st.floats(width=32, allow_nan=True, allow_infinity=True)


def summed(rows: list[torch.Tensor], clip: float | None, weights: list[float] | None = None) -> torch.Tensor:
    total = UpdateSum(len(rows[0]), clip, CPU)
    for row, weight in zip(rows, weights or [1.0] * len(rows)):
        total.add(row, weight)
    return total.values()


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=2, max_size=6),
    st.lists(NUMBERS, min_size=3, max_size=3),
    st.floats(1e-6, 1e6),
    st.floats(0.01, 1.0),
)
def test_one_client_moves_the_sum_by_at_most_the_clip(rows, other, clip, weight) -> None:
    """Removed, it moves the sum by the clip at most; in whole numbers of steps, without rounding."""
    tensors = [torch.tensor(row, dtype=torch.float32) for row in rows]
    weights = [1.0] * (len(rows) - 1) + [weight]
    step = grid_step(clip)
    whole = [int(v) for v in (summed(tensors, clip, weights) / step).tolist()]
    without = [int(v) for v in (summed(tensors[:-1], clip) / step).tolist()]
    changed = summed([*tensors[:-1], torch.tensor(other, dtype=torch.float32)], clip)
    limit = (clip / step) ** 2
    assert math.dist(whole, without) <= weight * clip / step + math.sqrt(3) / 2
    assert sum((a - b) ** 2 for a, b in zip(whole, without)) <= limit
    assert sum((a - int(b)) ** 2 for a, b in zip(without, (changed / step).tolist())) <= limit


def test_it_is_what_clip_rows_does() -> None:
    rows = torch.randn(7, 1000, generator=torch.Generator().manual_seed(1)) * torch.logspace(
        -3, 1, 7
    ).unsqueeze(1)
    expected = clip_rows(rows.numpy(), bound=2.0, norm="l2").values.sum(axis=0)
    np.testing.assert_allclose(summed([*rows], 2.0).numpy(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("clip", [None, 0.7])
def test_order_and_parts_change_nothing(clip: float | None) -> None:
    rows = [*torch.randn(50, 300, generator=torch.Generator().manual_seed(2))]
    weights = [float(n) for n in range(1, 51)] if clip is None else None
    expected = summed(rows, clip, weights)
    assert torch.equal(summed(rows[::-1], clip, weights and weights[::-1]), expected)
    halves = [UpdateSum(300, clip, CPU) for _ in range(2)]
    for number, row in enumerate(rows):
        halves[number % 2].add(row, weights[number] if weights else 1.0)
    halves[0].steps += halves[1].steps
    assert torch.equal(halves[0].values(), expected)
    plain = sum(row.double() * (w if weights else min(1.0, (clip or 0) / float(row.double().norm())))
                for row, w in zip(rows, weights or rows))  # fmt: skip
    torch.testing.assert_close(expected, plain, rtol=0, atol=1e-4 if clip is None else 1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_counts_as_zero(value: float) -> None:
    total = UpdateSum(70_000, 1.0, CPU)
    bad = torch.ones(70_000)
    bad[69_999] = value
    assert not total.add(bad, 1.0)
    assert total.count == total.weight == total.within == 0 and not total.values().any()


def test_bits_and_weights_are_counted() -> None:
    total = UpdateSum(1, 1.0, CPU)
    for value, weight in ((0.5, 1.0), (3.0, 0.5), (0.1, 1.0)):
        assert total.add(torch.tensor([value]), weight)
    assert (total.count, total.weight, total.within) == (3, 2.5, 0.5)
    assert total.norm == pytest.approx(3.6)


def test_the_sum_and_the_bits_cost_what_is_claimed() -> None:
    """Both as one vector, each by its own noise: the squares of sensitivity by sigma add up."""
    of_sum = noise_of_sum(1.2, 3.0)
    assert (1 / of_sum**2 + (0.5 / 3.0) ** 2) ** -0.5 == pytest.approx(1.2)
    both = gaussian((1 / of_sum**2 + (0.5 / 3.0) ** 2) ** -0.5)
    epsilons = [account(e, Relation.ADD_OR_REMOVE_ONE, 1e-5).value for e in (both, gaussian(1.2))]
    assert epsilons[0] == pytest.approx(epsilons[1], rel=1e-6)
    with pytest.raises(ValueError, match="count_noise"):
        noise_of_sum(1.2, 0.6)


def test_the_clip_finds_its_quantile() -> None:
    norms = np.random.default_rng(1).lognormal(size=4000)
    clip, rule = 0.01, QuantileClip(0.7, 0.3, 1.0)
    for _ in range(60):
        clip = rule.next_clip(clip, float(np.where(norms <= clip, 0.5, -0.5).sum()), 4000)
    assert clip == pytest.approx(np.quantile(norms, 0.7), rel=0.02)
