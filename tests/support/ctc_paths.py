"""CTC by enumeration: the sum of the probabilities of all paths that collapse to a target."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, product

import numpy as np


def path_probability(probs: np.ndarray, target: Sequence[int]) -> float:
    """Probability of ``target`` under frame-wise ``probs`` (T, C); token 0 is the blank."""
    frames, tokens = probs.shape
    total = 0.0
    for path in product(range(tokens), repeat=frames):
        if [token for token, _ in groupby(path) if token != 0] == list(target):
            total += float(np.prod([probs[t, token] for t, token in enumerate(path)]))
    return total
