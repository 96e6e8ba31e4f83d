"""Fast marginal adaptation: unigrams of little text adapt the longer n-grams of a background model.

Both equations of turan2022 rescale a background model and normalize it again, history by history:

- eq. 1: ``P(w|h) = (P_A(w) / P_B(w))^beta P_B(w|h) / Z(h)`` [Kneser, Peters & Klakow 1997]
- eq. 2: ``P(w|h) = (P_B(w|h) / P_B(w))^beta P_A(w) / Z(h)``

that is ``c(w) P_B(w|h)^a / Z(h)``. With the back-off weight ``bow(h)^a Z(h') / Z(h)`` the adapted
model is an exact back-off model of the same n-grams.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np
from annotated_types import Interval

from privasr_k2.constraints import Checked, FiniteOrZero, Share
from privasr_k2.errors import DataError, GraphError
from privasr_k2.lm.arpa import BOS, LOG10_ZERO, UNK, Arpa, encode
from privasr_k2.lm.ngram import perplexity

log = logging.getLogger(__name__)

Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class MarginalsConfig(Checked):
    """How a model is adapted; see ``conf/classlm.yaml#fma``."""

    equation: Annotated[int, Interval(ge=1, le=2)] | None
    beta: Share | None
    betas: list[Share]
    prior_words: FiniteOrZero

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta is None and not self.betas:
            raise ValueError("betas must hold a value where beta is null")


def smoothed_unigrams(
    sentences: Sentences, model: Arpa, prior_words: float, place: str = "the text"
) -> np.ndarray:
    """(V,) the unigrams ``(count(w) + m P_B(w)) / (N + m)`` of a text, smoothed by a model's.

    Unknown words count as ``<unk>`` where the model predicts that, else not at all.

    Args:
        prior_words: m; 0 stands for the number of different words of the text.

    Raises:
        DataError: no word of the text is one of the model's.
    """
    tokens, _ = encode(sentences, model.word_ids, model.word_ids.get(UNK, -1))
    prior = _unigrams(model)
    prior /= prior.sum()
    counts = np.bincount(tokens[tokens >= 0], minlength=len(prior)).astype(np.float64)
    counts[prior == 0] = 0.0
    total, kinds = counts.sum(), np.count_nonzero(counts)
    if total <= len(sentences):
        raise DataError(place, f"words of the model's {len(prior)}", "none", "normalize it alike")
    mass = prior_words or float(kinds)
    return (counts + mass * prior) / (total + mass)


def unigrams_of(other: Arpa, model: Arpa) -> np.ndarray:
    """(V,) the unigrams of another model by the words of a model, above 0 where the model's are.

    Words that the other model cannot predict share what the model gives them in all.

    >>> from privasr_k2.lm.ngram import count_ngrams, estimate
    >>> words, text = ["a", "b"], [["a", "b"], ["a", "a", "a"]]
    >>> model, other = (estimate(count_ngrams(t, words, order=1), "witten_bell")
    ...                 for t in (text[:1], text[1:]))
    >>> dict(zip(model.words, unigrams_of(other, model).round(3).tolist()))
    {'<s>': 0.0, '</s>': 0.25, '<unk>': 0.083, 'a': 0.583, 'b': 0.083}
    """
    own, theirs = _unigrams(model), _unigrams(other)
    found = np.array([theirs[other.word_ids[w]] if w in other.word_ids else 0 for w in model.words])
    found[own == 0] = 0.0
    missing = (found == 0) & (own > 0)
    share = own[missing].sum() / own.sum()
    found *= (1 - share) / found.sum()
    found[missing] = own[missing] / own.sum()
    return found


def adapt(
    model: Arpa,
    adapted: np.ndarray,
    beta: float,
    *,
    equation: int,
    background: np.ndarray | None = None,
) -> Arpa:
    """The background model with the marginals of the adaptation text, exactly normalized.

    Args:
        adapted: (V,) P_A(w), above 0 where the model's unigram is.
        beta: in [0, 1]; 0 gives the background (eq. 1) or the unigrams ``adapted`` (eq. 2).
        equation: 1 or 2.
        background: (V,) P_B(w) of the ratio; by default the model's unigrams, which of a Kneser-Ney
            model are no marginals.

    >>> from privasr_k2.lm.ngram import count_ngrams, estimate
    >>> model = estimate(count_ngrams([["a", "b"], ["a"]], ["a", "b"], order=2), "witten_bell")
    >>> sums = history_sums(adapt(model, np.array([0, 0.4, 0.1, 0.1, 0.4]), 0.5, equation=1))
    >>> bool(np.abs(sums - 1).max() < 1e-12)
    True
    """
    own = _unigrams(model)
    base = own if background is None else background
    factors, usable = np.zeros(len(own)), (own > 0) & (base > 0)
    if equation == 1:
        factors[usable] = (adapted[usable] / base[usable]) ** beta
    else:
        factors[usable] = adapted[usable] / base[usable] ** beta
    return rescale(model, factors, 1.0 if equation == 1 else beta)


def rescale(model: Arpa, factors: np.ndarray, power: float) -> Arpa:
    """The model ``P'(w|h) = factors(w) P(w|h)^power / Z(h)``, a back-off model of the same n-grams.

    Args:
        factors: (V,) at least 0, not all 0.
        power: in [0, 1].

    Raises:
        GraphError: a history after which no word has a probability and a factor above 0.
    """
    normalizers = history_normalizers(model, factors, power)
    if not (normalizers > 0).all():
        word = model.words[model.last_words[max(int(np.argmin(normalizers)) - 1, 0)]]
        raise GraphError(
            "the model", f"a word that can follow ... {word}", "none", "estimate again"
        )
    parents = model.parents
    with np.errstate(divide="ignore"):
        log10_factors, log10_normalizers = np.log10(factors), np.log10(normalizers)
    # Adding up in place: at millions of n-grams each array counts.
    probs = power * model.log10_probs
    probs += log10_factors[model.last_words]
    probs -= log10_normalizers[parents]
    backoffs = power * model.log10_backoffs
    backoffs += log10_normalizers[model.suffixes[1:]]
    backoffs -= log10_normalizers[1:]
    np.clip(probs, LOG10_ZERO, 0.0, out=probs)
    adapted = Arpa(model.words, model.counts, model.keys, probs, np.maximum(backoffs, LOG10_ZERO))
    adapted.__dict__["suffixes"] = model.suffixes
    return adapted


def history_normalizers(model: Arpa, factors: np.ndarray, power: float) -> np.ndarray:
    """(n + 1,) ``Z(h) = sum over w of factors(w) P(w|h)^power`` for the history of every node.

    It is ``sum over n-grams h w of factors(w) (P(w|h)^a - bow(h)^a P(w|h')^a) + bow(h)^a Z(h')``.
    """
    normalizers = np.zeros(len(model.keys) + 1)
    orders = model.rows_of_orders()
    weights = np.concatenate([[1.0], 10.0 ** (power * model.log10_backoffs)])
    words, parents, lower = model.last_words, model.parents, model.lower_log10_probs
    unigrams = orders[0]
    normalizers[0] = factors @ 10.0 ** (power * model.log10_probs[unigrams])
    for histories, children in zip(orders, [*orders[1:], slice(0, 0)]):
        nodes = slice(histories.start + 1, histories.stop + 1)
        difference = 10.0 ** (power * model.log10_probs[children])
        difference -= weights[parents[children]] * 10.0 ** (power * lower[children])
        difference *= factors[words[children]]
        seen = np.bincount(
            parents[children] - nodes.start, difference, minlength=nodes.stop - nodes.start
        )
        normalizers[nodes] = seen + weights[nodes] * normalizers[model.suffixes[nodes]]
    return normalizers


def history_sums(model: Arpa, factors: np.ndarray | None = None) -> np.ndarray:
    """(n + 1,) the sum of ``factors(w) P(w|h)`` over all words for every node; by default of P."""
    factors = np.ones(len(model.words)) if factors is None else factors
    return history_normalizers(model, factors, 1.0)


@dataclass(frozen=True)
class Adaptation:
    """An adapted model, its equation and exponent, and all perplexities on dev."""

    model: Arpa
    equation: int
    beta: float
    perplexities: dict[tuple[int, float], float]


def adapt_on_dev(
    model: Arpa,
    adapted: np.ndarray,
    config: MarginalsConfig,
    dev: Sentences,
    *,
    background: np.ndarray | None = None,
) -> Adaptation:
    """Adapt with the given equation and exponent, or those of the least perplexity on dev.

    Raises:
        DataError: there is something to choose and dev is empty.
    """
    equations = [1, 2] if config.equation is None else [config.equation]
    betas = sorted(config.betas) if config.beta is None else [config.beta]
    tried: dict[tuple[int, float], float] = {}
    best = (equations[0], betas[0])
    if config.equation is None or config.beta is None:
        if not dev:
            way_out = "give some, or set equation and beta"
            raise DataError("dev text", "sentences to choose equation or beta by", "none", way_out)
        for equation, beta in product(equations, betas):
            candidate = adapt(model, adapted, beta, equation=equation, background=background)
            tried[equation, beta] = perplexity(candidate, dev)
            log.info(
                "equation %d, beta %.3g: perplexity of dev %.2f",
                equation,
                beta,
                tried[equation, beta],
            )
        best = min(tried, key=lambda point: tried[point])
    model = adapt(model, adapted, best[1], equation=best[0], background=background)
    return Adaptation(model, *best, tried)


def _unigrams(model: Arpa) -> np.ndarray:
    """(V,) the unigrams that can be predicted; 0 for ``<s>`` and what ARPA writes as zero."""
    log10_probs = model.log10_probs[model.rows_of_orders()[0]]
    probs = np.where(log10_probs > LOG10_ZERO + 1, 10.0**log10_probs, 0.0)
    probs[model.word_ids[BOS]] = 0.0
    return probs
