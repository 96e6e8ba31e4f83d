"""Adaptation, interpolation and approximation of n-gram models against their formulas."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.lm.approximate import ApproximationConfig, approximate, expected
from privasr_k2.lm.arpa import Arpa, write_arpa
from privasr_k2.lm.distributions import ArpaDistributions
from privasr_k2.lm.interpolate import Interpolated, em_weights, interpolate
from privasr_k2.lm.marginals import adapt, history_sums, smoothed_unigrams
from privasr_k2.lm.ngram import count_ngrams, estimate, perplexity
from privasr_k2.lm.perplexity import KenlmModel
from privasr_k2.lm.pruning import prune_to
from privasr_k2.randomness import stream
from tests.support.tiny_lm import VOCABULARY, sentences, slow_prob, table

PREDICTED = ["</s>", "<unk>", *VOCABULARY]


def model(
    seed: int, order: int, discounting: str, limit: int = 10**9, words: list[str] = VOCABULARY
) -> Arpa:
    counts = count_ngrams(sentences(seed, 150, words=words), words, order=order)
    return prune_to(estimate(counts, discounting), limit)[0]


def histories(count: int) -> list[tuple[str, ...]]:
    """Seen and unseen ones, of 0 to 3 words, some from a sentence's beginning."""
    generator = stream(7, "histories")
    lengths = generator.integers(0, 4, count).tolist()
    made = [tuple(s[:n]) for s, n in zip(sentences(8, count), lengths)]
    return [("<s>", *h) if n % 3 == 0 else h for n, h in enumerate(made)]


@pytest.mark.parametrize("discounting", ["modified_kneser_ney", "witten_bell"])
@pytest.mark.parametrize("equation", [1, 2])
@pytest.mark.parametrize("beta", [0.3, 1.0])
@pytest.mark.parametrize("own_marginals", [True, False])
def test_adapted_model_is_the_formula(
    tmp_path: Path, discounting: str, equation: int, beta: float, own_marginals: bool
) -> None:
    background = model(1, 3, discounting, 300)
    target = smoothed_unigrams(sentences(2, 30, reverse=True), background, 0.0)
    base = None if own_marginals else smoothed_unigrams(sentences(1, 150), background, 3.0)
    adapted = adapt(background, target, beta, equation=equation, background=base)
    before, after = table(background), table(adapted)
    p_b = {w: before[(w,)][0] if base is None else base[background.word_ids[w]] for w in PREDICTED}
    p_a = {w: target[background.word_ids[w]] for w in PREDICTED}
    for history in histories(60):
        values = {}
        for word in PREDICTED:
            given = slow_prob(before, history, word)
            first = (p_a[word] / p_b[word]) ** beta * given
            values[word] = first if equation == 1 else (given / p_b[word]) ** beta * p_a[word]
        normalizer = sum(values.values())
        for word in PREDICTED[:: 1 + len(history)]:
            found = slow_prob(after, history, word)
            assert found == pytest.approx(values[word] / normalizer, abs=1e-12), (history, word)
    pytest.importorskip("kenlm")
    write_arpa(adapted, tmp_path / "a.arpa")
    test = sentences(3, 20)
    scores = adapted.sentence_scores(test)[0] * math.log(10)
    expected = KenlmModel(tmp_path / "a.arpa").score_sentences(test)
    np.testing.assert_allclose(scores, expected, atol=1e-4)


@pytest.mark.parametrize("orders", [(3, 3), (3, 2), (1, 3)])
def test_static_interpolation(tmp_path: Path, orders: tuple[int, int]) -> None:
    """At the union's n-grams the mixture exactly; elsewhere its own back-off."""
    words = [*VOCABULARY[4:], "x", "y"]  # the models do not know the same words
    parts = [
        model(1, orders[0], "modified_kneser_ney", 250),
        model(2, orders[1], "witten_bell", words=words),
    ]
    weights = [0.3, 0.7]
    mixed = interpolate(parts, weights)
    tables, union = [table(part) for part in parts], table(mixed)
    assert set(union) == set(tables[0]) | set(tables[1])
    assert mixed.words[:3] == ("<s>", "</s>", "<unk>")
    for *history, word in union:
        if word == "<s>":
            continue
        expected = 0.0
        for weight, part in zip(weights, tables):
            known = [n for n, w in enumerate(history) if (w,) not in part]
            usable = tuple(history[known[-1] + 1 if known else 0 :])
            expected += weight * slow_prob(part, usable, word)
        assert union[(*history, word)][0] == pytest.approx(expected, abs=1e-12), (history, word)
    assert np.abs(history_sums(mixed) - 1).max() < 1e-10
    pytest.importorskip("kenlm")
    write_arpa(mixed, tmp_path / "a.arpa")
    test = sentences(3, 20)
    scores = mixed.sentence_scores(test)[0] * math.log(10)
    expected = KenlmModel(tmp_path / "a.arpa").score_sentences(test)
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_dynamic_interpolation_is_the_mixture_of_probabilities(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    parts = [model(1, 3, "modified_kneser_ney"), model(2, 2, "witten_bell")]
    lms = []
    for number, part in enumerate(parts):
        write_arpa(part, tmp_path / f"{number}.arpa")
        lms.append(KenlmModel(tmp_path / f"{number}.arpa"))
    tables, expected = [table(part) for part in parts], []
    test = sentences(3, 20)
    for sentence in test:
        padded = ["<s>", *sentence, "</s>"]
        for place in range(1, len(padded)):
            history = tuple(padded[max(0, place - 2) : place])
            probs = [slow_prob(part, history, padded[place]) for part in tables]
            expected.append(np.dot([0.2, 0.8], probs))
    mixture = Interpolated(lms, [0.2, 0.8])
    np.testing.assert_allclose(mixture.token_log_probs(test), np.log(expected), atol=1e-5)
    np.testing.assert_array_equal(
        mixture.nbest_token_log_probs([test[:5], test[5:]]), mixture.token_log_probs(test)
    )


def test_em_finds_the_best_weights() -> None:
    generator = stream(5, "probabilities")
    log_probs = np.log(generator.random((400, 3)) ** [1.0, 2.0, 3.0])
    log_probs[::5, 0] = -np.inf
    weights, mean = em_weights(log_probs, max_steps=5000, tolerance=1e-12)
    assert weights.sum() == pytest.approx(1)
    grid = [(a / 60, b / 60) for a in range(61) for b in range(61 - a)]
    best = max(np.log(np.exp(log_probs) @ [a, b, 1 - a - b]).mean() for a, b in grid if a < 1)
    assert best <= mean + 1e-9 and mean - best < 2e-3
    assert np.log(np.exp(log_probs) @ weights).mean() == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("unigrams", ["average", "counts"])
def test_approximation_is_its_formula(unigrams: str) -> None:
    text = sentences(1, 80)
    given = stream(6, "probabilities").random(sum(len(s) + 1 for s in text))
    found = table(approximate(text, given, VOCABULARY, order=3, unigrams=unigrams))
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    values = iter(given.tolist())
    for sentence in text:
        padded = ["<s>", *sentence, "</s>"]
        for place in range(1, len(padded)):
            value = next(values)
            for order in (1, 2, 3):
                if place + 1 >= order:
                    sums[tuple(padded[place + 1 - order : place + 1])] += value
                    counts[tuple(padded[place + 1 - order : place + 1])] += 1
    followers: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for ngram in counts:
        followers[ngram[:-1]].append(ngram)

    def value_of(ngram: tuple[str, ...]) -> float:
        if len(ngram) == 1 and unigrams == "counts":
            return counts[ngram]
        return sums[ngram] / counts[ngram]

    def prob(ngram: tuple[str, ...]) -> float:
        history = ngram[:-1]
        lower = prob(ngram[1:]) if history else 1 / (len(VOCABULARY) + 2)
        if not followers[history]:
            return lower
        total, kinds = sum(counts[n] for n in followers[history]), len(followers[history])
        left = kinds / (kinds + total)
        share = value_of(ngram) / sum(map(value_of, followers[history])) if ngram in counts else 0.0
        return (1 - left) * share + left * lower

    assert set(counts) <= set(found)
    for ngram in (n for n in found if n != ("<s>",)):
        assert found[ngram][0] == pytest.approx(prob(ngram), abs=1e-12), ngram


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("unigrams", ["average", "counts"])
def test_expected_n_grams_are_their_formula(order: int, unigrams: str) -> None:
    text, teacher, prior = sentences(1, 60), model(2, 3, "modified_kneser_ney"), 1.5
    config = ApproximationConfig("expected", order, unigrams, [prior], 0.02, 0, 0, 1)
    found = table(expected(ArpaDistributions(teacher), text, VOCABULARY, config))
    known = table(teacher)
    soft: dict[tuple[str, ...], float] = defaultdict(float)
    totals: dict[tuple[str, ...], int] = defaultdict(int)
    said: dict[str, int] = defaultdict(int)
    for sentence in text:
        padded = ["<s>", *sentence, "</s>"]
        for place in range(1, len(padded)):
            said[padded[place]] += 1
            before = tuple(padded[max(0, place - 2) : place])
            for length in range(min(order, place + 1)):
                history = tuple(padded[place - length : place])
                totals[history] += 1
                for word in PREDICTED:
                    soft[(*history, word)] += slow_prob(known, before, word)

    def prob(history: tuple[str, ...], word: str) -> float:
        if not history:
            uniform = 1 / len(PREDICTED)
            if unigrams == "counts":
                return (said.get(word, 0) + len(said) * uniform) / (totals[()] + len(said))
            return (soft[(word,)] + prior * uniform) / (totals[()] + prior)
        lower = slow_prob(found, history[1:], word)
        return (soft[(*history, word)] + prior * lower) / (totals[history] + prior)

    for ngram in (n for n in found if n != ("<s>",)):
        assert found[ngram][0] == pytest.approx(prob(ngram[:-1], ngram[-1]), rel=1e-5), ngram
    # What is expected often enough is there, whether or not the text says it.
    often = {n for n, value in soft.items() if value > 0.021 and "<unk>" not in n[-1:]}
    assert often <= set(found)
    if order > 1:
        texts = {(*h, w) for s in text for h, w in zip([("<s>",), *zip(s)], [*s, "</s>"])}
        assert [n for n in often if len(n) == 2 and n not in texts]
    assert not [n for n in found if len(n) == 3 and soft[n] < 0.019]


def test_a_teacher_of_the_same_order_comes_back() -> None:
    """Where averages at a text's own words lose some of what it knows."""
    words = [f"w{n}" for n in range(100)]
    generator = stream(9, "chain")
    chain = generator.dirichlet(np.full(100, 0.05), size=100)  # few words follow a word

    def walk(count: int) -> list[list[str]]:
        texts = []
        for _ in range(count):
            at, text = int(generator.integers(100)), []
            for _ in range(10):
                text.append(words[at])
                at = int(generator.choice(100, p=chain[at]))
            texts.append(text)
        return texts

    text, dev = walk(300), walk(100)
    teacher = estimate(count_ngrams(text, words, order=3), "kneser_ney")
    lm = ArpaDistributions(teacher)
    config = ApproximationConfig("expected", 3, "average", [0.5, 2.0], 0.01, 4, 0, 1)
    found = expected(lm, text, words, config, dev)
    assert perplexity(found, dev) < 1.02 * perplexity(teacher, dev)
    states = lm.states(text)
    columns = [teacher.word_ids[word] for s in text for word in (*s, "</s>")]
    probs = lm.probs(states)[np.arange(len(states)), columns].astype(np.float64)
    averages = approximate(text, probs, words, order=3, unigrams="average")
    assert perplexity(averages, dev) > 1.1 * perplexity(teacher, dev)
