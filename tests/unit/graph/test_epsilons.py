"""Epsilon removal against the enumeration of paths."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from privasr_k2.graph.epsilons import WordArcs, _Strings, remove_epsilons
from privasr_k2.graph.openfst import Fst
from tests.support.epsilons import a_fst

Costs = dict[tuple[tuple[int, ...], tuple[int, ...]], float]
LONGEST = 3  # labels of a path


def best_of(fst: Fst) -> Costs:
    """The least cost of each sequence of labels and words."""
    best: Costs = defaultdict(lambda: np.inf)

    def walk(state: int, labels: tuple[int, ...], words: tuple[int, ...], cost: float) -> None:
        if np.isfinite(fst.finals[state]):
            best[labels, words] = min(best[labels, words], cost + float(fst.finals[state]))
        for arc in range(fst.row_splits[state], fst.row_splits[state + 1]):
            label, word = int(fst.ilabels[arc]), int(fst.olabels[arc])
            if label == 0 or len(labels) < LONGEST:
                longer = (*labels, *[label][: label > 0]), (*words, *[word][: word > 0])
                walk(int(fst.targets[arc]), *longer, cost + float(fst.costs[arc]))

    walk(fst.start, (), (), 0.0)
    return dict(best)


def best_of_arcs(arcs: WordArcs) -> Costs:
    """The same of arcs without epsilons."""
    best: Costs = defaultdict(lambda: np.inf)

    def walk(state: int, labels: tuple[int, ...], words: tuple[int, ...], cost: float) -> None:
        for arc in np.flatnonzero(arcs.sources == state).tolist():
            said = (*words, *arcs.words[arcs.splits[arc] : arcs.splits[arc + 1]].tolist())
            label, total = int(arcs.labels[arc]), cost - float(arcs.scores[arc])
            if label < 0:
                assert arcs.targets[arc] == arcs.num_states - 1
                best[labels, said] = min(best[labels, said], total)
            elif len(labels) < LONGEST:
                walk(int(arcs.targets[arc]), (*labels, label), said, total)

    walk(0, (), (), 0.0)
    return dict(best)


@pytest.mark.parametrize("seed", range(12))
def test_costs_and_words_of_all_label_sequences_stay(seed: int) -> None:
    fst = a_fst(seed)
    expected, arcs = best_of(fst), remove_epsilons(fst)
    found = best_of_arcs(arcs)
    assert set(found) == set(expected) and len(found) > 5
    for said, cost in expected.items():
        assert found[said] == pytest.approx(cost, abs=1e-5), said
    # Sorted, the end's label last; and every state is left and reached.
    keys = arcs.sources.astype(np.int64) << 32 | arcs.labels.astype(np.uint32)
    assert (np.diff(keys) >= 0).all()
    assert set(arcs.sources.tolist()) == set(range(arcs.num_states - 1))
    assert set(arcs.targets.tolist()) | {0} == set(range(arcs.num_states))
    assert arcs.splits[-1] == len(arcs.words)


def test_homophones_that_go_on_alike_are_all_kept() -> None:
    """The dearer one, too: what rescores lists may prefer it."""
    fst = Fst.from_arcs(
        *np.array([[0, 1, 1, 2], [1, 2, 2, 3], [1, 0, 0, 2], [0, 5, 6, 0], [0, 1, 2, 0]]),
        np.array([np.inf] * 3 + [0.0]),
    )
    assert best_of_arcs(remove_epsilons(fst)) == {((1, 2), (5,)): 1.0, ((1, 2), (6,)): 2.0}


@pytest.mark.parametrize(
    ("arcs", "size"),
    [
        # One arc into state 1, three out of state 2: the one goes on, and state 1 is left out.
        ([[0, 0, 1, 2, 2, 2], [1, 2, 2, 3, 3, 3], [1, 2, 0, 1, 2, 3]], (4, 6)),
        # Three into state 1, one out of state 2: state 1 has a copy of that, and another arc.
        ([[0, 0, 0, 0, 1, 1, 2], [1, 1, 1, 2, 2, 3, 3], [1, 2, 3, 4, 0, 5, 1]], (5, 8)),
    ],
)
def test_the_way_that_makes_fewer_arcs_is_taken(
    arcs: list[list[int]], size: tuple[int, int]
) -> None:
    columns = np.array([*arcs, [0] * len(arcs[0]), [1] * len(arcs[0])])
    fst = Fst.from_arcs(*columns, np.array([np.inf, np.inf, np.inf, 0.0]))
    made = remove_epsilons(fst)
    assert (made.num_states, made.num_arcs) == size and best_of_arcs(made) == best_of(fst)


def test_a_circle_is_a_defect() -> None:
    fst = Fst.from_arcs(
        *np.array([[0, 1, 0], [1, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 1]]), np.zeros(2)
    )
    with pytest.raises(RuntimeError, match="in a circle"):
        remove_epsilons(fst)


def test_nothing_is_left_of_what_does_not_end() -> None:
    fst = Fst.from_arcs(*np.array([[0], [1], [1], [0], [0]]), np.full(2, np.inf))
    assert remove_epsilons(fst).num_arcs == 0


def test_strings_have_one_number() -> None:
    strings = _Strings()
    first = strings.longer(np.zeros(3, np.int32), np.array([7, 0, 7]))
    assert first[1] == 0 and first[0] == first[2] != 0
    second = strings.longer(np.append(first, 0), np.array([4, 7, 0, 4]))
    assert second[1] == first[0] == second[2] and len(set(second.tolist())) == 3
    words, starts = strings.table()
    shown = [words[starts[n] : starts[n + 1]].tolist() for n in second.tolist()]
    assert shown == [[7, 4], [7], [7], [4]]


def test_pairs_of_states_are_told_apart_in_a_large_graph() -> None:
    """Two pairs that would be one in 32 bits."""
    size, first, second = 70_000, (61_362, 10), (5, 22_714)
    keys = [source * size + target for source, target in (first, second)]
    assert keys[0] != keys[1] and keys[0] % 2**32 == keys[1] % 2**32
    arcs = [
        (0, first[0], 1, 0.0), (*first, 0, 1.0), (first[1], 3, 2, 0.0),
        (0, second[0], 4, 0.0), (*second, 0, 2.0), (second[1], 3, 5, 0.0),
    ]  # fmt: skip
    sources, targets, labels, costs = (np.array(column) for column in zip(*arcs))
    finals = np.full(size, np.inf)
    finals[3] = 0.0
    plain = remove_epsilons(Fst.from_arcs(sources, targets, labels, labels, costs, finals))
    assert sorted(plain.labels.tolist()) == [-1, 1, 2, 4, 5]
    assert sorted(plain.scores.tolist()) == [-2.0, -1.0, 0.0, 0.0, 0.0]
