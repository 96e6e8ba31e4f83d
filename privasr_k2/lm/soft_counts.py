"""Soft counts: how often a model expects each n-gram after the histories of a text.

``E(hw)`` is the sum of ``P(w | all words before)`` over the occurrences of the history h in a text.
So it counts also what the text does not say, and ``sum over w of E(hw)`` is the number of
occurrences of h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.lm.arpa import BOS, UNK, encode
from privasr_k2.lm.distributions import Distributions
from privasr_k2.lm.ngram import Counts
from privasr_k2.ragged import ranges
from privasr_k2.recipe.progress import report_progress

Sentences = Sequence[Sequence[str]]

#: Probabilities that are held at once: 16 MB.
MAX_PROBS = 1 << 22


@dataclass(frozen=True)
class SoftLevel:
    """The soft counts of one order above 1.

    Attributes:
        keys: (n,) int64, ascending: ``row of the history (among the text's, one order down) * V +
            word``.
        values: (n,) their soft counts.
        totals: of each history of the text, its occurrences that something follows.
    """

    keys: np.ndarray
    values: np.ndarray
    totals: np.ndarray


@dataclass(frozen=True)
class SoftCounts:
    """Soft counts of all orders.

    Attributes:
        unigrams: (V,) of each word.
        levels: of order 2, 3, ...
    """

    unigrams: np.ndarray
    levels: list[SoftLevel]


def soft_counts(
    lm: Distributions, sentences: Sentences, counts: Counts, *, least: float, occurrences: int
) -> SoftCounts:
    """The soft counts of a text's histories, of those n-grams that reach ``least``.

    An n-gram that is a history of the text has its soft count, however small.

    Args:
        counts: of :func:`privasr_k2.lm.ngram.count_ngrams` for ``sentences``.
        least: above 0.
        occurrences: of each longest history so many, spread over the text, stand for all; 0: all.

    Raises:
        DataError: a model that knows no word of the vocabulary.
    """
    order, num_words = len(counts.keys), len(counts.words)
    ids = {word: number for number, word in enumerate(counts.words)}
    columns = np.array([ids.get(symbol, -1) for symbol in lm.symbols])
    if not (columns > ids[UNK]).any():
        raise DataError("the model", "words of words.txt", "none", "use its own lang folder")
    rows = _histories(sentences, counts, ids)  # (N - 1, M)
    place, weights = _sampled(rows, occurrences)
    states = lm.states(sentences)[place]
    rows = rows[:, place]
    unigrams = np.zeros(len(columns))
    collectors = [
        _Collector(counts, level, columns, least, longest=level == order - 1)
        for level in range(1, order)
    ]
    step = max(1, MAX_PROBS // len(columns))
    for start in range(0, len(place), step):
        report_progress(start, len(place), "history")
        some = slice(start, start + step)
        probs = lm.probs(states[some]) * weights[some, None].astype(np.float32)
        unigrams += probs.sum(axis=0)
        for collector, of_level in zip(collectors, rows):
            collector.add(of_level[some], probs)
    levels = []
    for collector, of_level in zip(collectors, rows):
        known = of_level >= 0
        size = len(counts.keys[collector.level - 1])
        totals = np.bincount(of_level[known], weights[known], minlength=size)
        keys, values = collector.finished()
        levels.append(SoftLevel(keys, values, totals))
    of_words = np.bincount(np.where(columns < 0, ids[UNK], columns), unigrams, minlength=num_words)
    return SoftCounts(of_words, levels)


def _histories(sentences: Sentences, counts: Counts, ids: dict[str, int]) -> np.ndarray:
    """(N - 1, M) for each predicted position, the row of its history of 1, 2, ... words, or -1."""
    tokens, sentence_of = encode(sentences, ids, ids[UNK])
    predicted = np.flatnonzero(tokens != ids[BOS])
    found = np.full((len(counts.keys) - 1, len(predicted)), -1, dtype=np.int64)
    windows = tokens  # the row of the window of growing length that ends at a position
    for length in range(1, len(counts.keys)):
        if length > 1:
            ends = np.flatnonzero((windows[:-1] >= 0) & (sentence_of[:-1] == sentence_of[1:])) + 1
            longer = np.full(len(tokens), -1, dtype=np.int64)
            wanted = windows[ends - 1] * len(counts.words) + tokens[ends]
            longer[ends] = np.searchsorted(counts.keys[length - 1], wanted)
            windows = longer
        found[length - 1] = windows[predicted - 1]
    return found


def _sampled(rows: np.ndarray, occurrences: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions by their histories, shorter ones first, and for how many each stands.

    Equal histories of every length stand together, the last word of a history first.
    """
    if not len(rows):
        return np.arange(rows.shape[1]), np.ones(rows.shape[1])
    order = np.lexsort(rows[::-1])
    ordered = rows[:, order]
    is_first = np.ones(ordered.shape[1], dtype=bool)
    is_first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, len(order)))
    kept = np.minimum(sizes, occurrences) if occurrences else sizes
    ranks = np.arange(len(order)) - np.repeat(starts, sizes)
    size, of_them = np.repeat(sizes, sizes), np.repeat(kept, sizes)
    chosen = ranks * of_them // size != (ranks - 1) * of_them // size
    return order[chosen], (size / of_them)[chosen]


@dataclass
class _Collector:
    """Adds up the probabilities after each history of one length; equal histories come together.

    Attributes:
        columns: the word of each of the model's symbols, -1 for those outside the vocabulary.
        of_words: the reverse.
        open_row, open_sum: the last history, which the next positions may have, too.
    """

    counts: Counts
    level: int
    columns: np.ndarray
    least: float
    longest: bool
    of_words: np.ndarray = field(init=False)
    found: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    open_row: int = -1
    open_sum: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.of_words = np.full(len(self.counts.words), -1)
        known = self.columns >= 0
        self.of_words[self.columns[known]] = np.flatnonzero(known)

    def add(self, rows: np.ndarray, probs: np.ndarray) -> None:
        """Take in (B, V) weighted probabilities of positions after histories ``rows`` (B,)."""
        first = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
        sums = probs.copy() if len(first) == len(rows) else np.add.reduceat(probs, first, axis=0)
        rows = rows[first]
        if self.open_sum is not None:
            if rows[0] == self.open_row:
                sums[0] += self.open_sum
            else:
                self._close(np.array([self.open_row]), self.open_sum[None])
        self.open_row, self.open_sum = int(rows[-1]), sums[-1].copy()
        self._close(rows[:-1], sums[:-1])

    def finished(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys, ascending, and soft counts."""
        if self.open_sum is not None:
            self._close(np.array([self.open_row]), self.open_sum[None])
        if not self.found:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        keys, values = (np.concatenate(arrays) for arrays in zip(*self.found))
        keys, places = np.unique(keys, return_index=True)
        return keys, values[places].astype(np.float64)

    def _close(self, rows: np.ndarray, sums: np.ndarray) -> None:
        known = rows >= 0
        rows, sums = rows[known], sums[known]
        which, column = np.nonzero(sums >= self.least)
        self._keep(rows[which], self.columns[column], sums[which, column])
        if not self.longest:
            which, words = self._in_text(rows)
            column = self.of_words[words]
            self._keep(rows[which], words, np.where(column >= 0, sums[which, column], 0.0))

    def _keep(self, rows: np.ndarray, words: np.ndarray, values: np.ndarray) -> None:
        known = words >= 0
        self.found.append((rows[known] * len(self.counts.words) + words[known], values[known]))

    def _in_text(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The words that follow histories in the text: places in ``rows``, and words."""
        num_words, keys = len(self.counts.words), self.counts.keys[self.level]
        first, end = (np.searchsorted(keys, (rows + more) * num_words) for more in (0, 1))
        sizes = end - first
        children = ranges(first, sizes)
        return np.repeat(np.arange(len(rows)), sizes), keys[children] % num_words
