"""Hypotheses with each distinct prefix once: the tree against sets, scores one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privasr_k2.am.shared_prefixes import share_prefixes
from tests.support.end_to_end import model
from tests.support.sequence_scores import score_hypotheses
from tests.support.small_am import features


@pytest.mark.parametrize("seed", range(20))
def test_every_prefix_is_there_once(seed):
    rng = np.random.default_rng(seed)
    num, longest = int(rng.integers(1, 9)), int(rng.integers(0, 5))
    rows, lengths = rng.integers(0, 4, num), rng.integers(0, longest + 1, num)
    tokens = rng.integers(1, 3, (num, longest))
    found = share_prefixes(*map(torch.from_numpy, (rows, tokens, lengths)))

    levels = list(found.by_length())
    read: list[tuple[int, tuple[int, ...]]] = []
    for place, (start, end) in enumerate(levels):
        for k in range(start, end):
            owner, before = int(found.owners[k]), ()
            if place:
                parent = levels[place - 1][0] + int(found.parents[k])
                assert read[parent][0] == owner
                before = (*read[parent][1], int(found.tokens[k]))
            read.append((owner, before))
    texts = [tuple(map(int, line[:length])) for line, length in zip(tokens, lengths)]
    wanted = {(int(row), text[:u]) for row, text in zip(rows, texts) for u in range(len(text) + 1)}
    assert len(read) == len(wanted) and set(read) == wanted
    assert found.inside.sum(dim=1).tolist() == (lengths + 1).tolist()
    assert (found.edge_nodes.diff() >= 0).all()
    for row, text, edges in zip(rows, texts, found.edges.tolist()):
        for u, edge in enumerate(edges[: len(text) + 1]):
            assert read[int(found.edge_nodes[edge])] == (row, text[:u])
            assert int(found.edge_tokens[edge]) == (*text, 0)[u]


@pytest.mark.parametrize("kind", ["rnnt", "las", "ctc_attention"])
@pytest.mark.parametrize("piece", [1, 3000])
def test_lists_score_as_hypotheses_alone(kind, piece):
    made = model(kind, "blstm")
    if kind == "rnnt":
        made.joint.limit = piece  # one prefix at a time, or some
    x, lengths = features(17, 12)
    lists = [[(1, 2, 3), (1, 2), (1, 2, 2), (), (3, 2, 3)], [(1, 2), (1, 1)]]
    for row, (of_one, scores) in enumerate(zip(lists, score_hypotheses(made, x, lengths, lists))):
        own = x[row : row + 1, : lengths[row]], lengths[row : row + 1]
        alone = [float(score_hypotheses(made, *own, [[hyp]])[0]) for hyp in of_one]
        assert scores.tolist() == pytest.approx(alone, rel=1e-5)
