"""Linear interpolation of language models, at the level of probabilities (eq. 3 of turan2022).

*Dynamic*: each word's probability is mixed when it is scored, for models of any kind (eq. 3).
*Static*: n-gram models as one ARPA of the union of their n-grams, as SRILM's ``ngram -mix-lm``. The
probabilities of these n-grams are the mixture's exactly; other words share one back-off weight,
fitted so that each history sums to 1.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from privasr_k2.constraints import Checked, Count, Positive, Share, one_of
from privasr_k2.errors import DataError, GraphError
from privasr_k2.lm.arpa import BOS, EOS, LOG10_ZERO, UNK, Arpa
from privasr_k2.lm.perplexity import LanguageModel, Sentences
from privasr_k2.lm.pruning import with_fitting_backoffs

log = logging.getLogger(__name__)

_LEAST = 1e-12


@dataclass(frozen=True)
class InterpolationConfig(Checked):
    """How models are interpolated; see ``conf/classlm.yaml#interpolate``."""

    form: Annotated[str, one_of("static", "dynamic")]
    weights: str
    preset: list[Share]
    max_steps: Count
    tolerance: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.preset) != 3 or abs(self.preset[0] + self.preset[1] - 1) > 1e-6:
            raise ValueError(f"preset must be three numbers, w + c = 1, got {self.preset}")

    def fixed_weights(self, count: int) -> np.ndarray | None:
        """(count,) the given weights; None where EM chooses them.

        Raises:
            DataError: another number of weights than models, or weights that do not sum to 1.
        """
        if self.weights == "em":
            return None
        if self.weights == "preset":
            word, of_class, neural = self.preset
            if count not in (2, 3):
                raise DataError("weights=preset", "2 or 3 models", f"{count}", "choose weights=em")
            own = 1 - neural if count == 3 else 1.0
            return np.array([own * word, own * of_class, neural][:count])
        try:
            return checked_weights([float(part) for part in self.weights.split(",")], count)
        except ValueError:
            expected = "em, preset, or numbers parted by commas"
            raise DataError("weights", expected, self.weights, "correct it") from None


def checked_weights(weights: Sequence[float], count: int, place: str = "weights") -> np.ndarray:
    """(count,) the weights as an array.

    Raises:
        DataError: another number than ``count``, one outside [0, 1], or a sum other than 1 (by more
            than 1e-6).
    """
    checked = np.array(weights, dtype=np.float64)
    if (
        len(checked) != count
        or not ((checked >= 0) & (checked <= 1)).all()
        or abs(checked.sum() - 1) > 1e-6
    ):
        shown = f"{' '.join(f'{w:.6g}' for w in weights)} (sum {checked.sum():.6g})"
        raise DataError(place, f"{count} numbers in [0, 1] that sum to 1", shown, "correct them")
    return checked


def em_weights(
    log_probs: np.ndarray, *, max_steps: int = 1000, tolerance: float = 1e-7
) -> tuple[np.ndarray, float]:
    """The mixture weights of greatest probability of a text, by EM from equal weights.

    ``w_i <- mean over the text of w_i p_i / sum_j w_j p_j``: the log-probability is concave in w.

    Args:
        log_probs: (M, I) ln P of every word by each model; -inf is a probability of 0.

    Returns:
        (I,) the weights, and the mean ln P of a word.

    Raises:
        DataError: a word without a probability in any model.

    >>> weights, _ = em_weights(np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]))
    >>> weights.round(3).tolist()
    [0.708, 0.292]
    """
    best = log_probs.max(axis=1, keepdims=True)
    if not np.isfinite(best).all():
        row = int(np.flatnonzero(~np.isfinite(best[:, 0]))[0])
        raise DataError("dev text", "words of some model", f"none for word {row + 1}", "use more")
    scaled = np.exp(log_probs - best)
    weights = np.full(log_probs.shape[1], 1.0 / log_probs.shape[1])
    before = -np.inf
    for _ in range(max_steps):
        mixed = scaled @ weights
        gained = float(np.mean(np.log(mixed)))
        if gained - before < tolerance:
            break
        before = gained
        weights = weights * (scaled / mixed[:, None]).mean(axis=0)
        weights /= weights.sum()
    # In exact arithmetic no weight becomes 0, and the names of a class LM keep a probability.
    weights = np.maximum(weights, _LEAST)
    weights /= weights.sum()
    return weights, float(np.mean(np.log(scaled @ weights)) + best.mean())


class Interpolated:
    """Models whose probabilities are mixed word by word.

    A word that only some models know is refused: others would score it as ``<unk>``, and the
    mixture would not sum to 1.
    """

    def __init__(
        self, lms: Sequence[LanguageModel], weights: Sequence[float], name: str = "mixture"
    ) -> None:
        self.lms, self.name = list(lms), name
        self.weights = checked_weights(weights, len(self.lms), name)
        known = [frozenset(lm.words) for lm in lms]
        self.words: Collection[str] = frozenset.union(*known)
        self._partly_known = self.words - frozenset.intersection(*known)
        self.scores_unknown = all(lm.scores_unknown for lm in lms)

    def token_log_probs(self, sentences: Sentences) -> np.ndarray:
        """Natural log P of all words and sentence ends, (M,) float64, sentence by sentence."""
        return self._mixed([lm.token_log_probs(self._checked(sentences)) for lm in self.lms])

    def nbest_token_log_probs(self, nbests: Sequence[Sentences]) -> np.ndarray:
        """The same for the hypotheses of N-best lists."""
        for nbest in nbests:
            self._checked(nbest)
        return self._mixed([lm.nbest_token_log_probs(nbests) for lm in self.lms])

    def _mixed(self, log_probs: list[np.ndarray]) -> np.ndarray:
        return mixed_log_probs(np.stack(log_probs, axis=1), self.weights)

    def _checked(self, sentences: Sentences) -> Sentences:
        if self._partly_known:
            words = itertools.chain.from_iterable(sentences)
            if word := next((word for word in words if word in self._partly_known), None):
                expected, found = "words that all models know or none", f"{word!r}, known to some"
                raise GraphError(self.name, expected, found, "train them with one lang folder")
        return sentences


def mixed_log_probs(log_probs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(M,) ln of the mixture's probabilities [turan2022, eq. 3], from those of I models (M, I).

    >>> np.exp(mixed_log_probs(np.log([[0.5, 0.1]]), np.array([0.25, 0.75]))).round(3).tolist()
    [0.2]
    """
    with np.errstate(divide="ignore"):
        return np.logaddexp.reduce(log_probs + np.log(weights), axis=1)


class DevText:
    """Text by which the weights of a mixture are chosen and mixtures are compared.

    Words unknown to some model stand in histories, but are not predicted.

    Attributes:
        log_probs: (M, I) ln P of every word and sentence end by each model, for :func:`em_weights`.

    Raises:
        DataError: no sentence.
    """

    def __init__(self, lms: Sequence[LanguageModel], sentences: Sentences) -> None:
        known = [frozenset(lm.words) for lm in lms]
        everywhere = frozenset.intersection(*known)
        partly = frozenset.union(*known) - everywhere
        tokens = [word for sentence in sentences for word in (*sentence, EOS)]
        if not tokens:
            raise DataError("dev text", "sentences", "none", "give text with at least one")
        if partly:
            log.info("%d words that some models do not know do not count", len(partly))
        self._sentences = sentences
        self._used = np.array([word == EOS or word in everywhere for word in tokens], bool)
        self.log_probs = np.stack([self._of(lm) for lm in lms], axis=1)

    def _of(self, lm: LanguageModel) -> np.ndarray:
        return lm.token_log_probs(self._sentences)[self._used]

    def ppl(self, lm: LanguageModel) -> float:
        """The perplexity of a model of the same words, such as a static mixture."""
        return math.exp(-float(self._of(lm).mean()))

    def exact_ppl(self, weights: np.ndarray) -> float:
        """The perplexity of the models' dynamic mixture."""
        return math.exp(-float(mixed_log_probs(self.log_probs, weights).mean()))


def interpolate(models: Sequence[Arpa], weights: Sequence[float]) -> Arpa:
    """One back-off model of the union of n-grams, with ``P(w|h) = sum_i weights_i P_i(w|h)``.

    A word that a model lacks has probability 0 in it, and ends its history.

    Raises:
        DataError: weights that do not fit.
    """
    shares = checked_weights(weights, len(models))
    unknown = [UNK] if any(UNK in model.word_ids for model in models) else []
    every = (word for model in models for word in model.words)
    words = tuple(dict.fromkeys([BOS, EOS, *unknown, *every]))
    ids = {word: number for number, word in enumerate(words)}
    to_union = [np.array([ids[word] for word in model.words], dtype=np.int64) for model in models]
    from_union = [np.full(len(words), -1, dtype=np.int64) for _ in models]
    for numbers, back in zip(to_union, from_union):
        back[numbers] = np.arange(len(numbers))
    keys, counts, probs = [], [], []
    places = [np.zeros(1, dtype=np.int64) for _ in models]  # each model's nodes in the union
    nodes = [np.zeros(1, dtype=np.int64) for _ in models]  # of the union's histories, in each model
    before, first = 0, 0  # rows of the union so far; the first of the histories
    for level in range(max(model.order for model in models)):
        parts = [
            _union_keys(model, level, numbers, in_union, len(words))
            for model, numbers, in_union in zip(models, to_union, places)
        ]
        new = np.unique(np.concatenate([part for part in parts if part is not None]))
        if level == 0:
            new = np.arange(len(words), dtype=np.int64)
        history, word = new // len(words) - first, new % len(words)
        prob = np.zeros(len(new))
        for number, (model, share) in enumerate(zip(models, shares)):
            own_words, histories = from_union[number][word], nodes[number][history]
            has = own_words >= 0
            prob[has] += share * 10.0 ** model.log10_conditional(histories[has], own_words[has])
            after = np.zeros(len(new), dtype=np.int64)
            after[has] = model.longest_nodes(histories[has], own_words[has], model.suffixes)
            nodes[number] = after
        for number, part in enumerate(parts):
            if part is not None:
                places[number] = before + 1 + np.searchsorted(new, part)
        first, before = before + 1, before + len(new)
        keys.append(new)
        counts.append(len(new))
        probs.append(prob)
    with np.errstate(divide="ignore"):
        log10_probs = np.maximum(np.log10(np.concatenate(probs)), LOG10_ZERO)
    joined, none = np.concatenate(keys), np.zeros(sum(counts))
    return with_fitting_backoffs(Arpa(words, tuple(counts), joined, log10_probs, none))


def _union_keys(
    model: Arpa, level: int, numbers: np.ndarray, places: np.ndarray, num_words: int
) -> np.ndarray | None:
    """The union's keys of a model's n-grams of one order; None without any."""
    if level >= model.order:
        return None
    rows = model.rows_of_orders()[level]
    first = model.rows_of_orders()[level - 1].start + 1 if level else 0
    return places[model.parents[rows] - first] * num_words + numbers[model.last_words[rows]]
