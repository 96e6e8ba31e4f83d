"""Bonuses of phrases in a grammar: a deterministic automaton over words, and its product with G.

The bonus of a sentence is the largest sum of the bonuses of listed phrases in it that do not
overlap, so that no word counts twice. A phrase's bonus is granted word by word, as a beam needs it,
and taken back where the phrase breaks off, like a failure [Aho & Corasick 1975]. A state is the set
of phrases under way, each with what it has against the best reading that has ended; at most one
begins at each of the last words, so that the set is small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from privasr_k2.graph.grammar import Grammar

_DIGITS = 9  # of sums of bonuses; sums in another order are the same state

Phrase = tuple[int, ...]
# Phrases under way: nodes of the tree of phrases, each with its value.
_Key = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Context:
    """The automaton; state 0 is the start, where no phrase is under way.

    Args:
        arcs: of each state: word -> target and bonus. Words without an arc lead from the start to
            the start; from other states they are read after a step back to the start.
        granted: of each state: what the step back takes back, and so does the end of a sentence.
    """

    arcs: tuple[Mapping[int, tuple[int, float]], ...]
    granted: tuple[float, ...]

    def score(self, words: Phrase) -> float:
        """The bonus of a sentence.

        >>> context = make_context({(1, 2): 4.0, (2,): 1.0})
        >>> [context.score(words) for words in ((1, 2), (1, 3), (2, 1, 2, 2))]
        [4.0, 0.0, 6.0]
        """
        state, total = 0, 0.0
        for word in words:
            if word not in self.arcs[state]:
                state, total = 0, total - self.granted[state]
            state, bonus = self.arcs[state].get(word, (0, 0.0))
            total += bonus
        return total - self.granted[state]


@dataclass
class _Tree:
    """The tree of phrases; node 0 is the root.

    Attributes:
        children: of each node: word -> node.
        whole: the bonus of the phrase that ends in each node; 0 for none.
        reach: the largest bonus of a phrase at or below each node.
        promise: what a node grants before its phrases are whole: their largest bonus by words.
    """

    children: list[dict[int, int]] = field(default_factory=lambda: [{}])
    whole: list[float] = field(default_factory=lambda: [0.0])
    reach: list[float] = field(default_factory=lambda: [0.0])
    promise: list[float] = field(default_factory=lambda: [0.0])

    def add(self, phrase: Phrase, bonus: float) -> None:
        """Enter a phrase with its whole bonus."""
        node = 0
        for length, word in enumerate(phrase, start=1):
            child = self.children[node].setdefault(word, len(self.children))
            if child == len(self.children):
                self.children.append({})
                for values in (self.whole, self.reach, self.promise):
                    values.append(0.0)
            node = child
            self.reach[node] = max(self.reach[node], bonus)
            self.promise[node] = max(self.promise[node], bonus * length / len(phrase))
        self.whole[node] = bonus

    def granted(self, key: _Key) -> float:
        """What the phrases under way have been granted beyond the best reading that has ended."""
        return max([0.0, *(value + self.promise[node] for node, value in key)])

    def step(self, key: _Key, word: int) -> tuple[_Key, float]:
        """The phrases under way after a word, and what the best reading that has ended gains."""
        ended, going = 0.0, []
        for node, value in (*key, (0, 0.0)):
            child = self.children[node].get(word)
            if child is not None:
                ended = max(ended, value + self.whole[child])
                going.append((child, value))
        kept = ((node, round(value - ended, _DIGITS)) for node, value in going)
        # A phrase that cannot gain more than what has ended is given up.
        useful = (pair for pair in kept if self.children[pair[0]])
        return tuple(sorted(p for p in useful if p[1] + self.reach[p[0]] > 0)), ended


def make_context(phrases: Mapping[Phrase, float]) -> Context:
    """The automaton of phrases of words' numbers with their whole bonuses, 0 or more."""
    tree = _Tree()
    for phrase, bonus in phrases.items():
        tree.add(phrase, bonus)
    numbers: dict[_Key, int] = {(): 0}
    keys, arcs = [()], []
    for key in keys:  # grows
        before = tree.granted(key)
        leaving: dict[int, tuple[int, float]] = {}
        for node, _ in key or ((0, 0.0),):
            for word in tree.children[node]:
                target, gained = tree.step(key, word)
                if target not in numbers:
                    numbers[target] = len(keys)
                    keys.append(target)
                leaving[word] = numbers[target], gained + tree.granted(target) - before
        arcs.append(leaving)
    return Context(tuple(arcs), tuple(map(tree.granted, keys)))


def with_bonuses(G: Grammar, context: Context, *, backoff_label: int, return_label: int) -> Grammar:
    """G with the bonuses of a context; costs are smaller by them, and may fall below 0.

    A state of G stands for itself with the context's start. A pair of it and another state of the
    context has the arcs that the context has, the back-off, and an arc ``return_label`` to the
    state of G, which takes the bonus back. So a pair costs a few arcs, however many G's state has,
    and the result is as deterministic as G.

    Args:
        G: whose words ``context`` has.
        backoff_label: the number of ``#0``.
        return_label: of a symbol that no other arc has.
    """
    by_label = np.argsort(G.labels, kind="stable")
    sorted_labels = G.labels[by_label]

    def arcs_of(word: int) -> np.ndarray:
        first, last = np.searchsorted(sorted_labels, [word, word + 1])
        return by_label[first:last]

    num_states = len(G.finals)
    number: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by state of the context
    waiting: defaultdict[int, list[int]] = defaultdict(list)

    def pairs(states: np.ndarray, of_context: int) -> np.ndarray:
        """The numbers of pairs; new ones wait for their arcs."""
        nonlocal num_states
        if not of_context:
            return states
        known = number[of_context]
        for state in states.tolist():
            if state not in known:
                known[state] = num_states
                num_states += 1
                waiting[of_context].append(state)
        return np.array([known[state] for state in states.tolist()], dtype=np.int64)

    targets, costs = G.targets.copy(), G.costs.copy()
    for word, (target, bonus) in context.arcs[0].items():
        arcs = arcs_of(word)
        targets[arcs], costs[arcs] = pairs(G.targets[arcs], target), G.costs[arcs] - bonus
    parts = [(G.sources, targets, G.labels, costs)]
    backing = arcs_of(backoff_label)
    while waiting:
        at, found = waiting.popitem()
        states = np.array(found)
        back = np.full(len(found), context.granted[at])
        labels = np.full(len(found), return_label)
        parts.append((pairs(states, at), states, labels, back))
        steps = {**context.arcs[at], backoff_label: (at, 0.0)}
        for word, (target, bonus) in steps.items():
            arcs = backing if word == backoff_label else arcs_of(word)
            arcs = arcs[np.isin(G.sources[arcs], states)]
            ends = pairs(G.sources[arcs], at), pairs(G.targets[arcs], target)
            parts.append((*ends, G.labels[arcs], G.costs[arcs] - bonus))
    columns = (np.concatenate(column) for column in zip(*parts))
    finals = np.append(G.finals, np.full(num_states - len(G.finals), np.inf))
    return Grammar(*columns, finals, G.num_words)
