"""Helpers shared with ``test_unknown_names.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privasr_k2.graph.grammar import Grammar


def cost(loop: Grammar, spelling: Sequence[int]) -> float:
    """Of the only path."""
    state, total = 0, 0.0
    for token in spelling:
        [arc] = np.flatnonzero((loop.sources == state) & (loop.labels == token))
        state, total = int(loop.targets[arc]), total + float(loop.costs[arc])
    return total + float(loop.finals[state])
