"""An n-gram approximation of a language model [turan2022, section 2.4].

The model reads a text. *Expected*: after each history of the text stands the average of what the
model predicts there, for all words. *Average*, as the paper has it: an n-gram has the average of
the probabilities of its occurrences, normalized over the words that follow its history in the text.
Where a word occurs it is likelier than elsewhere after the same history, and differently so for
each word; so *average* does not give a trigram's own probabilities back.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from privasr_k2.constraints import Checked, Count, Different, Natural, Positive, one_of
from privasr_k2.errors import DataError
from privasr_k2.lm.arpa import LOG10_ZERO, UNK, Arpa, encode
from privasr_k2.lm.distributions import Distributions
from privasr_k2.lm.ngram import Counts, as_model, count_ngrams, keep_known, perplexity
from privasr_k2.lm.perplexity import LanguageModel
from privasr_k2.lm.pruning import with_fitting_backoffs
from privasr_k2.lm.soft_counts import SoftCounts, SoftLevel, soft_counts

log = logging.getLogger(__name__)

Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class ApproximationConfig(Checked):
    """How a model is approximated; see ``conf/common.yaml#approximate``."""

    estimate: Annotated[str, one_of("expected", "average")]
    order: Count
    unigrams: Annotated[str, one_of("average", "counts")]
    priors: Annotated[list[Positive], Different()]
    least: Positive
    occurrences: Natural
    max_ngrams: Natural
    block_words: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.priors:
            raise ValueError("priors must hold a value")


def expected(
    lm: Distributions,
    sentences: Sentences,
    vocabulary: Sequence[str],
    config: ApproximationConfig,
    dev: Sentences = (),
) -> Arpa:
    """The n-grams that a model expects after the histories of a text.

    With the soft count ``E(hw)``, the sum of the model's P(w) at the ``c(h)`` occurrences of h,

        P(w|h) = (E(hw) + m P(w|h')) / (c(h) + m)

    for the n-grams that :func:`privasr_k2.lm.soft_counts.soft_counts` keeps; back-off weights give
    the rest to other words. P(w) is smoothed alike by the uniform distribution. The prior m is that
    of ``config.priors`` with the least perplexity of ``dev``.

    Args:
        vocabulary: as for :func:`privasr_k2.lm.ngram.count_ngrams`.

    Raises:
        DataError: several priors and no ``dev``, or a model without a word of the vocabulary.

    >>> from privasr_k2.lm.distributions import ArpaDistributions
    >>> from privasr_k2.lm.ngram import estimate
    >>> text = [["a", "b"], ["a"]]
    >>> lm = estimate(count_ngrams(text, ["a", "b"], order=2), "witten_bell")
    >>> config = ApproximationConfig("expected", 2, "average", [1e-6], 1e-9, 0, 0, 100)
    >>> found = expected(ArpaDistributions(lm), text, ["a", "b"], config)
    >>> abs(perplexity(found, text) / perplexity(lm, text) - 1) < 1e-3
    True
    """
    if len(config.priors) > 1 and not any(dev):
        way_out = "give some (--in-dev), or one prior: --set priors=[0.5]"
        raise DataError("dev text", "sentences to choose a prior by", "none", way_out)
    counts = count_ngrams(sentences, vocabulary, order=config.order)
    soft = soft_counts(lm, sentences, counts, least=config.least, occurrences=config.occurrences)
    best, least = None, np.inf
    for prior in config.priors:
        model = smoothed(counts, soft, prior, config.unigrams)
        found = perplexity(model, dev) if len(config.priors) > 1 else 0.0
        log.info("prior %g: perplexity of dev %.2f", prior, found)
        if found < least:
            best, least = model, found
    assert best is not None
    return best


def smoothed(counts: Counts, soft: SoftCounts, prior: float, unigrams: str) -> Arpa:
    """The model of soft counts, as :func:`expected` has it."""
    num_words = len(counts.words)
    predicted = np.arange(num_words) > 0  # all but <s>
    uniform = predicted / (num_words - 1)
    values, mass = soft.unigrams, prior
    if unigrams == "counts":
        values = np.where(predicted, counts.counts[0], 0).astype(np.float64)
        mass = float(np.count_nonzero(values))
    probs = (values + mass * uniform) / (values.sum() + mass)
    with np.errstate(divide="ignore"):
        first = np.maximum(np.log10(probs), LOG10_ZERO)
    model = Arpa(counts.words, (num_words,), np.arange(num_words), first, np.zeros(num_words))
    nodes = np.arange(num_words) + 1  # of the histories, by their rows among the text's
    for level, of_level in enumerate(soft.levels, start=1):
        model = _longer(model, nodes, of_level, prior)
        start = sum(model.counts[:level])
        rows = np.searchsorted(of_level.keys, counts.keys[level])
        nodes = start + np.minimum(rows, len(of_level.keys) - 1) + 1
    return keep_known(model)


def _longer(model: Arpa, nodes: np.ndarray, level: SoftLevel, prior: float) -> Arpa:
    """The model with the n-grams of one more order."""
    histories, words = np.divmod(level.keys, len(model.words))
    parents = nodes[histories]
    lower = 10.0 ** model.log10_conditional(model.suffixes[parents], words)
    probs = (level.values + prior * lower) / (level.totals[histories] + prior)
    return with_fitting_backoffs(
        Arpa(
            model.words,
            (*model.counts, len(probs)),
            np.concatenate([model.keys, parents * len(model.words) + words]),
            np.concatenate([model.log10_probs, np.log10(probs)]),
            np.zeros(len(model.keys) + len(probs)),
        )
    )


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
