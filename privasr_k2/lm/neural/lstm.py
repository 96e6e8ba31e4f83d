"""Word LSTM language model [turan2022, section 2.3]."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from privasr_k2.constraints import Checked, Count, ShareBelowOne
from privasr_k2.lm.neural.kinds import KINDS, Kind, NeuralLmConfig, Spec
from privasr_k2.lm.neural.model import NeuralLm, State
from privasr_k2.lm.neural.softmax import OutputConfig, make_output, make_vectors


@dataclass(frozen=True)
class LstmConfig(Checked):
    """Numbers of a word LSTM; see ``network`` of ``conf/common.yaml#lm_lstm``."""

    embedding_dim: Count
    dim: Count
    layers: Count
    dropout: ShareBelowOne


class Recurrent(nn.Module):
    """LSTM layers with dropout around them, and their state in prefixes-first order."""

    def __init__(self, in_dim: int, dim: int, layers: int, dropout: float) -> None:
        super().__init__()
        between = dropout if layers > 1 else 0.0
        self.layers, self.dim = layers, dim
        self.lstm = nn.LSTM(in_dim, dim, layers, batch_first=True, dropout=between)
        self.dropout = nn.Dropout(dropout)

    def initial_state(self, n: int) -> State:
        """Zeros: hidden and cell values, each (n, layers, D)."""
        zeros = self.lstm.weight_hh_l0.new_zeros(n, self.layers, self.dim)
        return State((zeros, zeros))

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        before = tuple(tensor.transpose(0, 1).contiguous() for tensor in state.tensors)
        hidden, after = self.lstm(self.dropout(inputs), before)
        return self.dropout(hidden), State(tuple(tensor.transpose(0, 1) for tensor in after))

    def input_gates(self, inputs: Tensor, layer: int = 0) -> Tensor:
        """The part (N, 4 D) of a layer's gates from its inputs (N, E), biases included."""
        weight, bias_ih, bias_hh = (
            getattr(self.lstm, f"{name}_l{layer}") for name in ("weight_ih", "bias_ih", "bias_hh")
        )
        return functional.linear(self.dropout(inputs), weight, bias_ih + bias_hh)

    def step(self, gates: Tensor, state: State) -> tuple[Tensor, State]:
        """One word after each prefix, from the first layer's :meth:`input_gates` (N, 4 D).

        They are half of a layer's work, and the same wherever a word is read.
        """
        hiddens, cells = [], []
        before = zip(*(tensor.unbind(1) for tensor in state.tensors))
        for layer, (hidden, cell) in enumerate(before):
            if layer:
                gates = self.input_gates(hiddens[-1], layer)
            gates = torch.addmm(gates, hidden, getattr(self.lstm, f"weight_hh_l{layer}").t())
            enter, keep, new, leave = gates.chunk(4, dim=1)
            cells.append(keep.sigmoid() * cell + enter.sigmoid() * new.tanh())
            hiddens.append(leave.sigmoid() * cells[-1].tanh())
        state = State((torch.stack(hiddens, dim=1), torch.stack(cells, dim=1)))
        return self.dropout(hiddens[-1]), state


class RecurrentLm(NeuralLm):
    """The shared part of LSTM models, whichever embeds words."""

    recurrent: Recurrent
    project: nn.Module

    def initial_state(self, n: int) -> State:
        return self.recurrent.initial_state(n)

    def advance(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        hidden, state = self.recurrent(inputs, state)
        return self.project(hidden), state

    def step_inputs(self, words: Tensor) -> Tensor:
        return self.recurrent.input_gates(self.embed(words))

    def read(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        hidden, state = self.recurrent.step(inputs, state)
        return self.project(hidden), state

    def last_block(self) -> tuple[str, ...]:
        end = f"_l{self.recurrent.layers - 1}"
        own = (f"recurrent.{name}" for name, _ in self.recurrent.named_parameters())
        return (*(name for name in own if name.endswith(end)), "project")

    def state_size(self, length: int) -> int:
        return 2 * self.recurrent.layers * self.recurrent.dim


class LstmLm(RecurrentLm):
    """Word vectors, LSTM layers, softmax; a linear layer joins tied vectors of another size.

    Args:
        untied: the form of a tied model, with a copy of the vectors to read.
    """

    def __init__(
        self, config: LstmConfig, output: OutputConfig, num_words: int, *, untied: bool = False
    ) -> None:
        super().__init__()
        tied = output.tied or untied
        self.num_words = num_words
        self.recurrent = Recurrent(config.embedding_dim, config.dim, config.layers, config.dropout)
        joined = tied and config.dim != config.embedding_dim
        self.project = nn.Linear(config.dim, config.embedding_dim) if joined else nn.Identity()
        self.output = make_output(config.embedding_dim if tied else config.dim, num_words, output)
        self.vectors = make_vectors(config.embedding_dim, num_words, output) if untied else None
        self.embedding = None if tied else nn.Embedding(num_words, config.embedding_dim)

    def embed(self, words: Tensor) -> Tensor:
        if self.embedding is not None:
            return self.embedding(words)
        vectors = (self.output if self.vectors is None else self.vectors).embed(words)
        return vectors * math.sqrt(vectors.size(-1))  # outputs begin small, inputs should not


@dataclass(frozen=True)
class LstmLmConfig(NeuralLmConfig):
    """``conf/common.yaml#lm_lstm``."""

    network: LstmConfig


@dataclass(frozen=True)
class LstmSpec(Spec):
    """``model.yaml`` of a word LSTM."""

    network: LstmConfig


KINDS.add(
    "lstm",
    Kind(LstmLmConfig, LstmSpec, lambda s, v: LstmLm(s.network, s.output, len(v), untied=s.untied)),
)
