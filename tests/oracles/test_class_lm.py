"""Class models against the enumeration of all that may be hidden in a sentence."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.sub_lm import KINDS, SubLm, make_sub_lm
from privasr_k2.randomness import stream
from tests.support.class_lm import PER, PLAIN, class_lm, reading_probs


def slow_prob_of_sentence(lm: ClassLm, sentence: list[str]) -> float:
    return sum(prob for _, prob in reading_probs(lm, sentence))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut_history", [False, True])
@pytest.mark.parametrize("order", [2, 3])
def test_sentences_are_summed_over_all_readings(kind: str, cut_history: bool, order: int) -> None:
    lm = class_lm(kind, cut_history, order=order)
    generator = stream(2, "sentences of names")
    words = ["rose", "new", "york", "ann", "a", "<unk>"]
    test = [[words[i] for i in generator.integers(0, len(words), size=n % 7)] for n in range(50)]
    scores = lm.token_log_probs(test)
    owners = np.repeat(np.arange(len(test)), [len(s) + 1 for s in test])
    found = np.bincount(owners, scores)
    with np.errstate(divide="ignore"):
        expected = np.log([slow_prob_of_sentence(lm, sentence) for sentence in test])
    assert np.isfinite(expected).sum() > 10
    np.testing.assert_allclose(found, expected, atol=1e-10)
    alone = np.concatenate([lm.token_log_probs([sentence]) for sentence in test])
    np.testing.assert_allclose(scores, alone, atol=1e-12)  # whatever else is in the batch
    nbests = [test[:9], [], test[9:]]
    np.testing.assert_allclose(lm.nbest_token_log_probs(nbests), scores, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut_history", [False, True])
def test_words_sum_to_one_after_every_history(kind: str, cut_history: bool) -> None:
    lm = class_lm(kind, cut_history)
    vocabulary = [*sorted(lm.words), "<unk>"]
    assert set(vocabulary) == {*PLAIN, "ann", "<unk>"}
    for length in range(4):
        for history in itertools.product(vocabulary[::2], repeat=length):
            longer = [[*history, word] for word in vocabulary]
            probs = np.exp(lm.token_log_probs([*longer, list(history)]))
            at_word = probs[: len(longer) * (length + 2)].reshape(len(longer), -1)[:, length]
            assert at_word.sum() + probs[-1] == pytest.approx(1, abs=1e-12), history
    nodes, states = lm.sums()
    assert max(np.abs(nodes - 1).max(), np.abs(states - 1).max()) < 1e-12


@pytest.mark.parametrize("unknown_mass", [0.0, 0.2])
def test_a_tree_keeps_relative_frequencies(unknown_mass: float) -> None:
    sub = make_sub_lm(PER, "tree", unknown_mass=unknown_mass)
    for name, weight in PER.items():
        assert math.exp(sub.log_prob(name)) == pytest.approx((1 - unknown_mass) * weight / 5.5)
    total = sum(math.exp(sub.log_prob(n)) for n in PER)
    assert total == pytest.approx(1 - unknown_mass)
    mean = sum(weight * len(name) for name, weight in PER.items()) / 5.5
    unknown = [math.exp(sub.log_prob(("<unk>",) * n)) for n in range(1, 200)]
    assert sum(unknown) == pytest.approx(unknown_mass)
    if unknown_mass:
        assert np.dot(unknown, range(1, 200)) / unknown_mass == pytest.approx(mean)


def all_names(sub: SubLm, longest: int) -> dict[tuple[str, ...], float]:
    words = [word for word in sub.words if word != "<unk>"]
    names = (n for size in range(longest + 1) for n in itertools.product(words, repeat=size))
    return {
        name: math.exp(sub.log_prob(name)) for name in names if math.isfinite(sub.log_prob(name))
    }


def test_unigrams_and_bigrams_by_their_formulas() -> None:
    names = {("a",): 1.0, ("a", "b"): 2.0, ("b", "b", "a"): 1.0}
    share = {"a": 4 / 8, "b": 4 / 8}  # of 1 + 2 * 2 + 3 words
    ending = 4 / 8  # names by words
    for name, prob in all_names(make_sub_lm(names, "unigram"), 4).items():
        expected = math.prod(share[w] for w in name) * ending * (1 - ending) ** (len(name) - 1)
        assert prob == pytest.approx(expected)
    pairs = {("", "a"): 3, ("", "b"): 1, ("a", ""): 2, ("a", "b"): 2}
    pairs |= {("b", ""): 2, ("b", "b"): 1, ("b", "a"): 1}
    for name, prob in all_names(make_sub_lm(names, "bigram"), 4).items():
        chain = list(itertools.pairwise(["", *name, ""]))
        totals = {h: sum(c for (g, _), c in pairs.items() if g == h) for h in ("", "a", "b")}
        expected = math.prod(pairs[pair] / totals[pair[0]] for pair in chain)
        assert prob == pytest.approx(expected), name
    assert all_names(make_sub_lm({("a",): 1.0}, "unigram"), 3) == {("a",): 1.0}
