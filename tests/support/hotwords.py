"""Slow, obvious twins of a graph with hotwords, and lists of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from privasr_k2.graph.grammar import Grammar
from privasr_k2.lm.arpa import BOS, EOS, Arpa

Sentence = tuple[str, ...]


def write_list(path: Path, *lines: str) -> Path:
    """A file of lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def bonus_of(sentence: Sentence, phrases: Mapping[Sentence, float]) -> float:
    """The best sum of bonuses of phrases that do not overlap, tried one after the other."""
    if not sentence:
        return 0.0
    best = bonus_of(sentence[1:], phrases)
    for phrase, bonus in phrases.items():
        if sentence[: len(phrase)] == phrase:
            best = max(best, bonus + bonus_of(sentence[len(phrase) :], phrases))
    return best


class BackoffTwin:
    """The best score of a sentence, with or without backing off at each word, by dictionaries.

    Args:
        model: an n-gram model.
        added: words that it lacks with their ln P after the empty history.
    """

    def __init__(self, model: Arpa, added: Mapping[str, float]) -> None:
        self._probs: dict[Sentence, float] = {}
        self._backoffs: dict[Sentence, float] = {}
        ngrams: list[Sentence] = [()]
        rows = zip(model.parents.tolist(), model.last_words.tolist())
        for row, (parent, word) in enumerate(rows):
            ngram = (*ngrams[parent], model.words[word])
            ngrams.append(ngram)
            self._backoffs[ngram] = math.log(10) * float(model.log10_backoffs[row])
            if model.log10_probs[row] > -98:
                self._probs[ngram] = math.log(10) * float(model.log10_probs[row])
        self._probs |= {(word,): log_prob for word, log_prob in added.items()}
        self._order = model.order
        self._best = lru_cache(maxsize=None)(self._best_rest)

    def log_prob(self, sentence: Sentence) -> float:
        """Its natural log, -inf where a word is unknown."""
        return self._best(self._known((BOS,)), (*sentence, EOS))

    def _known(self, history: Sentence) -> Sentence:
        """The longest end of a history that the model has."""
        history = history[len(history) - min(len(history), self._order - 1) :]
        while history and history not in self._backoffs:
            history = history[1:]
        return history

    def _best_rest(self, history: Sentence, rest: Sentence) -> float:
        if not rest:
            return 0.0
        best, ngram = -math.inf, (*history, rest[0])
        if ngram in self._probs:
            best = self._probs[ngram] + self._best(self._known(ngram), rest[1:])
        if history:
            shorter = self._known(history[1:])
            best = max(best, self._backoffs[history] + self._best(shorter, rest))
        return best


def acceptor_cost(G: Grammar, labels: Sequence[int], silent: Sequence[int]) -> float:
    """The cheapest path of an acceptor that reads labels and passes ``silent`` ones; or inf."""
    arcs: dict[tuple[int, int], list[tuple[int, float]]] = {}
    columns = (G.sources, G.labels, G.targets, G.costs)
    for source, label, target, cost in zip(*(column.tolist() for column in columns)):
        arcs.setdefault((source, label), []).append((target, cost))

    def closed(costs: dict[int, float]) -> dict[int, float]:
        waiting = list(costs)
        while waiting:
            state = waiting.pop()
            for label in silent:
                for target, cost in arcs.get((state, label), ()):
                    if costs[state] + cost < costs.get(target, math.inf) - 1e-12:
                        costs[target] = costs[state] + cost
                        waiting.append(target)
        return costs

    at = closed({0: 0.0})
    for label in labels:
        after: dict[int, float] = {}
        for state, before in at.items():
            for target, cost in arcs.get((state, label), ()):
                after[target] = min(after.get(target, math.inf), before + cost)
        at = closed(after)
    return min((cost + float(G.finals[state]) for state, cost in at.items()), default=math.inf)
