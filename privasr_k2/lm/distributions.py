"""The distribution of a language model over all words, after every word of a text.

A model reads a text once and gives a state for each word and sentence end, before it is heard. The
distributions come from states, for any of them and in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.lm.arpa import BOS, UNK, Arpa, encode, read_arpa
from privasr_k2.lm.class_files import is_class_lm
from privasr_k2.ragged import ranges

Sentences = Sequence[Sequence[str]]


class Distributions(Protocol):
    """The interface of models that predict all words at once."""

    @property
    def symbols(self) -> Sequence[str]:
        """The V words that are predicted, with ``</s>`` and maybe ``<unk>``."""

    def states(self, sentences: Sentences) -> np.ndarray:
        """(M, ...) the state before each word and sentence end of a text."""

    def probs(self, states: np.ndarray) -> np.ndarray:
        """(B, V) float32 P of every word in (B, ...) states."""


class ArpaDistributions:
    """Those of an n-gram model; a state is the node of the longest history.

    >>> from privasr_k2.lm.ngram import count_ngrams, estimate
    >>> model = estimate(count_ngrams([["a", "b"], ["a"]], ["a", "b"], order=2), "witten_bell")
    >>> lm = ArpaDistributions(model)
    >>> probs = lm.probs(lm.states([["a"]]))
    >>> probs.shape, bool(np.abs(probs.sum(axis=1) - 1).max() < 1e-6)
    ((2, 5), True)
    """

    def __init__(self, model: Arpa) -> None:
        self.model, self.symbols = model, model.words
        words = len(model.words)
        self._firsts = np.searchsorted(model.keys, np.arange(len(model.keys) + 2) * words)
        self._last = model.last_words
        self._probs = (10.0**model.log10_probs).astype(np.float32)
        self._probs[model.word_ids[BOS]] = 0.0
        self._backoffs = np.concatenate([[1.0], 10.0**model.log10_backoffs])

    def states(self, sentences: Sentences) -> np.ndarray:
        """(M,) int64 nodes."""
        model = self.model
        tokens, sentence_of = encode(sentences, model.word_ids, model.word_ids.get(UNK, -1))
        return model.histories(tokens, sentence_of)[tokens != model.word_ids[BOS]]

    def probs(self, states: np.ndarray) -> np.ndarray:
        """(B, V): shorter histories first, each n-gram in place of what was backed off to."""
        model, words = self.model, len(self.model.words)
        chain = [states]
        while chain[-1].any():
            chain.append(model.suffixes[chain[-1]])
        probs = np.tile(self._probs[:words], (len(states), 1))
        for nodes in reversed(chain[:-1]):
            probs *= self._backoffs[nodes].astype(np.float32)[:, None]
            sizes = np.where(nodes > 0, self._firsts[nodes + 1] - self._firsts[nodes], 0)
            rows = ranges(self._firsts[nodes], sizes)
            which = np.repeat(np.arange(len(nodes)), sizes)
            probs[which, self._last[rows]] = self._probs[rows]
        return probs


def open_distributions(path: Path, device: str = "cpu") -> Distributions:
    """Those of the model at ``path``: the folder of a neural model, or an ARPA file.

    Raises:
        DataError: a class LM or a mixture, whose words are mixed when they are scored.
    """
    if path.suffix == ".json" or is_class_lm(path):
        found = "a mixture" if path.suffix == ".json" else "a class LM"
        expected = "a model that predicts all words at once: of train_lm, or an ARPA file"
        raise DataError(path, expected, found, "take --set estimate=average")
    if path.is_dir():
        from privasr_k2.lm.neural.files import load_lm
        from privasr_k2.lm.neural.scoring import NeuralScorer
        from privasr_k2.training.distributed import choose_device

        return NeuralScorer(*load_lm(path, choose_device(device)), name=str(path))
    return ArpaDistributions(read_arpa(path))
