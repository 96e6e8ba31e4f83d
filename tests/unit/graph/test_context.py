"""The automaton of phrases, and its product with a grammar, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privasr_k2.graph.context import make_context, with_bonuses
from privasr_k2.graph.grammar import Grammar

BACKOFF, RETURN = 9, 10


def test_a_bonus_is_granted_word_by_word_and_taken_back() -> None:
    context = make_context({(1, 2, 3): 6.0})
    assert [dict(arcs) for arcs in context.arcs] == [{1: (1, 2.0)}, {2: (2, 2.0)}, {3: (0, 2.0)}]
    assert context.granted == (0.0, 2.0, 4.0)


def test_single_words_need_no_states() -> None:
    context = make_context({(1,): 3.0, (2,): 0.0})
    assert context.arcs == ({1: (0, 3.0), 2: (0, 0.0)},) and context.granted == (0.0,)


def test_a_word_counts_once() -> None:
    context = make_context({(1,): 1.0, (1, 2): 4.0, (2,): 1.0, (2, 3): 4.0})
    found = [context.score(words) for words in ((1, 2), (1, 2, 3), (2, 3), (1, 2, 2, 3), (1, 3))]
    assert found == [4.0, 5.0, 4.0, 8.0, 1.0]


def test_a_phrase_that_can_gain_no_more_is_given_up() -> None:
    assert len(make_context({(1,): 5.0, (1, 2): 4.0}).arcs) == 1
    assert len(make_context({(1,): 5.0, (1, 2): 6.0}).arcs) == 2


def test_phrases_without_bonus_change_no_costs() -> None:
    G = _loop()
    made = with_bonuses(G, make_context({(1, 2): 0.0}), backoff_label=BACKOFF, return_label=RETURN)
    assert made.costs.tolist() == G.costs.tolist() and made.targets.tolist() == G.targets.tolist()


def _loop() -> Grammar:
    """State 0 is that of word 1, state 1 of the empty history; three words."""
    columns = ([0, 0, 1, 1, 1], [1, 1, 0, 1, 1], [2, BACKOFF, 1, 2, 3])
    sources, targets, labels = map(np.array, columns)
    costs = np.array([0.5, 0.25, 1.0, 2.0, 3.0])
    return Grammar(sources, targets, labels, costs, np.array([math.inf, 0.0]), 3)


def test_arcs_of_a_product_by_hand() -> None:
    context = make_context({(1, 2): 4.0})
    made = with_bonuses(_loop(), context, backoff_label=BACKOFF, return_label=RETURN)
    columns = (made.sources, made.targets, made.labels)
    arcs = dict(zip(zip(*(column.tolist() for column in columns)), made.costs.tolist()))
    # State 2: word 1 was said within the phrase; state 3: the same after backing off.
    assert arcs == pytest.approx(
        {
            **{(0, 1, 2): 0.5, (0, 1, BACKOFF): 0.25, (1, 2, 1): -1.0, (1, 1, 2): 2.0},
            **{(1, 1, 3): 3.0, (2, 1, 2): -1.5, (2, 3, BACKOFF): 0.25, (2, 0, RETURN): 2.0},
            **{(3, 1, 2): 0.0, (3, 1, RETURN): 2.0},
        }
    )
    assert made.finals.tolist() == [math.inf, 0.0, math.inf, math.inf]
