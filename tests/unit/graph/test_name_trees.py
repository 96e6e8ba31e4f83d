"""Names as an acceptor over tokens."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from privasr_k2.graph.lang import Silence
from privasr_k2.graph.name_trees import END, NameArcs, name_arcs, spoken_words
from privasr_k2.lm.sub_lm import make_sub_lm

SPOKEN = {"ann": [[1, 2]], "bell": [[3, 4, 5], [3, 5]], "an": [[1, 2]], "b": [[3]]}
NAMES = {("ann", "bell"): 2.0, ("an",): 1.0, ("bell",): 1.0, ("ann",): 4.0, ("b", "b"): 1.0}
WORDS = ["an", "ann", "b", "bell"]


def made(silence: Silence | None = None) -> NameArcs:
    sub = make_sub_lm(NAMES, "tree")
    assert list(sub.words) == WORDS
    return name_arcs(sub, spoken_words(WORDS, SPOKEN), np.arange(1, 5), silence, 9)


def readings(arcs: NameArcs, tokens: Sequence[int]) -> dict[tuple[str, ...], float]:
    """P of each sequence of words that ends with these tokens."""
    at: dict[tuple[int, tuple[str, ...]], float] = {(0, ()): 1.0}
    for token in tokens:
        after: dict[tuple[int, tuple[str, ...]], float] = defaultdict(float)
        for (state, words), prob in at.items():
            for arc in np.flatnonzero((arcs.sources == state) & (arcs.labels == token)):
                word = int(arcs.words[arc])
                said = (*words, WORDS[word - 1]) if word else words
                after[int(arcs.targets[arc]), said] += prob * math.exp(arcs.scores[arc])
        at = after
    return {words: prob for (state, words), prob in at.items() if state == END}


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([1, 2], {("ann",): 4 / 9, ("an",): 1 / 9}),
        ([1, 2, 3, 5], {("ann", "bell"): 2 / 9}),
        ([1, 2, 3, 4, 5], {("ann", "bell"): 2 / 9}),
        ([3, 4, 5], {("bell",): 1 / 9}),
        ([3, 3], {("b", "b"): 1 / 9}),
        ([3], {}),
        ([1], {}),
    ],
)
def test_names_have_the_probabilities_of_the_list(
    tokens: list[int], expected: dict[tuple[str, ...], float]
) -> None:
    assert readings(made(), tokens) == pytest.approx(expected)


def test_silence_may_stand_behind_each_word() -> None:
    arcs = made(Silence("SIL", 0.25))
    for tokens, silences in (([1, 2, 3, 5], 0), ([1, 2, 9, 3, 5], 1), ([1, 2, 9, 3, 5, 9], 2)):
        prob = 2 / 9 * 0.25**silences * 0.75 ** (2 - silences)
        assert readings(arcs, tokens) == pytest.approx({("ann", "bell"): prob})
    assert readings(arcs, [9, 1, 2]) == readings(arcs, [1, 2, 9, 9]) == {}


def test_a_branch_has_the_probability_of_its_best_name_at_once() -> None:
    """Of words that begin alike; later arcs make up the difference."""
    arcs = made()
    first = arcs[np.flatnonzero(arcs.sources == 0)]
    by_token = {int(label): math.exp(score) for label, score in zip(first.labels, first.scores)}
    assert by_token == pytest.approx({1: 6 / 9, 3: 1 / 9})  # "ann", alone or followed by "bell"
    assert (arcs.scores <= 1e-12).all()


def test_names_with_a_word_without_pronunciation_have_no_path() -> None:
    """The others keep their probabilities."""
    sub = make_sub_lm(NAMES, "tree")
    lacking = {word: spoken for word, spoken in SPOKEN.items() if word != "bell"}
    arcs = name_arcs(sub, spoken_words(WORDS, lacking), np.arange(1, 5))
    assert readings(arcs, [1, 2]) == pytest.approx({("ann",): 4 / 9, ("an",): 1 / 9})
    assert readings(arcs, [3, 4, 5]) == readings(arcs, [1, 2, 3, 5]) == {}
