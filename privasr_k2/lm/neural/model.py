"""The interface of neural language models.

A sentence ``w_1 ... w_n`` is read as ``<s> w_1 ... w_n`` and predicted as ``w_1 ... w_n </s>``: U =
n + 1 positions. Opacus gives per-example gradients of :meth:`NeuralLm.log_probs` for word models
with a full softmax and untied vectors (``nn.LSTM`` as its ``DPLSTM``).
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from privasr_k2.lm.neural.softmax import Output
from privasr_k2.training.trainable import LAST_BLOCK, OUTPUT


@dataclass(frozen=True, eq=False)
class State:
    """The states of a network after N prefixes: tensors (N, S, ...) of its own form."""

    tensors: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.tensors[0])

    def select(self, rows: Tensor) -> State:
        """The states of the prefixes ``rows`` (M,), which may repeat."""
        return State(tuple(tensor[rows] for tensor in self.tensors))


def join(states: Sequence[State]) -> State:
    """The states of all prefixes, those of shorter ones filled up.

    >>> join([State((torch.ones(2, 1),)), State((torch.ones(1, 2),))]).tensors[0].tolist()
    [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    """
    joined = []
    for parts in zip(*(state.tensors for state in states)):
        longest = max(part.size(1) for part in parts)
        padding = (p.new_zeros(len(p), longest - p.size(1), *p.shape[2:]) for p in parts)
        joined.append(torch.cat([torch.cat(pair, dim=1) for pair in zip(parts, padding)]))
    return State(tuple(joined))


class NeuralLm(nn.Module, abc.ABC):
    """Words to log-probabilities of the words that follow; ``num_words`` is V.

    Results depend neither on padding nor on the other sentences of a batch.
    """

    output: Output
    num_words: int

    @abc.abstractmethod
    def embed(self, words: Tensor) -> Tensor:
        """The inputs (..., E) for ``words`` (...) int64."""

    @abc.abstractmethod
    def initial_state(self, n: int) -> State:
        """The state of ``n`` empty prefixes."""

    @abc.abstractmethod
    def advance(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Read U more words after each of N prefixes: inputs (N, U, E) from :meth:`embed`.

        Returns:
            hidden values (N, U, D) for :attr:`output`, and the state after all U words.
        """

    @abc.abstractmethod
    def state_size(self, length: int) -> int:
        """Numbers in the state of a prefix of ``length`` words."""

    def last_block(self) -> tuple[str, ...]:
        """Beginnings of the names of parameters of the last layer and up to the softmax."""
        return ()

    def part_names(self, part: str) -> tuple[str, ...]:
        """As :class:`privasr_k2.training.trainable.HasParts`; a last block has the softmax, too."""
        block = self.last_block()
        return {OUTPUT: (OUTPUT,), LAST_BLOCK: (*block, OUTPUT) if block else ()}.get(part, ())

    def step(self, words: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one more word (N,) int64 after each prefix: hidden (N, D) and the new state."""
        different, places = words.unique(return_inverse=True)
        return self.read(self.step_inputs(different)[places], state)

    def step_inputs(self, words: Tensor) -> Tensor:
        """The inputs (M, ...) of :meth:`read` for ``words`` (M,) int64, independent of position."""
        return self.embed(words)

    def read(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one more word of N prefixes, as :meth:`step` from :meth:`step_inputs` (N, ...)."""
        hidden, state = self.advance(inputs.unsqueeze(1), state)
        return hidden.squeeze(1), state

    def hidden(self, words: Tensor) -> Tensor:
        """Hidden values (N, U, D) after each word of sentences (N, U), boundary first."""
        return self.advance(self.embed(words), self.initial_state(len(words)))[0]

    def log_probs(self, words: Tensor) -> Tensor:
        """Natural log P(. | words so far), (N, U, V), for sentences (N, U) int64."""
        return self.output.log_probs(self.hidden(words))

    def target_log_probs(
        self, inputs: Tensor, targets: Tensor, lengths: Tensor | None = None
    ) -> Tensor:
        """Natural log P(targets | inputs so far), (N, U) float32, if possible without (N, U, V).

        Args:
            inputs, targets: (N, U) int64.
            lengths: (N,) int64 true positions, the result is 0 behind them; None = all are true.
        """
        hidden = self.hidden(inputs)
        if lengths is None:
            log_probs = self.output.target_log_probs(hidden.flatten(0, 1), targets.flatten())
            return log_probs.view(targets.shape)
        positions = torch.arange(inputs.size(1), device=inputs.device)
        valid = positions < lengths.unsqueeze(1)  # (N, U)
        log_probs = self.output.target_log_probs(hidden[valid], targets[valid])
        return log_probs.new_zeros(targets.shape).masked_scatter(valid, log_probs)

    def forward(self, inputs: Tensor, targets: Tensor, lengths: Tensor | None = None) -> Tensor:
        """What training maximizes the mean of: :meth:`target_log_probs`."""
        return self.target_log_probs(inputs, targets, lengths)
