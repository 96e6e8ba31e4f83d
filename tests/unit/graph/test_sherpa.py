"""LG out of TLG, and words moved from epsilons onto tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import GraphError
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.sherpa import lexicon_grammar, sherpa_graph, words_on_tokens
from privasr_k2.graph.tlg import compile_tlg

PLACE = Path("TLG.fst")
# Tokens 1 2 are the words 5 and 6, as of two homophones, and 1 2 3 is word 7. Then 6 may end or go
# on from the start, as all may at a cost.
HOMOPHONES = [
    (0, 1, 1, 0, 0.5),
    (1, 2, 2, 0, 0.25),
    (2, 3, 0, 5, 1.0),
    (2, 4, 0, 6, 2.0),
    (2, 4, 3, 7, 4.0),
    (3, 0, 0, 0, 8.0),
]


def fst(arcs: list[tuple[int, int, int, int, float]], **finals: float) -> Fst:
    """From (source, target, label, word, cost) and final states ``sN``."""
    columns = [np.array(column) for column in zip(*arcs)]
    ends = np.full(max(columns[0].max(), columns[1].max()) + 1, np.inf)
    for name, cost in finals.items():
        ends[int(name[1:])] = cost
    return Fst.from_arcs(*columns, ends)


def paths(graph: Fst, longest: int) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    """The least cost of each pair of label and word sequences, of at most so many arcs."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    open_paths = [(graph.start, (), (), 0.0)]
    for _ in range(longest + 1):
        following = []
        for state, labels, words, cost in open_paths:
            end = cost + graph.finals[state]
            if end < found.get((labels, words), np.inf):
                found[labels, words] = end
            for arc in range(graph.row_splits[state], graph.row_splits[state + 1]):
                label, word = int(graph.ilabels[arc]), int(graph.olabels[arc])
                following.append((
                    int(graph.targets[arc]),
                    (*labels, label) if label else labels,
                    (*words, word) if word else words,
                    cost + float(graph.costs[arc]),
                ))  # fmt: skip
        open_paths = following
    return found


def within(found: dict, labels: int) -> dict:
    """Those of at most so many labels."""
    return {key: pytest.approx(cost) for key, cost in found.items() if len(key[0]) <= labels}


@pytest.fixture
def LG() -> Fst:
    return fst(HOMOPHONES, s3=0.125, s4=0.0)


def test_words_move_to_the_token_before_them(LG: Fst) -> None:
    moved = words_on_tokens(LG, PLACE)
    assert not moved.olabels[moved.ilabels == 0].any()
    assert within(paths(moved, 12), 5) == within(paths(LG, 16), 5)
    begun = {(int(i), int(o)) for i, o in zip(moved.ilabels, moved.olabels) if o}
    assert begun == {(2, 5), (2, 6), (3, 7)}


def test_the_lexicon_and_grammar_come_back_out_of_their_composition(LG: Fst) -> None:
    found = lexicon_grammar(compile_tlg(LG, num_tokens=4, topology="standard"), PLACE)
    assert within(paths(found, 16), 5) == within(paths(LG, 16), 5)


def test_costs_have_weight_penalty_and_scale(LG: Fst) -> None:
    TLG = compile_tlg(LG, num_tokens=4, topology="standard")
    values = {"num_tokens": 4, "lm_weight": 2.0, "insertion_penalty": 3.0, "scale": 0.5}
    made = sherpa_graph(TLG, num_words=8, place=PLACE, **values)
    # Labels are tokens + 1. 0.5 (2 (0.5 + 0.25 + 1 + 0.125) + 3).
    assert paths(made, 3)[(2, 3), (5,)] == pytest.approx(3.375)
    # 7 is a delimiter here: no word, and no penalty. 0.5 * 2 * 4.75.
    made = sherpa_graph(TLG, num_words=7, place=PLACE, **values)
    assert paths(made, 4)[(2, 3, 4), ()] == pytest.approx(4.75)


@pytest.mark.parametrize(
    "arcs",
    [
        [(0, 1, 0, 5, 0.0), (1, 2, 1, 0, 0.0)],  # before the first token
        [(0, 1, 1, 5, 0.0), (1, 2, 0, 6, 0.0)],  # behind the token of another word
    ],
)
def test_a_word_without_a_token_is_refused(arcs: list[tuple[int, int, int, int, float]]) -> None:
    with pytest.raises(GraphError, match="a token that is theirs alone"):
        words_on_tokens(fst(arcs, s2=0.0), PLACE)


def test_another_graph_is_refused() -> None:
    """No blank follows its first token."""
    other = fst([(0, 1, 3, 5, 0.0), (1, 2, 4, 0, 0.0)], s2=0.0)
    with pytest.raises(GraphError, match="a composition with the CTC topology"):
        lexicon_grammar(other, PLACE)
