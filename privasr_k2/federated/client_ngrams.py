"""The n-gram model of what one user said, in a vocabulary of which the user said little.

Witten and Bell's probabilities without counts are the same for all words. So the model holds the
words that were said, and one other that stands for all others. What a device computes grows with
what its user said, not with the vocabulary. All n-grams are counted and looked up at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privasr_k2.lm.arpa import BOS, EOS, UNK, encode
from privasr_k2.lm.ngram import count_tokens, estimate

Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class Tokens:
    """Sentences as M numbers of words.

    Attributes:
        numbers: (M,) each sentence between ``<s>`` and ``</s>``.
        sentence_of: (M,) ascending, from 0 on.
    """

    numbers: np.ndarray
    sentence_of: np.ndarray

    def followed_by(self, others: Tokens) -> Tokens:
        """These sentences, then ``others``."""
        first = int(self.sentence_of[-1]) + 1
        numbers = np.concatenate([self.numbers, others.numbers])
        return Tokens(numbers, np.concatenate([self.sentence_of, first + others.sentence_of]))


class ClientWords:
    """The numbering of V words that all clients share; other words count as ``<unk>``.

    >>> ClientWords(["a", "b"]).encode([["b", "c"]]).numbers.tolist()
    [0, 4, 2, 1]
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.symbols = (BOS, EOS, UNK, *words)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.symbols)}

    def encode(self, sentences: Sentences) -> Tokens:
        """Sentences as numbers."""
        return Tokens(*encode(sentences, self._ids, self._ids[UNK]))


class ClientNgrams:
    """The n-gram model of some sentences, smoothed by Witten and Bell to even chances of V words.

    Args:
        words: the V words.
        said: at least one sentence.
        order: of the longest n-grams, from 1 on.

    Attributes:
        ngrams: number of n-grams that were said, of all orders.

    >>> words = ClientWords(["a", "b", "c"])
    >>> model = ClientNgrams(words, words.encode([["a", "a"]]), order=2)
    >>> model.ngrams, np.exp(model.log_probs(words.encode([["a"], ["c"]]))).round(3).tolist()
    (6, [0.74, 0.39, 0.04, 0.28])
    """

    def __init__(self, words: ClientWords, said: Tokens, *, order: int) -> None:
        self._heard = np.union1d([0, 1, 2], said.numbers)  # with <s>, </s> and <unk>
        total, heard = len(words.symbols), len(self._heard)
        # The first word that was not said, if there is one.
        other = np.setdiff1d(np.arange(min(total, heard + 1)), self._heard)[:1]
        symbols = tuple(words.symbols[n] for n in [*self._heard.tolist(), *other.tolist()])
        counts = count_tokens(self._own(said), said.sentence_of, symbols, order=order)
        self.ngrams = sum(int(np.count_nonzero(of_order)) for of_order in counts.counts)
        self._model = estimate(counts, "witten_bell", left_out=total - len(symbols))

    def log_probs(self, text: Tokens) -> np.ndarray:
        """Natural log P of all words and sentence ends, sentence by sentence."""
        tokens, model = self._own(text), self._model
        histories, predicted = model.histories(tokens, text.sentence_of), tokens > 0
        return math.log(10) * model.log10_conditional(histories[predicted], tokens[predicted])

    def _own(self, text: Tokens) -> np.ndarray:
        """(M,) numbers in the model: the last one of all words that were not said."""
        places = np.searchsorted(self._heard, text.numbers)
        said = self._heard[np.minimum(places, len(self._heard) - 1)] == text.numbers
        return np.where(said, places, len(self._heard))
