"""Scores against kenlm, estimates and pruning against kaldingram, all against a slow dictionary."""

from __future__ import annotations

import gzip
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.lm.arpa import Arpa, read_arpa, write_arpa
from privasr_k2.lm.ngram import DISCOUNTINGS, count_ngrams, estimate
from privasr_k2.lm.pruning import history_probs, keep_rows, perplexity_changes, prune_to
from privasr_k2.randomness import stream

VOCABULARY = [f"w{n}" for n in range(30)]


def sentences(seed: int, count: int = 300) -> list[list[str]]:
    generator = stream(seed, "sentences")
    weights = 1.0 / np.arange(1, len(VOCABULARY) + 1)
    found = []
    for _ in range(count):
        size = int(generator.integers(1, 9))
        found.append(
            [VOCABULARY[i] for i in generator.choice(30, size=size, p=weights / weights.sum())]
        )
    return found


def as_dictionary(model: Arpa) -> dict[tuple[str, ...], tuple[float, float]]:
    ngrams: list[tuple[str, ...]] = [()]
    for parent, word in zip(model.parents.tolist(), model.last_words.tolist()):
        ngrams.append((*ngrams[parent], model.words[word]))
    return dict(zip(ngrams[1:], zip(model.log10_probs.tolist(), model.log10_backoffs.tolist())))


def slow_log10_prob(
    table: dict[tuple[str, ...], tuple[float, float]], history: tuple[str, ...], word: str
) -> float:
    if (*history, word) in table:
        return table[(*history, word)][0]
    return table.get(history, (0.0, 0.0))[1] + slow_log10_prob(table, history[1:], word)


def slow_score(model: Arpa, sentence: list[str]) -> float:
    table, words = as_dictionary(model), ["<s>", *sentence, "</s>"]
    return sum(
        slow_log10_prob(table, tuple(words[max(0, i - model.order + 1) : i]), words[i])
        for i in range(1, len(words))
    )


@pytest.mark.parametrize("limit", [10**9, 200])
@pytest.mark.parametrize("discounting", DISCOUNTINGS)
def test_scores_equal_kenlm_and_a_dictionary(tmp_path: Path, discounting: str, limit: int) -> None:
    kenlm = pytest.importorskip("kenlm")
    model, _ = prune_to(
        estimate(count_ngrams(sentences(1), VOCABULARY, order=4), discounting), limit
    )
    write_arpa(model, tmp_path / "a.arpa")
    read, test = read_arpa(tmp_path / "a.arpa"), sentences(2, 40)
    found, unknown = read.sentence_scores(test)
    reference = kenlm.Model(str(tmp_path / "a.arpa"))
    assert unknown == 0
    np.testing.assert_allclose(found, [slow_score(read, s) for s in test], atol=1e-9)
    np.testing.assert_allclose(found, [reference.score(" ".join(s)) for s in test], atol=1e-4)


@pytest.mark.parametrize("order", [2, 3])
def test_kneser_ney_equals_kaldingram(tmp_path: Path, order: int) -> None:
    train = pytest.importorskip("kaldingram.train")
    text = sentences(3)
    other = train.NgramCounts(order)
    for sentence in text:
        other.add_raw_counts_from_line(" ".join(sentence))
    other.cal_discounting_constants()
    other.cal_f()
    other.cal_bow()
    with (tmp_path / "b.arpa").open("w") as file:
        other.print_as_arpa(file)
    expected = as_dictionary(read_arpa(tmp_path / "b.arpa"))
    seen = sorted({word for sentence in text for word in sentence})
    found = as_dictionary(estimate(count_ngrams(text, seen, order=order), "kneser_ney"))
    del found[("<unk>",)]
    assert set(found) == set(expected)
    for ngram, (log10_prob, log10_backoff) in expected.items():
        assert found[ngram][0] == pytest.approx(log10_prob, abs=2e-6), ngram
        assert found[ngram][1] == pytest.approx(log10_backoff, abs=2e-6), ngram


@pytest.mark.parametrize("threshold", [1e-4, 1e-3])
@pytest.mark.parametrize("discounting", ["kneser_ney", "witten_bell"])
def test_pruning_equals_kaldingram(tmp_path: Path, discounting: str, threshold: float) -> None:
    prune = pytest.importorskip("kaldingram.prune")
    model = estimate(count_ngrams(sentences(4), VOCABULARY, order=3), discounting)
    write_arpa(model, tmp_path / "a.arpa")
    model = read_arpa(tmp_path / "a.arpa")
    other = prune.ArpaParser().loadf(str(tmp_path / "a.arpa"))[0]
    prune.prune(other, threshold, 1)
    prune.ArpaParser().dumpf(other, str(tmp_path / "b.arpa"))
    expected = as_dictionary(read_arpa(tmp_path / "b.arpa"))

    # kaldingram 0.1.2 takes <s> alone as a history of probability zero (that of the unigram <s>).
    histories = history_probs(model)
    histories[model.word_ids["<s>"] + 1] = -99.0
    scores = perplexity_changes(model, histories)
    for rows in reversed(model.rows_of_orders()[1:]):
        np.maximum.at(scores, model.parents[rows] - 1, scores[rows])
    kept = scores >= threshold
    found = as_dictionary(keep_rows(model, kept))
    assert 0 < np.count_nonzero(~kept) < len(kept) - len(model.words)
    assert set(found) == set(expected)
    for ngram, (log10_prob, log10_backoff) in expected.items():
        assert found[ngram] == pytest.approx((log10_prob, log10_backoff), abs=1e-5), ngram
    # The same model comes from its size alone.
    by_size, found_threshold = prune_to(model, int(np.count_nonzero(kept)), histories)
    assert set(as_dictionary(by_size)) == set(expected)
    assert found_threshold < threshold


def test_modified_kneser_ney_equals_its_formula() -> None:
    """Chen & Goodman's equations written with dictionaries, order 2."""
    text = sentences(5)
    model = estimate(count_ngrams(text, VOCABULARY, order=2), "modified_kneser_ney")
    bigrams: dict[tuple[str, str], int] = {}
    for sentence in text:
        words = ["<s>", *sentence, "</s>"]
        for pair in itertools.pairwise(words):
            bigrams[pair] = bigrams.get(pair, 0) + 1
    n = [sum(count == k for count in bigrams.values()) for k in range(5)]
    y = n[1] / (n[1] + 2 * n[2])
    discount = [0.0, 1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]]
    before = {w: len({h for h, x in bigrams if x == w}) for _, w in bigrams}
    kinds, predictable = len(before), len(VOCABULARY) + 2
    table = as_dictionary(model)
    for (history, word), count in bigrams.items():
        followers = {w: c for (h, w), c in bigrams.items() if h == history}
        total = sum(followers.values())
        gamma = sum(discount[min(c, 3)] for c in followers.values()) / total
        unigram = (before[word] + kinds / predictable) / (len(bigrams) + kinds)
        expected = (count - discount[min(count, 3)]) / total + gamma * unigram
        assert table[(history, word)][0] == pytest.approx(math.log10(expected), abs=1e-9)
        assert table[(history,)][1] == pytest.approx(math.log10(gamma), abs=1e-9)


def test_gzip_is_what_gzip_reads(tmp_path: Path) -> None:
    write_arpa(estimate(count_ngrams([["a"]], ["a"], order=1), "witten_bell"), tmp_path / "a.gz")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()).startswith(b"\\data\\\nngram 1=4\n")
