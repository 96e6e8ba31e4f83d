"""Entropy pruning of back-off models [Stolcke 1998], to a given number of n-grams."""

from __future__ import annotations

import numpy as np

from privasr_k2.lm.arpa import BOS, EOS, LOG10_ZERO, Arpa


def prune_to(
    model: Arpa, max_ngrams: int, history_log10_probs: np.ndarray | None = None
) -> tuple[Arpa, float]:
    """The model with at most ``max_ngrams`` n-grams, and the threshold that gives it.

    An n-gram without which perplexity rises by less than the threshold (relative) is dropped,
    unless a longer one needs it as its history. Unigrams stay.

    Args:
        history_log10_probs: (n + 1,) log10 P of each node as a history; the model's own by default.
    """
    if len(model.keys) <= max(max_ngrams, model.counts[0]):
        return model, 0.0
    scores = perplexity_changes(model, history_log10_probs)
    for rows in reversed(model.rows_of_orders()[1:]):
        longer = model.parents[rows] - 1
        np.maximum.at(scores, longer, scores[rows])
    num_unigrams = model.counts[0]
    scores[:num_unigrams] = np.inf
    allowed = max(max_ngrams, num_unigrams)
    threshold = float(np.partition(scores, len(scores) - allowed - 1)[len(scores) - allowed - 1])
    kept = scores > threshold
    kept[:num_unigrams] = True  # also where the threshold is infinite
    return keep_rows(model, kept), threshold


def perplexity_changes(model: Arpa, history_log10_probs: np.ndarray | None = None) -> np.ndarray:
    """(n,) the relative rise of perplexity without each n-gram [Stolcke 1998]; unigrams inf."""
    parents, first = model.parents, model.counts[0]
    if history_log10_probs is None:
        history_log10_probs = history_probs(model)
    lower = model.lower_log10_probs
    p, q = 10.0**model.log10_probs, 10.0**lower
    size = len(parents) + 1
    left = 1.0 - np.bincount(parents[first:], p[first:], minlength=size)
    left_lower = 1.0 - np.bincount(parents[first:], q[first:], minlength=size)
    with np.errstate(divide="ignore", invalid="ignore"):
        new_backoff = np.log10(left[parents] + p) - np.log10(left_lower[parents] + q)
    old_backoff = np.concatenate([[0.0], model.log10_backoffs])[parents]
    change = lower + new_backoff - model.log10_probs
    delta = -(10.0 ** history_log10_probs[parents]) * (
        p * change + left[parents] * (new_backoff - old_backoff)
    )
    # A history without a usable back-off weight (its words are all of them) keeps its n-grams.
    usable = np.isfinite(delta)
    changes = np.where(usable, 10.0 ** np.where(usable, delta, 0.0) - 1.0, np.inf)
    changes[:first] = np.inf
    return changes


def history_probs(model: Arpa) -> np.ndarray:
    """(n + 1,) log10 P of each node by the chain rule; ``<s>`` is as likely as ``</s>``."""
    joint = np.zeros(len(model.keys) + 1)
    joint[1:] = model.log10_probs
    joint[model.word_ids[BOS] + 1] = model.log10_probs[model.word_ids[EOS]]
    for rows in model.rows_of_orders()[1:]:
        joint[rows.start + 1 : rows.stop + 1] += joint[model.parents[rows]]
    return joint


def keep_rows(model: Arpa, kept: np.ndarray) -> Arpa:
    """The model with the n-grams ``kept`` (n,), and back-off weights that make it sum to 1."""
    num_words = len(model.words)
    new_node = np.concatenate([[0], np.cumsum(kept)])
    keys = new_node[model.parents[kept]] * num_words + model.last_words[kept]
    counts = tuple(int(np.count_nonzero(kept[rows])) for rows in model.rows_of_orders())
    while len(counts) > 1 and counts[-1] == 0:
        counts = counts[:-1]
    probs, backoffs = model.log10_probs[kept], model.log10_backoffs[kept]
    return with_fitting_backoffs(Arpa(model.words, counts, keys, probs, backoffs))


def with_fitting_backoffs(model: Arpa) -> Arpa:
    """The model with ``backoff(h) = (1 - sum P(w|h)) / (1 - sum P(w|h'))`` over w following h.

    Where those words hold all of the mass, nothing is left for others; where they are all words, it
    is 1.
    """
    backoffs = np.zeros(len(model.keys))
    fitted = Arpa(model.words, model.counts, model.keys, model.log10_probs, backoffs)
    fitted.__dict__["suffixes"] = model.suffixes
    for rows in model.rows_of_orders()[1:]:
        # Shorter histories first: the lower-order probabilities go through their new weights.
        parents = model.parents[rows]
        lower = fitted.log10_conditional(model.suffixes[parents], model.last_words[rows])
        start, end = int(parents.min(initial=1)), int(parents.max(initial=1)) + 1
        own, size = parents - start, end - start
        left = 1.0 - np.bincount(own, 10.0 ** model.log10_probs[rows], minlength=size)
        left_lower = 1.0 - np.bincount(own, 10.0**lower, minlength=size)
        ratio = np.log10(np.maximum(left, 1e-12) / np.maximum(left_lower, 1e-12))
        weights = np.where(left_lower > 1e-12, np.where(left > 1e-12, ratio, LOG10_ZERO), 0.0)
        has_children = np.bincount(own, minlength=size) > 0
        backoffs[start - 1 : end - 1][has_children] = weights[has_children]
    return fitted
