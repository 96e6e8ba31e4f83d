"""Helpers shared with ``test_epsilons.py``."""

from __future__ import annotations

import numpy as np

from privasr_k2.graph.openfst import Fst
from privasr_k2.randomness import stream


def a_fst(seed: int) -> Fst:
    """Some states with arcs to all sides; epsilons lead to larger numbers only."""
    generator = stream(seed, "epsilons")
    states, arcs = 7, 24
    sources, targets = (generator.integers(0, states, arcs) for _ in range(2))
    labels = np.where(
        targets > sources, generator.integers(0, 3, arcs), generator.integers(1, 3, arcs)
    )
    labels[(labels > 0) & (generator.random(arcs) < 0.4) & (targets > sources)] = 0
    words = generator.integers(0, 3, arcs) * (generator.random(arcs) < 0.5)
    row = np.arange(states - 1)  # a way through all states
    sources, targets = np.append(sources, row), np.append(targets, row + 1)
    labels, words = (np.append(values, np.ones(states - 1, int)) for values in (labels, words))
    finals = np.where(generator.random(states) < 0.4, generator.random(states), np.inf)
    finals[states - 1] = 0.5
    costs = generator.integers(-3, 8, len(sources)) / 4
    start = int(generator.integers(0, 2))
    return Fst.from_arcs(sources, targets, labels, words, costs, finals, start=start)
