"""Batches of sentences of similar length, in an order set by seed and epoch. No sentence is cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from privasr_k2.lm.neural.vocabulary import Text
from privasr_k2.randomness import stream


@dataclass(frozen=True)
class Batch:
    """Sentences padded to one length U, their ends included.

    Attributes:
        ids: names of the sentences, counted from 1.
        inputs: (N, U) int64, ``<s> w_1 ... w_n``.
        targets: (N, U) int64, ``w_1 ... w_n </s>``.
        lengths: (N,) int64, true positions.
    """

    ids: tuple[str, ...]
    inputs: Tensor
    targets: Tensor
    lengths: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on ``device``."""
        moved = {name: getattr(self, name).to(device) for name in ("inputs", "targets", "lengths")}
        return replace(self, **moved)

    def __len__(self) -> int:
        return len(self.ids)


def make_batch(text: Text, sentences: np.ndarray) -> Batch:
    """The batch of some of a text's sentences.

    >>> make_batch(Text(np.array([5, 6]), np.array([0, 2])), np.array([0])).targets.tolist()
    [[5, 6, 0]]
    """
    padded = torch.from_numpy(text.padded(sentences))
    lengths = torch.from_numpy(text.lengths[sentences])
    names = tuple(f"sentence-{number + 1}" for number in sentences.tolist())
    return Batch(names, padded[:, :-1].contiguous(), padded[:, 1:].contiguous(), lengths)


def group_by_length(lengths: np.ndarray, max_words: int, order: np.ndarray) -> list[np.ndarray]:
    """Sentences in groups of at most ``max_words`` positions with padding; longer ones alone.

    Args:
        lengths: (S,) positions of each sentence.
        order: (S,) the sentences in their order within one length.

    >>> [group.tolist() for group in group_by_length(np.array([1, 3, 1, 2]), 4, np.arange(4))]
    [[0, 2], [3], [1]]
    """
    order = order[np.argsort(lengths[order], kind="stable")]
    ascending = lengths[order]
    groups, start = [], 0
    while start < len(order):
        window = ascending[start : start + max(1, max_words // int(ascending[start]))]
        positions = window * np.arange(1, len(window) + 1)
        fitting = int(np.searchsorted(positions, max_words, side="right"))
        groups.append(order[start : start + max(1, fitting)])
        start += len(groups[-1])
    return groups


class Batches:
    """The batches of any epoch.

    Args:
        max_words: most positions of a batch, padding included.
        seed: of the order; None = shortest first, for scoring.
        rank, world_size: of this process. Each gets as many batches; the first may come twice.
    """

    def __init__(
        self, text: Text, *, max_words: int, seed: int | None, rank: int = 0, world_size: int = 1
    ) -> None:
        self.text = text
        self.total_frames = int(text.lengths.sum())  # what the trainer counts: here, positions
        self._max_words, self._seed = max_words, seed
        self._rank, self._world_size = rank, world_size

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Batch]:
        """The batches of epoch ``number`` after the first ``skip``."""
        for sentences in self._plan(number)[self._rank :: self._world_size][skip:]:
            yield make_batch(self.text, sentences)

    def _plan(self, number: int) -> list[np.ndarray]:
        order = np.arange(len(self.text))
        if self._seed is None:
            groups = group_by_length(self.text.lengths, self._max_words, order)
        else:
            generator = stream(self._seed, "sentences", number)
            order = generator.permutation(order)
            shuffled = group_by_length(self.text.lengths, self._max_words, order)
            groups = [shuffled[index] for index in generator.permutation(len(shuffled))]
        missing = -len(groups) % self._world_size
        return groups + [groups[index % len(groups)] for index in range(missing)]


def choose_sentences(lengths: np.ndarray, limit: int, seed: int) -> np.ndarray:
    """Random sentences of at most ``limit`` words together, in their own order; 0 = all.

    >>> choose_sentences(np.array([2, 2, 2, 2]), 5, seed=1).size
    2
    """
    if limit == 0 or lengths.sum() <= limit:
        return np.arange(len(lengths))
    order = stream(seed, "choice of text").permutation(len(lengths))
    return np.sort(order[np.cumsum(lengths[order]) <= limit])
