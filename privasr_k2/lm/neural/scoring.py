"""Log-probabilities of sentences by a neural language model: in padded batches, or as prefix trees.

The hypotheses of many N-best lists form a prefix tree: each distinct prefix is read once, level by
level, and its state serves all words that follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from privasr_k2.lm.neural.batches import Batch, group_by_length, make_batch
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.lm.neural.prefix_tree import PrefixTree, build_tree
from privasr_k2.lm.neural.vocabulary import Text, Vocabulary
from privasr_k2.recipe.progress import report_progress

#: Positions of a padded batch.
BATCH_POSITIONS = 4096
#: Numbers in states and hidden values of one prefix tree: 256 MB.
MAX_NUMBERS = 1 << 26

Sentence = Sequence[str]


class NeuralScorer:
    """A model with its numbering of words, without dropout.

    Words outside the vocabulary have the probability of ``<unk>``.
    """

    def __init__(self, model: NeuralLm, vocabulary: Vocabulary, name: str = "neural") -> None:
        self.model, self.vocabulary, self.name = model, vocabulary, name
        self.device = next(model.parameters()).device

    @property
    def words(self) -> frozenset[str]:
        """The words that have a probability of their own."""
        return frozenset(self.vocabulary.words)

    scores_unknown = True

    def token_log_probs(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """Natural log P of all words and sentence ends, (M,) float64, sentence by sentence."""
        text = self.vocabulary.encode(sentences)
        values = np.zeros(int(text.lengths.sum()))
        with scoring(self.model):
            for batch, places in self._batches(text):
                log_probs = self.model(batch.inputs, batch.targets, batch.lengths).cpu().numpy()
                values[places[places >= 0]] = log_probs[places >= 0]
        return values

    def states(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """(M, D) float32 hidden values before each word and sentence end."""
        text = self.vocabulary.encode(sentences)
        hidden = np.zeros((int(text.lengths.sum()), self.model.output.dim), np.float32)
        with scoring(self.model):
            for batch, places in self._batches(text):
                values = self.model.hidden(batch.inputs).float().cpu().numpy()
                hidden[places[places >= 0]] = values[places >= 0]
        return hidden

    @property
    def symbols(self) -> tuple[str, ...]:
        """The columns of :meth:`probs`."""
        return self.vocabulary.symbols

    def probs(self, states: np.ndarray) -> np.ndarray:
        """(B, V) float32 P of every symbol after hidden values (B, D)."""
        with scoring(self.model):
            return self.model.output.log_probs(self._tensor(states)).exp().cpu().numpy()

    def _batches(self, text: Text) -> Iterator[tuple[Batch, np.ndarray]]:
        """Batches of like lengths, and the place (N, U) of each position; -1 behind sentences."""
        ends, done = np.cumsum(text.lengths), 0
        for group in group_by_length(text.lengths, BATCH_POSITIONS, np.arange(len(text))):
            done += len(group)
            report_progress(done, len(text), "sentence")
            batch = make_batch(text, group).to(self.device)
            columns = np.arange(batch.inputs.size(1))
            places = (ends - text.lengths)[group][:, None] + columns
            yield batch, np.where(columns < text.lengths[group][:, None], places, -1)

    def score_sentences(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """Natural log P(words, end) of every sentence, (S,) float64, in padded batches."""
        lengths = [len(sentence) + 1 for sentence in sentences]
        owners = np.repeat(np.arange(len(sentences)), lengths)
        return np.bincount(owners, self.token_log_probs(sentences), minlength=len(sentences))

    def nbest_token_log_probs(
        self, nbests: Sequence[Sequence[Sentence]], *, max_numbers: int = MAX_NUMBERS
    ) -> np.ndarray:
        """(M,) float64 log P of all tokens of all hypotheses; each distinct prefix is read once.

        Args:
            nbests: N-best lists of words; lists and hypotheses may be empty.
            max_numbers: most numbers in states and hidden values of lists scored together; a longer
                list is cut.
        """
        text = self.vocabulary.encode([hyp for nbest in nbests for hyp in nbest])
        ends = np.cumsum([len(nbest) for nbest in nbests], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(text.lengths)])  # of each hypothesis's positions
        values = np.zeros(int(starts[-1]))
        with scoring(self.model):
            for first, last in self._blocks(text, ends, max_numbers):
                if last > first:
                    scores = self._score_tree(text, np.arange(first, last))
                    values[starts[first] : starts[last]] = scores
        return values

    def score_with_shared_prefixes(
        self, nbests: Sequence[Sequence[Sentence]], *, max_numbers: int = MAX_NUMBERS
    ) -> list[np.ndarray]:
        """Natural log P(words, end) of every hypothesis, an array (hypotheses,) a list."""
        lengths = [len(hyp) + 1 for nbest in nbests for hyp in nbest]
        owners = np.repeat(np.arange(len(lengths)), lengths)
        by_token = self.nbest_token_log_probs(nbests, max_numbers=max_numbers)
        totals = np.bincount(owners, by_token, minlength=len(lengths))
        ends = np.cumsum([len(nbest) for nbest in nbests], dtype=np.int64)
        return np.split(totals, ends[:-1]) if len(nbests) else []

    def _size(self, length: int) -> int:
        """Most numbers in the state and hidden values of a hypothesis of ``length`` words."""
        return self.model.state_size(length) + (length + 1) * self.model.output.dim

    def _blocks(self, text: Text, ends: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
        """Ranges of hypotheses that are scored together: whole lists where they fit."""
        first = last = longest = 0
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist()):
            length = int(text.lengths[start:end].max(initial=0))
            grown = max(longest, length)
            if last > first and (end - first) * self._size(grown) > limit:
                yield from self._pieces(first, last, longest, limit)
                first, grown = start, length
            last, longest = end, grown
        yield from self._pieces(first, last, longest, limit)

    def _pieces(self, first: int, last: int, longest: int, limit: int) -> Iterator[tuple[int, int]]:
        size = max(1, limit // self._size(longest))
        for start in range(first, last, size):
            yield start, min(start + size, last)

    def _score_tree(self, text: Text, hyps: np.ndarray) -> np.ndarray:
        """Log-probabilities of all positions of the hypotheses ``hyps`` (R,), as one tree."""
        tree = build_tree(text.padded(hyps), text.lengths[hyps])
        edges = (self._tensor(values) for values in (tree.edge_words, tree.edge_nodes))
        log_probs = self.model.output.target_log_probs(self.read_tree(tree), *edges)
        return log_probs.cpu().double().numpy()[tree.edges[tree.order]]

    def read_tree(self, tree: PrefixTree) -> Tensor:
        """(M, D) hidden values after each prefix, level by level."""
        model = self.model
        different, kinds = (self._tensor(v) for v in np.unique(tree.words, return_inverse=True))
        inputs, parents = model.step_inputs(different), self._tensor(tree.parents)
        state, levels = model.initial_state(1), []
        for start, end in pairwise(tree.starts.tolist()):
            hidden, state = model.read(inputs[kinds[start:end]], state.select(parents[start:end]))
            levels.append(hidden)
        return torch.cat(levels)

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self.device)


@contextmanager
def scoring(model: NeuralLm) -> Iterator[None]:
    """No dropout and no gradients within the block."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
