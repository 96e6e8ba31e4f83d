"""The distinct prefixes of word sequences as a tree, level by level, in arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """M distinct prefixes (nodes) of R sequences and the E distinct words that follow them (edges).

    Attributes:
        starts: (levels + 1,) first node of each level; the last entry is M. Node 0 is the empty
            prefix.
        parents: (M,) index of each node's parent within the level above; 0 for node 0.
        words: (M,) the last word of each prefix; the boundary for node 0.
        edge_nodes, edge_words: (E,) node and following word, the boundary at a sequence's end.
        sequences, edges: (P,) sequence and edge of every position, level by level.
    """

    starts: np.ndarray
    parents: np.ndarray
    words: np.ndarray
    edge_nodes: np.ndarray
    edge_words: np.ndarray
    sequences: np.ndarray
    edges: np.ndarray

    @property
    def order(self) -> np.ndarray:
        """(P,) where the positions are found, sequence after sequence."""
        return np.argsort(self.sequences, kind="stable")


def build_tree(padded: np.ndarray, lengths: np.ndarray) -> PrefixTree:
    """The tree of R sequences.

    Args:
        padded: (R, U + 1) word numbers between boundaries, as of ``Text.padded``.
        lengths: (R,) positions: words and the end.

    >>> tree = build_tree(np.array([[0, 5, 6, 0], [0, 5, 0, 0], [0, 5, 7, 0]]), np.array([3, 2, 3]))
    >>> tree.words.tolist(), tree.starts.tolist(), tree.parents.tolist()
    ([0, 5, 6, 7], [0, 1, 2, 4], [0, 0, 0, 0])
    >>> list(zip(tree.edge_nodes.tolist(), tree.edge_words.tolist()))
    [(0, 5), (1, 0), (1, 6), (1, 7), (2, 0), (3, 0)]
    """
    boundary, base = 0, int(padded.max(initial=0)) + 1
    places = np.zeros(len(padded), dtype=np.int64)  # of each sequence's node within its level
    starts, parents, words = [0, 1], [np.zeros(1, dtype=np.int64)], [np.full(1, boundary)]
    edge_nodes, edge_words, sequences, edges = [], [], [], []
    num_edges = 0
    for level in range(padded.shape[1] - 1):
        active = np.flatnonzero(lengths > level)
        if not active.size:
            break
        taken = places[active] * base + padded[active, level + 1]
        keys, edge_of = np.unique(taken, return_inverse=True)
        above, following = np.divmod(keys, base)
        edge_nodes.append(starts[-2] + above)
        edge_words.append(following)
        sequences.append(active)
        edges.append(num_edges + edge_of)
        num_edges += len(keys)
        going = np.flatnonzero(following != boundary)
        if going.size:
            starts.append(starts[-1] + len(going))
            parents.append(above[going])
            words.append(following[going])
        place_of = np.full(len(keys), -1)
        place_of[going] = np.arange(len(going))
        places[active] = place_of[edge_of]
    none, columns = [np.zeros(0, dtype=np.int64)], (edge_nodes, edge_words, sequences, edges)
    joined = [np.concatenate(parts or none) for parts in (parents, words, *columns)]
    return PrefixTree(np.array(starts), *joined)
