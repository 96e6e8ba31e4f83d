"""Paths drawn from lattices, each as likely as its share of all paths' probabilities.

An N-best list of drawn paths (``conf/common.yaml#nbest``, ``method: sampled``) misses some of the
best word sequences. ``k2.random_paths`` draws without chance, at even distances in the cumulative
distribution of all paths, so that the same lattice gives the same paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import k2
    import torch


def draw_paths(lattice: k2.Fsa, scores: torch.Tensor, num_paths: int) -> list[list[np.ndarray]]:
    """For each of N lattices the arcs of drawn paths, numbered within the lattice; none for an
    empty one.

    Args:
        lattice: N lattices without cycles; its own scores are neither read nor changed.
        scores: (A,) natural log, one an arc; a path is drawn by the sum of its arcs'.
        num_paths: so many for each lattice; the same one may be drawn several times.
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
