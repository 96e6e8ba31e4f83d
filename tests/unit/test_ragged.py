"""Rows of different lengths against loops over them."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.ragged import items_of, ranges, rows_of, splits_of


def test_ranges_follow_each_other() -> None:
    assert ranges(np.array([3, 9, 0]), np.array([2, 0, 1])).tolist() == [3, 4, 0]
    none = np.zeros(0, dtype=np.int64)
    assert ranges(none, none).tolist() == []


@pytest.mark.parametrize("seed", range(20))
def test_against_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, size=rng.integers(1, 7))
    owners = np.repeat(np.arange(len(sizes)), sizes)
    splits = splits_of(owners, len(sizes))
    assert splits.tolist() == [0, *np.cumsum(sizes).tolist()]
    rows = rng.integers(0, len(sizes), size=rng.integers(0, 6))
    items = [np.arange(splits[row], splits[row + 1]) for row in rows]
    found_sizes, places = rows_of(splits, rows)
    assert found_sizes.tolist() == [len(one) for one in items]
    assert places.tolist() == [place for one in items for place in one]
    at, again = items_of(splits, rows)
    assert again.tolist() == places.tolist()
    assert at.tolist() == [n for n, one in enumerate(items) for _ in one]
