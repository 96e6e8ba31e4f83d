"""Hypotheses of many utterances with each distinct prefix once, as in an N-best list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from privasr_k2.lm.neural.prefix_tree import build_tree


@dataclass(frozen=True, eq=False)
class SharedPrefixes:
    """M hypotheses as K distinct prefixes of utterances and the E tokens that follow them.

    Attributes:
        levels: where the prefixes of each length begin, from length 0; the last entry is K.
        owners: (K,) utterance of each prefix.
        parents: (K,) place of the prefix without its last token, within its length; 0 if empty.
        tokens: (K,) last token of each prefix; 0 for none.
        edge_nodes, edge_tokens: (E,) after which prefix which token follows, rising; 0 = the end.
        edges: (M, U + 1) edge of each position of each hypothesis; 0 behind its end.
        inside: (M, U + 1) positions of the hypothesis and its end.
    """

    levels: tuple[int, ...]
    owners: Tensor
    parents: Tensor
    tokens: Tensor
    edge_nodes: Tensor
    edge_tokens: Tensor
    edges: Tensor
    inside: Tensor

    def by_length(self) -> Iterator[tuple[int, int]]:
        """First and last + 1 of the prefixes of each length."""
        return pairwise(self.levels)


def share_prefixes(rows: Tensor, targets: Tensor, target_lengths: Tensor) -> SharedPrefixes:
    """The distinct prefixes of hypotheses.

    Args:
        rows: (M,) which utterance each hypothesis is of.
        targets: (M, U) token numbers from 1, padded.
        target_lengths: (M,).

    >>> tokens = torch.tensor([[3, 4], [3, 0]])
    >>> shared = share_prefixes(torch.tensor([0, 0]), tokens, torch.tensor([2, 1]))
    >>> shared.tokens.tolist(), shared.edge_tokens.tolist(), shared.edges.tolist()
    ([0, 3, 4], [3, 0, 4, 0], [[0, 2, 3], [0, 1, 0]])
    """
    tokens, lengths, owners = (x.cpu().numpy() for x in (targets, target_lengths, rows))
    num, width = tokens.shape
    inside = np.arange(width + 1) <= lengths[:, None]
    # The utterance as a first token of its own, so that one tree holds all of them.
    above = int(tokens.max(initial=0)) + 1
    padded = np.zeros((num, width + 3), dtype=np.int64)
    padded[:, 1] = above + owners
    padded[:, 2:-1] = tokens * inside[:, 1:]
    tree = build_tree(padded, lengths + 2)
    first = len(np.unique(owners))  # edges and nodes of utterances: theirs is no token
    node_owners = np.zeros(len(tree.words), dtype=np.int64)
    node_owners[1 : 1 + first] = tree.words[1 : 1 + first] - above
    starts = tree.starts.tolist()
    for (start, end), above_start in zip(pairwise(starts[2:]), starts[1:]):
        node_owners[start:end] = node_owners[above_start + tree.parents[start:end]]
    edges = np.zeros((num, width + 1), dtype=np.int64)
    edges[inside] = (tree.edges[num:] - first)[np.argsort(tree.sequences[num:], kind="stable")]
    words = np.where(tree.words >= above, 0, tree.words)[1:]

    def tensor(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(targets.device)

    return SharedPrefixes(
        levels=tuple((tree.starts[1:] - 1).tolist()),
        owners=tensor(node_owners[1:]),
        parents=tensor(tree.parents[1:]),
        tokens=tensor(words),
        edge_nodes=tensor(tree.edge_nodes[first:] - 1),
        edge_tokens=tensor(tree.edge_words[first:]),
        edges=tensor(edges),
        inside=tensor(inside),
    )
