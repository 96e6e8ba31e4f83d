"""The prefix tree against the set of all prefixes, written out."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.lm.neural.prefix_tree import build_tree
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Vocabulary
from tests.support.small_lm import WORDS, nbest_lists


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nodes_and_edges_are_the_distinct_prefixes(seed: int) -> None:
    hyps = [*nbest_lists(1, seed, size=50)[0], []]
    text = Vocabulary((*SYMBOLS, *WORDS)).encode(hyps)
    tree = build_tree(text.padded(np.arange(len(hyps))), text.lengths)
    spelled: list[tuple[int, ...]] = [()]
    for level, (start, end) in enumerate(zip(tree.starts[1:], tree.starts[2:])):
        for node in range(start, end):
            parent = spelled[tree.starts[level] + tree.parents[node]]
            spelled.append((*parent, int(tree.words[node])))
    whole = [tuple(text.words[a:b].tolist()) for a, b in zip(text.starts, text.starts[1:])]
    assert len(set(spelled)) == len(spelled) == len(tree.words)
    assert set(spelled) == {hyp[:n] for hyp in whole for n in range(len(hyp) + 1)}
    edges = list(zip([spelled[node] for node in tree.edge_nodes], tree.edge_words.tolist()))
    assert len(set(edges)) == len(edges)
    for sequence, hyp in enumerate(whole):
        taken = {edges[edge] for edge in tree.edges[tree.sequences == sequence]}
        assert taken == {(hyp[:n], word) for n, word in enumerate((*hyp, 0))}
