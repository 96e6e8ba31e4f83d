"""The speller of LAS and of hybrid models: an LSTM that attends to the encoder's frames.

Chan et al. (2016), "Listen, attend and spell", section 2.2. Energies also see the last step's
attention, as Chorowski et al. (2015), "Attention-based models for speech recognition", eq. 9:
content alone finds no alignment with some hours of speech. ``location_filters`` 0: content alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from privasr_k2.am.encoders.common import valid_frames
from privasr_k2.am.shared_prefixes import SharedPrefixes
from privasr_k2.am.steps import Prefixes
from privasr_k2.constraints import Checked, Count, Natural, ShareBelowOne

_MASKED = -1e4  # finite in half precision too, and exp() of it is 0


@dataclass(frozen=True)
class SpellerConfig(Checked):
    """Numbers of a speller; ``conf/pate.yaml#am_las`` explains them."""

    embedding: Count
    dim: Count
    layers: Count
    attention: Count
    location_filters: Natural
    location_kernel: Count
    dropout: ShareBelowOne
    label_smoothing: ShareBelowOne

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.location_kernel % 2 == 0:
            raise ValueError(f"location_kernel must be odd, got {self.location_kernel}")


class Frames(NamedTuple):
    """Attended encoder outputs: (N, T, D) values, (N, T, A) keys and (N, T) 1 at true frames."""

    values: Tensor
    keys: Tensor
    valid: Tensor

    def take(self, rows: Tensor) -> Frames:
        """Those of some utterances, which may repeat."""
        return Frames(*(part[rows] for part in self))


class State(NamedTuple):
    """After a token: LSTM (N, L, D) twice, the context (N, D'), and the attention (N, T)."""

    hidden: Tensor
    cell: Tensor
    context: Tensor
    weights: Tensor

    def take(self, rows: Tensor) -> State:
        """Those of some prefixes, which may repeat."""
        return State(*(part[rows] for part in self))


class Attention(nn.Module):
    """Additive attention: energies of state, frames and the last step's weights."""

    def __init__(self, frame_dim: int, config: SpellerConfig) -> None:
        super().__init__()
        self.key = nn.Linear(frame_dim, config.attention)
        self.query = nn.Linear(config.dim, config.attention, bias=False)
        self.energy = nn.Linear(config.attention, 1, bias=False)
        self.located = config.location_filters > 0
        if self.located:
            kernel = config.location_kernel
            self.filters = nn.Conv1d(
                1, config.location_filters, kernel, padding=kernel // 2, bias=False
            )
            self.place = nn.Linear(config.location_filters, config.attention, bias=False)

    def forward(self, state: Tensor, frames: Frames, last: Tensor) -> tuple[Tensor, Tensor]:
        """(N, D') weighted sum of the frames' values, and (N, T) weights of sum 1.

        Args:
            state: (N, D) of the top layer.
            last: (N, T) weights of the step before.
        """
        compared = frames.keys + self.query(state).unsqueeze(1)
        if self.located:
            compared = compared + self.place(self.filters(last.unsqueeze(1)).transpose(1, 2))
        energies = self.energy(torch.tanh(compared)).squeeze(2)
        weights = energies.masked_fill(frames.valid == 0, _MASKED).softmax(dim=1)
        return torch.bmm(weights.unsqueeze(1), frames.values).squeeze(1), weights


class Speller(nn.Module):
    """Encoder outputs to log-probabilities of tokens; 0 is both beginning and end of a sentence."""

    def __init__(self, frame_dim: int, num_tokens: int, config: SpellerConfig) -> None:
        super().__init__()
        self.config, self.frame_dim = config, frame_dim
        self.embedding = nn.Embedding(num_tokens, config.embedding)
        # nn.LSTM, one token a call: Opacus has a DPLSTM for it.
        given = config.embedding + frame_dim
        self.lstm = nn.LSTM(given, config.dim, config.layers, batch_first=True)
        self.attention = Attention(frame_dim, config)
        self.hidden = nn.Linear(config.dim + frame_dim, config.dim)
        self.output = nn.Linear(config.dim, num_tokens)
        self.dropout = nn.Dropout(config.dropout)

    def frames(self, encoded: Tensor, lengths: Tensor) -> Frames:
        """Values, keys and mask of encoder outputs (N, T, D)."""
        valid = valid_frames(encoded.transpose(1, 2), lengths).squeeze(1)
        values = encoded * valid.unsqueeze(2)
        return Frames(values, self.attention.key(values), valid)

    def begin(self, frames: Frames) -> State:
        """The state before the first token: attention to the first frame."""
        num, length = frames.valid.shape
        cells = frames.values.new_zeros(num, self.config.layers, self.config.dim)
        first = functional.one_hot(torch.zeros_like(frames.valid[:, 0], dtype=torch.int64), length)
        context = frames.values.new_zeros(num, self.frame_dim)
        return State(cells, cells, context, first.to(cells.dtype))

    def read(self, state: State, embedded: Tensor, frames: Frames) -> tuple[State, Tensor]:
        """The state after one more token (N, E), and (N, D + D') that the next token depends on."""
        given = torch.cat((embedded, state.context), dim=1).unsqueeze(1)
        cells = (state.hidden.transpose(0, 1).contiguous(), state.cell.transpose(0, 1).contiguous())
        out, (hidden, cell) = self.lstm(given, cells)
        context, weights = self.attention(out[:, 0], frames, state.weights)
        after = State(hidden.transpose(0, 1), cell.transpose(0, 1), context, weights)
        return after, torch.cat((out[:, 0], context), dim=1)

    def log_probs(self, seen: Tensor) -> Tensor:
        """(..., C) of the next token from what :meth:`read` gave."""
        return self.output(self.dropout(torch.tanh(self.hidden(seen)))).float().log_softmax(dim=-1)

    def seen(self, encoded: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        """(N, U + 1, D + D') that the tokens and the end depend on."""
        frames = self.frames(encoded, lengths)
        state, seen = self.begin(frames), []
        for token in self.dropout(self.embedding(functional.pad(targets, (1, 0)))).unbind(1):
            state, here = self.read(state, token, frames)
            seen.append(here)
        return torch.stack(seen, dim=1)

    def forward(
        self, encoded: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """(N,) negative log-likelihood, in nats, of every utterance's tokens and its end.

        While training, with label smoothing, against the smoothed targets.

        Args:
            encoded: (N, T, D).
            lengths: (N,) true frames.
            targets: (N, U) token numbers from 1.
            target_lengths: (N,) true tokens.
        """
        log_probs = self.log_probs(self.seen(encoded, lengths, targets))  # (N, U + 1, C)
        positions = torch.arange(log_probs.size(1), device=targets.device)
        inside = positions < target_lengths.unsqueeze(1)
        wanted = functional.pad(targets, (0, 1)) * inside
        losses = -log_probs.gather(2, wanted.unsqueeze(2)).squeeze(2)
        if self.training and self.config.label_smoothing > 0:
            share = self.config.label_smoothing
            losses = (1.0 - share) * losses - share * log_probs.mean(dim=2)
        return (losses * (positions <= target_lengths.unsqueeze(1))).sum(dim=1)

    def log_likelihoods(self, encoded: Tensor, lengths: Tensor, hyps: SharedPrefixes) -> Tensor:
        """log P of the tokens and the end of M hypotheses: (M,) float64; each prefix is read once.

        Args:
            encoded: (N, T, D).
            lengths: (N,) true frames.
        """
        frames, embedded, seen = self.frames(encoded, lengths), self.embedding(hyps.tokens), []
        state = self.begin(frames.take(hyps.owners[: hyps.levels[1]]))
        for start, end in hyps.by_length():
            if start:
                state = state.take(hyps.parents[start:end])
            state, here = self.read(state, embedded[start:end], frames.take(hyps.owners[start:end]))
            seen.append(here)
        log_probs = self.log_probs(torch.cat(seen))[hyps.edge_nodes, hyps.edge_tokens].double()
        return (log_probs[hyps.edges] * hyps.inside).sum(dim=1)


class SpellerSteps:
    """A :class:`privasr_k2.am.steps.Stepper` over a speller; encoded (N, T, D), lengths (N,)."""

    def __init__(self, speller: Speller, encoded: Tensor, lengths: Tensor) -> None:
        self._speller, self._frames = speller, speller.frames(encoded, lengths)
        self.num = len(encoded)

    def start(self) -> Prefixes:
        owners = torch.arange(self.num, device=self._frames.values.device)
        return self._read(owners, self._speller.begin(self._frames), torch.zeros_like(owners))

    def extend(self, prefixes: Prefixes, rows: Tensor, tokens: Tensor) -> Prefixes:
        owners, state = prefixes.memory
        return self._read(owners[rows], state.take(rows), tokens)

    def _read(self, owners: Tensor, state: State, tokens: Tensor) -> Prefixes:
        embedded = self._speller.embedding(tokens)
        state, seen = self._speller.read(state, embedded, self._frames.take(owners))
        return Prefixes(self._speller.log_probs(seen).double(), (owners, state))
