"""An n-gram approximation of any language model [turan2022, section 2.4].

The model reads a text. The probability of each word belongs to the unigram, bigram, ... that ends
there; an n-gram has the average of its occurrences, normalized over the words that follow its
history, and smoothed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from privasr_k2.constraints import Checked, Count, Natural, one_of
from privasr_k2.errors import DataError
from privasr_k2.lm.arpa import UNK, Arpa, encode
from privasr_k2.lm.ngram import Counts, as_model, count_ngrams
from privasr_k2.lm.perplexity import LanguageModel

Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class ApproximationConfig(Checked):
    """How a model is approximated; see ``conf/common.yaml#approximate``."""

    order: Count
    unigrams: Annotated[str, one_of("average", "counts")]
    max_ngrams: Natural
    block_words: Count


def probs_of_text(lm: LanguageModel, sentences: Sentences, block_words: int) -> np.ndarray:
    """(M,) P of every word and sentence end of a text, read in blocks of about ``block_words``.

    Raises:
        DataError: a probability that is not finite.
    """
    sizes = np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)])
    blocks, start = [np.zeros(0)], 0
    while start < len(sentences):
        end = int(np.searchsorted(sizes, sizes[start] + block_words, side="right")) - 1
        end = max(start + 1, end)
        blocks.append(np.exp(lm.token_log_probs(sentences[start:end])))
        start = end
    probs = np.concatenate(blocks)
    if not np.isfinite(probs).all():
        raise DataError(lm.name, "probabilities", "a number that is none", "train the model again")
    return probs


def approximate(
    sentences: Sentences, probs: np.ndarray, vocabulary: Sequence[str], *, order: int, unigrams: str
) -> Arpa:
    """The n-grams of a text with a model's probabilities.

    With the average ``p(hw)`` of the model's probabilities at the occurrences of an n-gram and T(h)
    different words after c(h) occurrences of h [Witten & Bell 1991],

        P(w|h) = (1 - g(h)) p(hw) / sum over w' of p(hw') + g(h) P(w|h')
        g(h) = T(h) / (c(h) + T(h))

    P(w) is smoothed alike by the uniform distribution.

    Args:
        probs: (M,) the model's probability of every word and sentence end of ``sentences``.
        vocabulary: as for :func:`privasr_k2.lm.ngram.count_ngrams`.
        order, unigrams: as in :class:`ApproximationConfig`.

    >>> text, probs = [["a", "b"], ["a"]], np.array([0.9, 0.2, 0.9, 0.9, 0.3])
    >>> approximate(text, probs, ["a", "b"], order=2, unigrams="counts").counts
    (5, 4)
    """
    counts = count_ngrams(sentences, vocabulary, order=order)
    sums = _sums(counts, sentences, probs)
    num_words = len(counts.words)
    levels: list[np.ndarray] = []
    backoffs: list[np.ndarray] = []
    for level, (keys, number, total) in enumerate(zip(counts.keys, counts.counts, sums)):
        if level == 0:
            predicted = np.arange(num_words) > 0  # all but <s>
            number, lower = np.where(predicted, number, 0), predicted / (num_words - 1)
            histories, num_histories = np.zeros(num_words, np.int64), 1
        else:
            histories, lower = keys // num_words, levels[-1][counts.suffixes[level]]
            num_histories = len(counts.keys[level - 1])
        value = total / np.maximum(number, 1)
        if level == 0 and unigrams == "counts":
            value = number.astype(np.float64)
        mass = np.bincount(histories, value, minlength=num_histories)
        kinds = np.bincount(histories, number > 0, minlength=num_histories)
        totals = np.bincount(histories, number, minlength=num_histories)
        left = kinds / np.maximum(totals + kinds, 1)
        # Values too small for a float leave all to the lower order.
        left = np.where(mass > 0, left, 1.0)
        seen = value / np.where(mass > 0, mass, 1.0)[histories]
        levels.append((1 - left[histories]) * seen + left[histories] * lower)
        if level:
            backoffs.append(np.where(kinds > 0, left, 1.0))
    backoffs.append(np.ones(len(levels[-1])))
    return as_model(counts, levels, backoffs)


def _sums(counts: Counts, sentences: Sentences, probs: np.ndarray) -> list[np.ndarray]:
    """For each order, the sum of the probabilities at the occurrences of each n-gram."""
    ids = {word: number for number, word in enumerate(counts.words)}
    tokens, sentence_of = encode(sentences, ids, ids[UNK])
    values = np.zeros(len(tokens))
    if (count := np.count_nonzero(tokens)) != len(probs):
        expected = f"{count} words and sentence ends"
        raise DataError("probabilities of the text", expected, f"{len(probs)}", "score this text")
    values[tokens != 0] = probs
    rows, sums = tokens, [np.bincount(tokens, values, minlength=len(counts.words))]
    for length, keys in enumerate(counts.keys[1:], start=2):
        inside = sentence_of[: len(tokens) - length + 1] == sentence_of[length - 1 :]
        starts = np.flatnonzero(inside)
        ends = starts + length - 1
        which = np.searchsorted(keys, rows[starts] * len(counts.words) + tokens[ends])
        sums.append(np.bincount(which, values[ends], minlength=len(keys)))
        rows = np.full(len(tokens), -1, dtype=np.int64)
        rows[starts] = which
    return sums
