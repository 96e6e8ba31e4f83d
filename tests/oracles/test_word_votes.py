"""Votes for words against a slow twin, and their cost against the exact loss of small releases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from privasr_k2.federated.word_votes import RELATION, count_votes, said_bigrams, said_words
from privasr_k2.lm.arpa import BOS, EOS
from privasr_k2.privacy.accounting import account
from tests.support.word_votes import WORDS, mechanism, random_texts, secret


def votes_of(said: list[str], most: int, choose: str, speaker: str) -> set[str]:
    """The n-grams, by name, that one speaker votes for; ``said`` has every occurrence."""
    names = [name for name in said if name]
    ranked = sorted(set(names), key=number_of)
    draws = dict(zip(ranked, secret(speaker).uniform(len(ranked)).tolist()))
    if choose == "random":
        return set(sorted(ranked, key=lambda name: draws[name])[:most])
    return set(sorted(ranked, key=lambda name: (-names.count(name), draws[name]))[:most])


def number_of(name: str) -> tuple[int, ...]:
    """The place of an n-gram among all candidates."""
    places = {word: place for place, word in enumerate(WORDS, start=1)} | {BOS: 0, EOS: 0}
    return tuple(places[word] for word in name.split())


@pytest.mark.parametrize("choose", ["most_said", "random"])
@pytest.mark.parametrize("size", [1, 2])
def test_counts_are_those_of_a_loop_over_speakers(choose: str, size: int) -> None:
    for seed in range(5):
        texts = random_texts(seed)
        total: dict[str, int] = {}
        for speaker, sentences in texts.items():
            names = []
            for sentence in sentences:
                whole = [BOS, *sentence, EOS] if size == 2 else sentence
                for start in range(len(whole) - size + 1):
                    ngram = whole[start : start + size]
                    names.append(" ".join(ngram) if {*ngram} <= {*WORDS, BOS, EOS} else "")
            for name in votes_of(names, 3, choose, speaker):
                total[name] = total.get(name, 0) + 1
        said = said_words(texts, WORDS) if size == 1 else said_bigrams(texts, WORDS)
        places = len(WORDS) if size == 1 else (len(WORDS) + 1) ** 2
        counts = count_votes(said, places, 3, choose, secret)
        expected = np.zeros(places, dtype=np.int64)
        for name, votes in total.items():
            first, *second = number_of(name)
            expected[first * (len(WORDS) + 1) + second[0] if second else first - 1] = votes
        assert counts.tolist() == expected.tolist()


def test_epsilon_is_that_of_the_loss_of_all_outcomes() -> None:
    """Two votes: all pairs of noisy counts are enumerated with their chances on both data sets."""
    made = mechanism(max_words=2, epsilon=1.0, delta=1e-3)
    sigma = made.noise.sigma
    k = np.arange(-60, 61)
    chances = np.exp(-(k.astype(float) ** 2) / (2 * sigma**2))
    chances /= chances.sum()

    def delta_at(epsilon: float) -> float:
        total = 0.0
        for a, b in itertools.product(range(1, len(k)), repeat=2):
            with_speaker = chances[a - 1] * chances[b - 1]
            total += max(0.0, with_speaker - math.exp(epsilon) * chances[a] * chances[b])
        return total

    claimed = account(made.event, RELATION, 1e-3).value
    assert delta_at(claimed) <= 1e-3 < delta_at(0.99 * claimed)
