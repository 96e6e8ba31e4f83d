"""Estimating a word n-gram model: counts, discounting, back-off weights.

N-grams of every order are counted by sorting keys in a trie, as in
:class:`privasr_k2.lm.arpa.Arpa`. The vocabulary is closed: other words are counted as ``<unk>``.
Longer n-grams with ``<unk>`` are left out of the model, because a decoder never asks for them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.lm.arpa import BOS, EOS, LOG10_ZERO, UNK, Arpa, encode
from privasr_k2.lm.pruning import keep_rows

log = logging.getLogger(__name__)

DISCOUNTINGS = ("witten_bell", "kneser_ney", "modified_kneser_ney")


@dataclass(frozen=True)
class Counts:
    """N-gram counts as a trie.

    Args:
        words: the V words, with ``<s>``, ``</s>`` and ``<unk>``.
        keys: per order, ascending: ``row of the history (one order down) * V + word``.
        counts: of each n-gram in the text.
        suffixes: the row (one order down) of each n-gram without its first word.
    """

    words: tuple[str, ...]
    keys: list[np.ndarray]
    counts: list[np.ndarray]
    suffixes: list[np.ndarray]


def count_ngrams(
    sentences: Sequence[Sequence[str]], vocabulary: Sequence[str], *, order: int
) -> Counts:
    """Count all n-grams up to ``order``; words outside ``vocabulary`` count as ``<unk>``.

    >>> counts = count_ngrams([["a", "b"], ["a"]], ["a", "b"], order=2)
    >>> counts.words, counts.counts[0].tolist()
    (('<s>', '</s>', '<unk>', 'a', 'b'), [2, 2, 0, 2, 1])
    """
    words = (BOS, EOS, UNK, *vocabulary)
    word_ids = {word: number for number, word in enumerate(words)}
    if len(word_ids) < len(words):
        raise DataError(
            "words.txt", "each word once, and none of <s> </s> <unk>", "other", "repair"
        )
    tokens, sentence_of = encode(sentences, word_ids, word_ids[UNK])
    if len(tokens) == 2 * len(sentences):
        raise DataError("the text of the language model", "words", "none", "give text")
    return count_tokens(tokens, sentence_of, words, order=order)


def count_tokens(
    tokens: np.ndarray, sentence_of: np.ndarray, words: tuple[str, ...], *, order: int
) -> Counts:
    """The same of a text as numbers.

    Args:
        tokens: (M,) numbers of ``words``, each sentence between ``<s>`` and ``</s>``.
        sentence_of: (M,) ascending, the sentence of each token.
        words: ``<s>``, ``</s>``, ``<unk>`` and the others.

    >>> tokens, sentence_of = np.array([0, 3, 1, 0, 3, 1]), np.array([0, 0, 0, 1, 1, 1])
    >>> counts = count_tokens(tokens, sentence_of, ("<s>", "</s>", "<unk>", "a"), order=2)
    >>> counts.counts[1].tolist()
    [2, 2]
    """
    keys = [np.arange(len(words), dtype=np.int64)]
    counts = [np.bincount(tokens, minlength=len(words))]
    suffixes = [np.zeros(len(words), dtype=np.int64)]
    # of the window that starts at each position; -1 where it crosses a sentence's border
    rows = tokens
    for length in range(2, order + 1):
        inside = sentence_of[: len(tokens) - length + 1] == sentence_of[length - 1 :]
        starts = np.flatnonzero(inside)
        windows = rows[starts] * len(words) + tokens[starts + length - 1]
        new_keys, first, inverse, new_counts = np.unique(
            windows, return_index=True, return_inverse=True, return_counts=True
        )
        suffixes.append(rows[starts[first] + 1])
        keys.append(new_keys)
        counts.append(new_counts)
        rows = np.full(len(tokens), -1, dtype=np.int64)
        rows[starts] = inverse.reshape(-1)
    return Counts(words, keys, counts, suffixes)


def estimate(counts: Counts, discounting: str, *, left_out: int = 0) -> Arpa:
    """A back-off model from counts.

    - ``witten_bell``: ``P(w|h) = (c(hw) + T(h) P(w|h')) / (c(h) + T(h))``, T(h) different words
      after h [Witten & Bell 1991, method C, interpolated]. It stands pruning well [Chelba et al.
      2010].
    - ``kneser_ney``: one discount ``D = n1 / (n1 + 2 n2)`` per order, back-off, as SRILM's
      ``-ukndiscount -kn-modify-counts-at-end`` [Kneser & Ney 1995].
    - ``modified_kneser_ney``: three discounts per order, interpolated [Chen & Goodman 1998].

    Args:
        left_out: words of the vocabulary that are not in ``counts``, for Witten and Bell's. Each
            has the probability of a word of ``counts`` that was not seen.

    Raises:
        ConfigError: an unknown ``discounting``.

    >>> text, some = [["a", "a"]], ("witten_bell",)
    >>> whole = estimate(count_ngrams(text, ["a", "b", "c", "d"], order=1), *some)
    >>> part = estimate(count_ngrams(text, ["a", "b"], order=1), *some, left_out=2)
    >>> np.array_equal(part.log10_probs, whole.log10_probs[:5])
    True
    """
    if discounting not in DISCOUNTINGS:
        raise ConfigError("discounting", " | ".join(DISCOUNTINGS), repr(discounting), "choose one")
    if left_out and discounting != "witten_bell":
        raise ConfigError("left_out", "0 for Kneser-Ney", str(left_out), "count all words")
    kneser_ney = discounting != "witten_bell"
    interpolate = discounting != "kneser_ney"
    num_words = len(counts.words)
    probs = [_unigrams(counts, discounting, left_out)]
    backoffs: list[np.ndarray] = []
    for level in range(1, len(counts.keys)):
        histories, suffixes = counts.keys[level] // num_words, counts.suffixes[level]
        num_histories = len(counts.keys[level - 1])
        effective = _continuation_counts(counts, level) if kneser_ney else counts.counts[level]
        totals = np.bincount(histories, effective, minlength=num_histories)
        followers = np.bincount(histories, minlength=num_histories)
        if kneser_ney:
            # SRILM's back-off variant takes its discount from the counts as they were.
            basis = effective if interpolate else counts.counts[level]
            discounts = kneser_ney_discounts(basis, modified=interpolate, order=level + 1)
            discounted = np.maximum(effective - discounts[np.minimum(effective, 3)], 0.0)
            seen = discounted / totals[histories]
            left = 1.0 - np.bincount(histories, seen, minlength=num_histories)
        else:
            seen = effective / (totals + followers)[histories]
            left = followers / np.maximum(totals + followers, 1)
        lower = probs[level - 1][suffixes]
        if interpolate:
            probs.append(seen + left[histories] * lower)
            weight = left
        else:
            probs.append(seen)
            rest = 1.0 - np.bincount(histories, lower, minlength=num_histories)
            weight = np.where(rest > 1e-12, left / np.maximum(rest, 1e-12), 1.0)
        backoffs.append(np.where(followers > 0, weight, 1.0))
    backoffs.append(np.ones(len(probs[-1])))
    return as_model(counts, probs, backoffs)


def _unigrams(counts: Counts, discounting: str, left_out: int) -> np.ndarray:
    """(V,) P(w); every word but ``<s>`` gets some, seen or not."""
    if discounting == "witten_bell" or len(counts.keys) == 1:
        effective = counts.counts[0].astype(np.float64)
    else:
        effective = _continuation_counts(counts, 0).astype(np.float64)
    effective[0] = 0.0  # <s> is never predicted
    can_follow = np.arange(len(counts.words)) > 0
    if discounting == "kneser_ney":
        # Kneser-Ney leaves unigrams undiscounted; an unseen word of the vocabulary counts as seen
        # once. <unk> gets nothing where every word of the text is known.
        unseen = can_follow & (effective == 0)
        unseen[2] = False
        effective[unseen] = 1.0
        return effective / effective.sum()
    kinds = float(np.count_nonzero(effective))
    uniform = can_follow / (np.count_nonzero(can_follow) + left_out)
    return (effective + kinds * uniform) / (effective.sum() + kinds)


def _continuation_counts(counts: Counts, level: int) -> np.ndarray:
    """Kneser-Ney's counts; n-grams of the highest order and after ``<s>`` keep their own."""
    raw = counts.counts[level]
    if level == len(counts.keys) - 1:
        return raw
    before = np.bincount(counts.suffixes[level + 1], minlength=len(raw))
    return np.where(before > 0, before, raw if level > 0 else 0)


def kneser_ney_discounts(effective: np.ndarray, *, modified: bool, order: int) -> np.ndarray:
    """(4,) the discount of a count of 0, 1, 2, 3 or more.

    Where counts of counts are too few for a discount within (0, count), the log says so, and it is
    0.5, 1, 1.5 (or 0.5).

    >>> kneser_ney_discounts(np.array([1, 1, 1, 1, 2, 2, 3, 4]), modified=False, order=2).tolist()
    [0.0, 0.5, 0.5, 0.5]
    """
    n1, n2, n3, n4 = (float(np.count_nonzero(effective == n)) for n in (1, 2, 3, 4))
    if not modified:
        if n1 > 0 and n2 > 0:
            discount = n1 / (n1 + 2 * n2)
            return np.array([0.0, discount, discount, discount])
        log.warning(
            "order %d: too few counts of counts for Kneser-Ney; the fixed discount 0.5 is used",
            order,
        )
        return np.array([0.0, 0.5, 0.5, 0.5])
    if min(n1, n2, n3, n4) > 0:
        y = n1 / (n1 + 2 * n2)
        discounts = np.array([0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3])
        if ((discounts[1:] > 0) & (discounts[1:] < [1, 2, 3])).all():
            return discounts
    log.warning(
        "order %d: too few counts of counts for Kneser-Ney; fixed discounts 0.5 1 1.5 are used",
        order,
    )
    return np.array([0.0, 0.5, 1.0, 1.5])


def as_model(counts: Counts, probs: list[np.ndarray], backoffs: list[np.ndarray]) -> Arpa:
    """Probabilities and back-off weights per order, without the longer n-grams of ``<unk>``."""
    return keep_known(_as_arpa(counts, probs, backoffs))


def keep_known(model: Arpa) -> Arpa:
    """The model without the longer n-grams of ``<unk>``."""
    kept = _without_unknown(model)
    return model if kept.all() else keep_rows(model, kept)


def _as_arpa(counts: Counts, probs: list[np.ndarray], backoffs: list[np.ndarray]) -> Arpa:
    num_words, keys, before = len(counts.words), [], 0
    for level, level_keys in enumerate(counts.keys):
        if level == 0:
            keys.append(level_keys)
        else:
            keys.append((level_keys // num_words + before + 1) * num_words + level_keys % num_words)
            before += len(counts.keys[level - 1])
    with np.errstate(divide="ignore"):
        log10_probs = np.maximum(np.log10(np.concatenate(probs)), LOG10_ZERO)
        log10_backoffs = np.log10(np.maximum(np.concatenate(backoffs), 1e-99))
    sizes = tuple(len(level_keys) for level_keys in counts.keys)
    return Arpa(counts.words, sizes, np.concatenate(keys), log10_probs, log10_backoffs)


def history_frequencies(counts: Counts) -> np.ndarray:
    """(n + 1,) log10 of the relative frequency of each node of the estimated model, for pruning.

    The lower orders of a Kneser-Ney model are no estimates of P(h) [Chelba et al. 2010].
    """
    total = float(counts.counts[0].sum())
    ones = [np.ones(len(c)) for c in counts.counts]
    frequencies = _as_arpa(counts, [c / total for c in counts.counts], ones)
    return np.concatenate([[0.0], frequencies.log10_probs[_without_unknown(frequencies)]])


def _without_unknown(model: Arpa) -> np.ndarray:
    """(n,) False for the n-grams above order 1 that hold ``<unk>``."""
    unknown = model.word_ids[UNK]
    kept = model.last_words != unknown
    kept[: len(model.words)] = True
    usable = np.ones(len(kept) + 1, dtype=bool)
    usable[unknown + 1] = False
    for rows in model.rows_of_orders()[1:]:
        kept[rows] &= usable[model.parents[rows]]
        usable[rows.start + 1 : rows.stop + 1] = kept[rows]
    return kept


def perplexity(model: Arpa, sentences: Sequence[Sequence[str]]) -> float:
    """10 ** -(mean log10 P per known word or sentence end); unknown words break the history."""
    scores, num_unknown = model.sentence_scores(sentences, score_unknown=False)
    num_tokens = sum(len(s) + 1 for s in sentences) - num_unknown
    return float(10.0 ** (-scores.sum() / max(num_tokens, 1)))
