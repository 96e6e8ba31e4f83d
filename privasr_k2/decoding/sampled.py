"""Paths drawn from lattices in proportion to their probabilities, by ``k2.random_paths``.

A list of drawn paths (``conf/common.yaml#nbest``, ``method: sampled``) misses some of the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import k2
    import torch


def draw_paths(lattice: k2.Fsa, scores: torch.Tensor, num_paths: int) -> list[list[np.ndarray]]:
    """The arcs of drawn paths of each of N lattices, numbered within it; none for an empty one.

    Args:
        lattice: N lattices without cycles; its own scores are not used.
        scores: (A,) natural log of the arcs' weights.
    """
    import k2

    weighted = k2.Fsa(lattice.arcs.clone())
    weighted.scores = scores.detach().to(weighted.scores.dtype)
    drawn = k2.random_paths(weighted, use_double_scores=True, num_paths=num_paths)
    arcs = drawn.values.cpu().numpy().astype(np.int64)
    by_lattice, by_path = (drawn.shape.row_splits(axis).cpu().numpy() for axis in (1, 2))
    states = lattice.arcs.shape().row_splits(1).cpu().numpy()
    first_arcs = lattice.arcs.shape().row_splits(2).cpu().numpy()[states]
    return [
        [arcs[by_path[n] : by_path[n + 1]] - first for n in range(by_lattice[k], by_lattice[k + 1])]
        for k, first in enumerate(first_arcs[:-1])
    ]
