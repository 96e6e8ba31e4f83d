"""Acyclic graphs as arrays: levels, best paths and reachability, with loops over levels only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privasr_k2.ragged import rows_of, splits_of


def grouped(values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The different values (M,) of 0 or more, ascending, each with its positions.

    >>> [(value, where.tolist()) for value, where in grouped(np.array([2, 0, 2]))]
    [(0, [1]), (2, [0, 2])]
    """
    order = np.argsort(values, kind="stable")
    begins = np.flatnonzero(np.diff(values[order], prepend=-1))
    yield from zip(values[order[begins]].tolist(), np.split(order, begins[1:]))


@dataclass(frozen=True, eq=False)
class Dag:
    """``num_states`` states and arcs (A,) between them, in any order and without cycles."""

    num_states: int
    sources: np.ndarray
    targets: np.ndarray

    @cached_property
    def leaving(self) -> tuple[np.ndarray, np.ndarray]:
        """(S + 1,) and (A,): the arcs that leave state i are ``order[starts[i]:starts[i + 1]]``."""
        order = np.argsort(self.sources, kind="stable")
        return splits_of(self.sources[order], self.num_states), order

    @cached_property
    def levels(self) -> np.ndarray:
        """(S,) arcs on the longest path to each state.

        Raises:
            ValueError: there is a cycle.

        >>> Dag(3, np.array([0, 0, 1]), np.array([1, 2, 2])).levels.tolist()
        [0, 1, 2]
        """
        starts, order = self.leaving
        waiting = np.bincount(self.targets, minlength=self.num_states)
        level_of = np.full(self.num_states, -1)
        frontier, level = np.flatnonzero(waiting == 0), 0
        while len(frontier):
            level_of[frontier] = level
            reached = self.targets[order[rows_of(starts, frontier)[1]]]
            np.subtract.at(waiting, reached, 1)
            frontier = np.unique(reached[waiting[reached] == 0])
            level += 1
        if (level_of < 0).any():
            raise ValueError("the lattice has a cycle")
        return level_of

    def by_level(self, states: np.ndarray) -> list[np.ndarray]:
        """Arcs grouped by the level of their state among ``states`` (A,), the first level first."""
        of_arc = self.levels[states]
        order = np.argsort(of_arc, kind="stable")
        return np.split(order, splits_of(of_arc[order], int(self.levels.max(initial=0)) + 1)[1:-1])

    def best_from(self, start: int, scores: np.ndarray) -> np.ndarray:
        """(S,) the best sum of ``scores`` (A,) on a path from ``start``; -inf without one."""
        best = np.full(self.num_states, -np.inf)
        best[start] = 0.0
        for arcs in self.by_level(self.sources):
            np.maximum.at(best, self.targets[arcs], best[self.sources[arcs]] + scores[arcs])
        return best

    def best_to(self, final: int | np.ndarray, scores: np.ndarray) -> np.ndarray:
        """(S,) the best sum of ``scores`` (A,) on a path to ``final`` states; -inf without one."""
        best = np.full(self.num_states, -np.inf)
        best[final] = 0.0
        for arcs in reversed(self.by_level(self.sources)):
            np.maximum.at(best, self.sources[arcs], scores[arcs] + best[self.targets[arcs]])
        return best
