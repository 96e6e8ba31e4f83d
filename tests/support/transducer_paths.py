"""RNN transducers by enumeration: the sum of the probabilities of all alignments."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def alignment_probability(blank: np.ndarray, label: np.ndarray) -> float:
    """Probability of all U labels in T frames.

    Args:
        blank: (T, U + 1) probability of a blank at frame t after u labels.
        label: (T, U) probability of the next label.
    """
    frames, labels = label.shape
    total = 0.0
    # T - 1 + U moves before the last blank; which of them are labels makes an alignment.
    for spoken in combinations(range(frames - 1 + labels), labels):
        t, u, path = 0, 0, 1.0
        for move in range(frames - 1 + labels):
            if move in spoken:
                path, u = path * label[t, u], u + 1
            else:
                path, t = path * blank[t, u], t + 1
        total += path * blank[t, u]
    return float(total)
