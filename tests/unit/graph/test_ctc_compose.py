"""H o LG as arrays against k2's composition."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest

from privasr_k2.graph import ctc_compose
from privasr_k2.graph.ctc_compose import compose_ctc
from privasr_k2.graph.epsilons import WordArcs, remove_epsilons
from tests.support.epsilons import a_fst

TOPOLOGIES = ["standard", "modified"]
Path_ = tuple[tuple[int, ...], tuple[int, ...], float]


def paths(rows: list[tuple[int, int, int, float, tuple[int, ...]]], frames: int) -> Counter[Path_]:
    """How often there is each sequence of labels, words and score."""
    leaving: dict[int, list] = {}
    for row in rows:
        leaving.setdefault(row[0], []).append(row)
    fronts: Counter = Counter({(0, (), (), 0.0): 1})
    for _ in range(frames + 1):
        ended = Counter()
        for (state, labels, words, score), count in fronts.items():
            for _, target, label, more, said in leaving.get(state, ()):
                ended[target, (*labels, label), words + said, round(score + more, 4)] += count
        fronts = ended
    return Counter({path[1:]: n for path, n in fronts.items() if path[1][-1] == -1})


def rows_of_arcs(arcs: WordArcs) -> list[tuple[int, int, int, float, tuple[int, ...]]]:
    words = [tuple(arcs.words[a:b].tolist()) for a, b in itertools.pairwise(arcs.splits)]
    columns = (arcs.sources, arcs.targets, arcs.labels, arcs.scores)
    return list(zip(*(column.tolist() for column in columns), words))


@pytest.mark.k2
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_composition_of_k2(seed: int, topology: str) -> None:
    k2 = pytest.importorskip("k2")
    import torch

    LG = remove_epsilons(a_fst(seed))
    # k2's arcs of the end have no numbers to find their words by.
    sizes = np.diff(LG.splits)
    inside = np.repeat(LG.labels >= 0, sizes)
    splits = np.concatenate([[0], np.cumsum(np.where(LG.labels < 0, 0, sizes))]).astype(np.int32)
    LG = dataclasses.replace(LG, words=LG.words[inside], splits=splits)
    made = compose_ctc(LG, 3, topology)
    columns = np.stack([LG.sources, LG.targets, LG.labels, LG.scores.view(np.int32)], axis=1)
    numbers = np.arange(LG.num_arcs, dtype=np.int32) + 1  # of arcs, in place of words
    numbers[LG.labels < 0] = -1
    fsa = k2.Fsa(torch.from_numpy(columns), aux_labels=torch.from_numpy(numbers))
    H = k2.ctc_topo(2, modified=topology == "modified")
    theirs = k2.arc_sort(k2.connect(k2.compose(H, k2.arc_sort(fsa))))
    assert (made.num_states, made.num_arcs) == (theirs.shape[0], theirs.num_arcs)
    said = [tuple(LG.words[a:b].tolist()) for a, b in itertools.pairwise(LG.splits)]
    arcs, scores = theirs.arcs.values()[:, :3].tolist(), theirs.scores.tolist()
    rows = [
        (*arc, score, said[number - 1] if number > 0 else ())
        for arc, score, number in zip(arcs, scores, theirs.aux_labels.tolist())
    ]
    for frames in range(4):
        found = paths(rows_of_arcs(made), frames)
        assert found == paths(rows, frames)
    assert len(found) > 10


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_parts_are_the_whole_and_lists_the_tables(
    monkeypatch: pytest.MonkeyPatch, topology: str
) -> None:
    LG = remove_epsilons(a_fst(3))
    whole = compose_ctc(LG, 3, topology)
    monkeypatch.setattr(ctc_compose, "_AT_A_TIME", 5)
    monkeypatch.setattr(ctc_compose, "_TABLE", 0)
    parts = compose_ctc(LG, 3, topology)
    for name, column in vars(whole).items():
        np.testing.assert_array_equal(getattr(parts, name), column)
    keys = whole.sources.astype(np.int64) << 32 | whole.labels.astype(np.uint32)
    assert (np.diff(keys) >= 0).all() and whole.sources.dtype == whole.labels.dtype == np.int32
