"""A small vocabulary, random sentences, and slow twins of n-gram models."""

from __future__ import annotations

import numpy as np

from privasr_k2.lm.arpa import Arpa
from privasr_k2.randomness import stream

VOCABULARY = [f"w{n}" for n in range(20)]


def sentences(
    seed: int, count: int, *, reverse: bool = False, words: list[str] = VOCABULARY
) -> list[list[str]]:
    """Words by Zipf's law, the first or, with ``reverse``, the last ones the most frequent."""
    generator = stream(seed, "sentences")
    weights = 1.0 / np.arange(1, len(words) + 1)
    weights = (weights[::-1] if reverse else weights) / weights.sum()
    sizes = (int(generator.integers(1, 8)) for _ in range(count))
    return [[words[i] for i in generator.choice(len(words), size=n, p=weights)] for n in sizes]


def table(model: Arpa) -> dict[tuple[str, ...], tuple[float, float]]:
    """P and back-off weight of every n-gram."""
    ngrams: list[tuple[str, ...]] = [()]
    for parent, word in zip(model.parents.tolist(), model.last_words.tolist()):
        ngrams.append((*ngrams[parent], model.words[word]))
    probs, backoffs = 10.0**model.log10_probs, 10.0**model.log10_backoffs
    return dict(zip(ngrams[1:], zip(probs.tolist(), backoffs.tolist())))


def slow_prob(
    ngrams: dict[tuple[str, ...], tuple[float, float]], history: tuple[str, ...], word: str
) -> float:
    """P(word | history) by backing off; 0 for a word that the model lacks."""
    if (*history, word) in ngrams:
        return ngrams[(*history, word)][0]
    if not history:
        return 0.0
    return ngrams.get(history, (0.0, 1.0))[1] * slow_prob(ngrams, history[1:], word)
