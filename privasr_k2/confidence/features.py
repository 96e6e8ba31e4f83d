"""Features of each recognized word for a classifier, from any recognizer's N-best lists.

Most are those of [kalgaonkar2015] K. Kalgaonkar, C. Liu, Y. Gong and K. Yao, Estimating confidence
scores on ASR results using recurrent neural networks, ICASSP 2015. A list without confidences,
times or depths gives fewer; a model's are those of its training lists (docs/confidence.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.scoring.align import align
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import GRAPH, Hypothesis, NbestList, NbestLists

CONFIDENCE, AGREEMENT = "confidence", "agreement"
FRAMES_PER_SECOND = 100

# Recognizers write few digits: 1.00 is no certainty.
_CLIP = 1e-3
_SHORTEST, _LONGEST_PAUSE = 0.01, 2.0
_MILLISECONDS = 1000


@dataclass(frozen=True)
class FeatureSettings:
    """How features are computed; kept with a model.

    Args:
        weights: of the first pass, for the posteriors of hypotheses.
        nbest_scale: on total scores, for the posteriors of hypotheses; above 0.
        around: words on each side for ``confidence_around``.
    """

    weights: Weights
    nbest_scale: float
    around: int


@dataclass(frozen=True)
class WordFeatures:
    """The features of the words of all hypotheses, one hypothesis after the other.

    Attributes:
        names: (F).
        values: (W, F) float64.
        best: (W,) whether the word is in the best hypothesis of its list.
    """

    names: tuple[str, ...]
    values: np.ndarray
    best: np.ndarray

    def column(self, name: str) -> np.ndarray:
        """(W,) one feature."""
        return self.values[:, self.names.index(name)]


def log_odds(confidences: np.ndarray) -> np.ndarray:
    """ln c / (1 - c), of confidences clipped into [0.001, 0.999].

    >>> log_odds(np.array([0.5, 1.0])).round(3).tolist()
    [0.0, 6.907]
    """
    clipped = np.clip(confidences, _CLIP, 1 - _CLIP)
    return np.log(clipped) - np.log1p(-clipped)


def word_features(
    lists: NbestLists, lm_log_probs: Mapping[str, np.ndarray], settings: FeatureSettings
) -> WordFeatures:
    """All features that the lists of a role can give.

    confidence: log-odds of the recognizer's, with _previous, _next and _around, their mean.
    characters, seconds, pause_before, pause_after (at most 2 s), depth: natural logs.
    frames_per_character: of 10 ms. agreement: see :func:`agreement`.
    lm_NAME, lm_NAME_next: ln P of the word, and of the next one or the sentence end.

    Args:
        lm_log_probs: by the LM's name, natural logs of every word and sentence end of all
            hypotheses, as :func:`privasr_k2.decoding.lm_scores.read_lm_scores` gives them.

    Raises:
        DataError: no list has a word.
    """
    hyps = [hyp for nbest in lists.lists for hyp in nbest.hyps]
    words = [word for hyp in hyps for word in hyp.words.split()]
    if not words:
        raise DataError(lists.place, "recognized words", "none", "look at the first pass")
    counts = np.array([len(hyp.words.split()) for hyp in hyps])
    spans = _Spans(counts)
    spoken = [hyp for hyp in hyps if hyp.words]
    columns: dict[str, np.ndarray] = {}
    characters = np.array([len(word) for word in words], dtype=np.float64)
    if all(hyp.confidences is not None for hyp in spoken):
        odds = log_odds(np.array([c for hyp in spoken for c in hyp.confidences or ()]))
        columns[CONFIDENCE] = odds
        columns["confidence_previous"] = spans.beside(odds, -1)
        columns["confidence_next"] = spans.beside(odds, 1)
        columns["confidence_around"] = spans.mean_around(odds, settings.around)
    columns["characters"] = np.log(characters)
    if all(hyp.times is not None for hyp in spoken):
        times = np.array([span for hyp in spoken for span in hyp.times or ()])
        seconds = np.maximum(times[:, 1] - times[:, 0], _SHORTEST)
        columns["seconds"] = np.log(seconds)
        columns["frames_per_character"] = FRAMES_PER_SECOND * seconds / characters
        pause = times[:, 0] - spans.beside(times[:, 1], -1)
        pause[spans.first] = _LONGEST_PAUSE
        columns["pause_before"] = np.log(np.clip(pause, _SHORTEST, _LONGEST_PAUSE))
        after = spans.beside(pause, 1)
        after[spans.last] = _LONGEST_PAUSE
        columns["pause_after"] = np.log(np.clip(after, _SHORTEST, _LONGEST_PAUSE))
    if all(hyp.depths is not None for hyp in spoken):
        columns["depth"] = np.log(np.array([d for hyp in spoken for d in hyp.depths or ()]))
    agreements = [agreement(nbest, settings) for nbest in lists.lists if nbest.hyps]
    columns[AGREEMENT] = np.concatenate(agreements)
    # An LM scores each hypothesis's words and its end.
    at = np.arange(len(words)) + np.repeat(np.arange(len(counts)), counts)
    for name, log_probs in sorted(lm_log_probs.items()):
        columns[f"lm_{name}"], columns[f"lm_{name}_next"] = log_probs[at], log_probs[at + 1]
    best = np.repeat(np.array([hyp.rank == 1 for hyp in hyps]), counts)
    return WordFeatures(tuple(columns), np.stack(list(columns.values()), axis=1), best)


class _Spans:
    """Stretches of words that belong together, one after the other."""

    def __init__(self, counts: np.ndarray) -> None:
        ends = np.cumsum(counts)
        self._start, self._end = np.repeat(ends - counts, counts), np.repeat(ends, counts)
        self._here = np.arange(int(counts.sum()))
        self.first, self.last = self._here == self._start, self._here == self._end - 1

    def beside(self, values: np.ndarray, offset: int) -> np.ndarray:
        """The value ``offset`` words on; at an end the outermost one."""
        return values[np.clip(self._here + offset, self._start, self._end - 1)]

    def mean_around(self, values: np.ndarray, reach: int) -> np.ndarray:
        """The mean of the values at most ``reach`` words away."""
        sums = np.concatenate([[0.0], np.cumsum(values)])
        low = np.maximum(self._here - reach, self._start)
        high = np.minimum(self._here + reach + 1, self._end)
        return (sums[high] - sums[low]) / (high - low)


def hypothesis_weights(hyps: Sequence[Hypothesis], settings: FeatureSettings) -> np.ndarray:
    """(H,) posteriors of the hypotheses of a list within it, from the first pass's scores."""
    lm_weight, insertion_penalty = settings.weights
    lm_scores = np.array([hyp.lm_scores.get(GRAPH, 0.0) for hyp in hyps])
    num_words = np.array([len(hyp.words.split()) for hyp in hyps])
    totals = np.array([hyp.am_score for hyp in hyps]) + lm_weight * lm_scores
    totals -= insertion_penalty * num_words
    weights = np.exp(settings.nbest_scale * (totals - totals.max()))
    return weights / weights.sum()


def agreement(nbest: NbestList, settings: FeatureSettings) -> np.ndarray:
    """(W,) in [0, 1]: the weight of a list's hypotheses that have each word at the same position.

    Positions are overlapping times, or without times those in the alignment with the best one.
    """
    if len(nbest.hyps) == 1:
        return np.ones(len(nbest.hyps[0].words.split()))
    spans = [span for hyp in nbest.hyps for span in _places(nbest.hyps[0], hyp)]
    if not spans:
        return np.zeros(0)
    words = [word for hyp in nbest.hyps for word in hyp.words.split()]
    counts = [len(hyp.words.split()) for hyp in nbest.hyps]
    _, ids = np.unique(words, return_inverse=True)
    table = np.column_stack([ids, np.array(spans)])
    places, where = np.unique(table, axis=0, return_inverse=True)
    where = where.reshape(-1)  # numpy 2.0 gives it the shape of the table
    word, start, end = places.T
    # (U, U) of different positions.
    overlap = (word[:, None] == word) & (start[:, None] < end) & (start < end[:, None])
    has = np.zeros((len(nbest.hyps), len(places)))
    has[np.repeat(np.arange(len(counts)), counts), where] = 1.0
    share = hypothesis_weights(nbest.hyps, settings) @ (has @ overlap > 0)
    return np.clip(share[where], 0.0, 1.0)


def _places(best: Hypothesis, hyp: Hypothesis) -> list[tuple[int, int]]:
    """Start and end of each word, as integers."""
    if hyp.times is not None:
        starts = [round(_MILLISECONDS * start) for start, _ in hyp.times]
        ends = [round(_MILLISECONDS * end) for _, end in hyp.times]
        return [(start, max(end, start + 1)) for start, end in zip(starts, ends)]
    places, seen = [], 0
    for best_word, word in align(best.words.split(), hyp.words.split()):
        seen += best_word is not None
        if word is not None:
            # A word that the best hypothesis lacks lies between two of its words.
            position = 2 * seen + (best_word is None)
            places.append((position, position + 1))
    return places
