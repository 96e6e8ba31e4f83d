"""Ragged rows, concatenated in one array, indexed without a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np


class Columns:
    """A base of dataclasses whose fields are arrays of one length."""

    def __getitem__(self, rows: np.ndarray) -> Self:
        return type(self)(*(column[rows] for column in vars(self).values()))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of several parts, at least one, in turn."""
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts))))


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """All numbers of the ranges that begin at ``starts``, one range after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def splits_of(owners: np.ndarray, count: int) -> np.ndarray:
    """(count + 1,) offsets of each owner's items once sorted by owner.

    >>> splits_of(np.array([2, 0, 0]), 3)
    array([0, 2, 2, 3])
    """
    return np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=count))])


def rows_of(splits: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of some rows, and the indices of all their items in turn.

    Args:
        splits: (R + 1,) offsets of the rows.
        rows: which rows; they may repeat.

    >>> rows_of(np.array([0, 2, 2, 5]), np.array([2, 0, 2]))
    (array([3, 2, 3]), array([2, 3, 4, 0, 1, 2, 3, 4]))
    """
    starts = splits[rows]
    sizes = splits[rows + 1] - starts
    return sizes, ranges(starts, sizes)


def items_of(splits: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`rows_of`, with each item's index in ``rows`` instead of sizes.

    >>> items_of(np.array([0, 2, 2, 3]), np.array([2, 0, 1]))
    (array([0, 1, 1]), array([2, 0, 1]))
    """
    sizes, places = rows_of(splits, rows)
    return np.repeat(np.arange(len(sizes)), sizes), places
