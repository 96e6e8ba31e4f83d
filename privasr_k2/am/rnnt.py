"""RNN transducer: Graves (2012), "Sequence transduction with recurrent neural networks".

The joint network's outputs, (N, T, U + 1, C), need most memory. They are computed in pieces of at
most ``joint_mb``, while training once more for the gradient, and not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from privasr_k2.am.kinds import KINDS, Kind
from privasr_k2.am.rnnt_loss import boundary, find_k2, log_likelihood
from privasr_k2.am.sequence import SequenceConfig, SequenceModel, SequenceSpec, SequenceTask
from privasr_k2.am.shared_prefixes import SharedPrefixes, share_prefixes
from privasr_k2.am.steps import Prefixes, relative, scanned
from privasr_k2.compat import transducer_ranges
from privasr_k2.constraints import (
    Checked,
    Count,
    Natural,
    Positive,
    PositiveShare,
    ShareBelowOne,
    one_of,
)
from privasr_k2.errors import ConfigError

KIND = "rnnt"
_LEAST = -1e4
_NONE = -float("inf")
_CACHED = 4e6  # bytes of logits that stay in a CPU's cache from one operation to the next


@dataclass(frozen=True)
class TransducerConfig(Checked):
    """Numbers of a transducer behind its encoder; ``conf/pate.yaml#am_rnnt`` explains them."""

    embedding: Count
    dim: Count
    layers: Count
    joint: Count
    dropout: ShareBelowOne
    joint_mb: Positive
    backend: Annotated[str, one_of("auto", "k2", "torch")]
    prune_range: Natural
    simple_share: PositiveShare

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prune_range == 1:
            raise ValueError("prune_range must be 0 or at least 2, got 1")


@dataclass(frozen=True)
class RnntConfig(SequenceConfig):
    """Section ``am_rnnt`` of the configuration."""

    kind: Annotated[str, one_of(KIND)]
    transducer: TransducerConfig


@dataclass(frozen=True)
class RnntSpec(SequenceSpec):
    """Content of a :class:`RnntModel`'s ``model.yaml``."""

    transducer: TransducerConfig


class Predictor(nn.Module):
    """The prediction network: an LSTM over the labels so far; 0 is the beginning."""

    def __init__(self, num_tokens: int, config: TransducerConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_tokens, config.embedding)
        self.lstm = nn.LSTM(config.embedding, config.dim, config.layers, batch_first=True)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, labels: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(N, U) labels and the LSTM's state, twice (L, N, D), to (N, U, D) outputs and state."""
        if state is None:
            layers, dim = self.lstm.num_layers, self.lstm.hidden_size
            zero = self.embedding.weight.new_zeros(layers, len(labels), dim)
            state = (zero, zero)
        out, after = self.lstm(self.dropout(self.embedding(labels)), state)
        return self.dropout(out), after


class Joint(nn.Module):
    """Tanh of the sum of a frame's and a prefix's projections, to C outputs; limit in bytes."""

    def __init__(
        self, frame_dim: int, prefix_dim: int, num_tokens: int, hidden: int, limit: int
    ) -> None:
        super().__init__()
        self.frame = nn.Linear(frame_dim, hidden)
        self.prefix = nn.Linear(prefix_dim, hidden, bias=False)
        self.output = nn.Linear(hidden, num_tokens)
        self.limit = limit

    @property
    def _cell(self) -> int:
        """Bytes for one frame and one prefix."""
        return 4 * max(self.output.out_features, self.output.in_features)

    def logits(self, frames: Tensor, prefixes: Tensor) -> Tensor:
        """Projections that broadcast to (..., J) -> (..., C) float32."""
        return self.output(torch.tanh(frames + prefixes)).float()

    def arcs(self, frames: Tensor, prefixes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of a blank and of the next label in every cell.

        Args:
            frames: (N, T, J) projected.
            prefixes: (N, U + 1, J) projected.
            labels: (N, U).

        Returns:
            (N, T, U + 1) and (N, T, U).
        """
        pieces = [*self.pieces(*frames.shape[:2], prefixes.size(1))]
        # Opacus's hooks take every call of the output layer for all utterances, and once.
        if self.output._forward_hooks or len(pieces) == 1:
            return self._arcs(frames, prefixes, labels)
        again = torch.is_grad_enabled()
        parts: dict[int, list[tuple[Tensor, Tensor]]] = {}
        for rows, times in pieces:
            given = (frames[rows, times], prefixes[rows], labels[rows])
            if again:
                part = checkpoint(self._arcs, *given, use_reentrant=False, preserve_rng_state=False)
            else:
                part = self._arcs(*given)
            parts.setdefault(rows.start, []).append(part)
        by_rows = [[torch.cat(side, dim=1) for side in zip(*own)] for own in parts.values()]
        blank, label = zip(*by_rows)
        return torch.cat(blank), torch.cat(label)

    def _arcs(self, frames: Tensor, prefixes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.logits(frames.unsqueeze(2), prefixes.unsqueeze(1))  # (N, T, U + 1, C)
        total = logits.logsumexp(3)
        wanted = labels.view(len(labels), 1, -1, 1).expand(-1, logits.size(1), -1, 1)
        label = logits[:, :, :-1].gather(3, wanted).squeeze(3) - total[:, :, :-1]
        return logits[..., 0] - total, label

    def shared_arcs(
        self, frames: Tensor, prefixes: Tensor, hyps: SharedPrefixes
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities of a blank after each prefix and of each next token; no gradients.

        Args:
            frames: (N, T, J) projected.
            prefixes: (K, J) projected.

        Returns:
            (K, T) and (E, T); values behind an utterance's end mean nothing.
        """
        blanks, labels = [], []
        limit = self.limit if frames.is_cuda else min(self.limit, _CACHED)
        step = max(int(limit // (self._cell * frames.size(1))), 1)
        splits = torch.arange(0, len(prefixes) + step, step, device=prefixes.device)
        edges = torch.searchsorted(hyps.edge_nodes, splits).tolist()
        for start, first, last in zip(range(0, len(prefixes), step), edges, edges[1:]):
            end = start + step
            read = prefixes[start:end].unsqueeze(1)
            logits = self.logits(frames[hyps.owners[start:end]], read)  # (k, T, C)
            total = logits.logsumexp(2)
            blanks.append(logits[..., 0] - total)
            nodes = hyps.edge_nodes[first:last] - start
            labels.append(logits[nodes, :, hyps.edge_tokens[first:last]] - total[nodes])
        return torch.cat(blanks), torch.cat(labels)

    def pieces(self, num: int, frames: int, positions: int) -> Iterator[tuple[slice, slice]]:
        """Rows and frames whose outputs at ``positions`` prefixes fit the limit, or one frame."""
        cells = max(int(self.limit // (self._cell * positions)), 1)  # pairs of utterance and frame
        rows = min(max(cells // frames, 1), num) if cells < num * frames else num
        times = min(max(cells // rows, 1), frames)
        for row in range(0, num, rows):
            for time in range(0, frames, times):
                yield slice(row, row + rows), slice(time, time + times)


class RnntModel(SequenceModel):
    """Encoder, prediction network and joint network; output 0 is the blank."""

    output_layers = ("joint.output",)

    def __init__(self, spec: RnntSpec) -> None:
        super().__init__(spec)
        config = spec.transducer
        self.predictor = Predictor(spec.num_tokens, config)
        limit = int(config.joint_mb * 1e6)
        self.joint = Joint(self.encoder.out_dim, config.dim, spec.num_tokens, config.joint, limit)
        if config.prune_range:
            self.simple_frame = nn.Linear(self.encoder.out_dim, spec.num_tokens)
            self.simple_prefix = nn.Linear(config.dim, spec.num_tokens)

    def losses(
        self, encoded: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """As :meth:`SequenceModel.losses`; in training pruned by k2 if ``prune_range`` > 0."""
        prefixes, _ = self.predictor(functional.pad(targets, (1, 0)))
        if self.training and self.spec.transducer.prune_range and targets.size(1):
            return self._pruned(encoded, prefixes, lengths, targets, target_lengths)
        arcs = self.joint.arcs(self.joint.frame(encoded), self.joint.prefix(prefixes), targets)
        return -log_likelihood(*arcs, lengths, target_lengths, backend=self.spec.transducer.backend)

    def _pruned(
        self,
        encoded: Tensor,
        prefixes: Tensor,
        lengths: Tensor,
        targets: Tensor,
        target_lengths: Tensor,
    ) -> Tensor:
        """Kuang et al. (2022), "Pruned RNN-T for fast, memory-efficient ASR", section 3."""
        k2 = find_k2()
        if k2 is None:
            way_out = "set it to 0, or install k2"
            raise ConfigError("transducer.prune_range", "k2, which prunes", "no k2 here", way_out)
        edges = boundary(lengths, target_lengths)
        # k2 needs as many frames as labels; those behind an utterance's end count for nothing.
        encoded = functional.pad(encoded, (0, 0, 0, max(targets.size(1) - encoded.size(1), 0)))
        # Not k2's smoothed loss: its unigram of the whole batch would mix utterances' gradients.
        outputs = self.simple_prefix(prefixes).float(), self.simple_frame(encoded).float()
        options = dict(boundary=edges, reduction="none")
        simple, (of_label, of_blank) = k2.rnnt_loss_simple(
            *outputs, targets, 0, return_grad=True, **options
        )
        config = self.spec.transducer
        ranges = transducer_ranges(of_label, of_blank, edges, config.prune_range)
        projected = self.joint.frame(encoded), self.joint.prefix(prefixes)
        logits = self.joint.logits(*k2.do_rnnt_pruning(*projected, ranges))
        pruned = k2.rnnt_loss_pruned(logits, targets, ranges, 0, **options)
        loss: Tensor = pruned + config.simple_share * simple
        return loss

    @torch.no_grad()
    def log_likelihoods(
        self, encoded: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, sizes: Tensor
    ) -> Tensor:
        self.eval()
        hyps = share_prefixes(rows, targets, sizes)
        outputs, _ = self.predictor(functional.pad(targets, (1, 0)))
        # Any hypothesis with the prefix: the network has read the same there.
        read = outputs.new_zeros(len(hyps.owners), outputs.size(2))
        read[hyps.edge_nodes[hyps.edges[hyps.inside]]] = outputs[hyps.inside]
        projected = self.joint.frame(encoded), self.joint.prefix(read)
        blank, label = self.joint.shared_arcs(*projected, hyps)
        arcs = blank[hyps.edge_nodes[hyps.edges]], label[hyps.edges[:, :-1]]
        by_frame = [part.transpose(1, 2).contiguous() for part in arcs]
        backend = self.spec.transducer.backend
        return log_likelihood(*by_frame, lengths[rows], sizes, backend=backend).double()

    @torch.no_grad()
    def stepper(self, encoded: Tensor, lengths: Tensor) -> TransducerSteps:
        self.eval()
        return TransducerSteps(self, encoded, lengths)


class _Memory(NamedTuple):
    owners: Tensor  # (M,) utterance of each prefix
    hidden: Tensor  # (M, L, D) of the prediction network
    cell: Tensor  # (M, L, D)
    log_probs: Tensor  # (M, T, C) of the joint network after the prefix
    alphas: Tensor  # (M, T) log-probability to be at frame t with the prefix said
    total: Tensor  # (M,) of all transcripts that begin with the prefix


class TransducerSteps:
    """A :class:`privasr_k2.am.steps.Stepper` over a transducer: its probabilities of prefixes.

    A prefix of u labels is followed by a label with the probability of that label at any frame, the
    sum over t of alpha(t, u) P(label | t, u). alpha(., u) follows from alpha(., u - 1) by
    :func:`privasr_k2.am.steps.scanned`, all frames at once.
    """

    def __init__(self, model: RnntModel, encoded: Tensor, lengths: Tensor) -> None:
        self._model, self._frames = model, model.joint.frame(encoded)
        self._lengths = lengths.to(encoded.device)
        frames = torch.arange(encoded.size(1), device=encoded.device)
        self._padding = frames >= self._lengths.unsqueeze(1)  # (N, T)
        self.num = len(encoded)

    def start(self) -> Prefixes:
        owners = torch.arange(self.num, device=self._frames.device)
        prefix, state = self._model.predictor(torch.zeros_like(owners).unsqueeze(1))
        log_probs = self._log_probs(owners, prefix)
        entering = torch.full_like(log_probs[:, :, 0], _NONE, dtype=torch.float64)
        entering[:, 0] = 0.0
        return self._prefixes(owners, state, log_probs, entering, entering.new_zeros(self.num))

    def extend(self, prefixes: Prefixes, rows: Tensor, tokens: Tensor) -> Prefixes:
        before: _Memory = prefixes.memory
        owners = before.owners[rows]
        cells = (before.hidden[rows].transpose(0, 1), before.cell[rows].transpose(0, 1))
        state = (cells[0].contiguous(), cells[1].contiguous())
        prefix, state = self._model.predictor(tokens.unsqueeze(1), state)
        entering = before.alphas[rows] + before.log_probs[rows, :, tokens]
        total = before.total[rows] + prefixes.scores[rows, tokens]
        return self._prefixes(owners, state, self._log_probs(owners, prefix), entering, total)

    def _log_probs(self, owners: Tensor, prefix: Tensor) -> Tensor:
        """(M, T, C) of all frames after one prefix each, (M, 1, D)."""
        joint = self._model.joint
        logits = joint.logits(self._frames[owners], joint.prefix(prefix))
        return logits.log_softmax(2).clamp(min=_LEAST)

    def _prefixes(
        self,
        owners: Tensor,
        state: tuple[Tensor, Tensor],
        log_probs: Tensor,
        entering: Tensor,
        total: Tensor,
    ) -> Prefixes:
        alphas = scanned(log_probs[:, :, 0], entering)
        inside = alphas.masked_fill(self._padding[owners], _NONE)
        joint = (inside.unsqueeze(2) + log_probs).logsumexp(1)  # (M, C)
        last = (self._lengths[owners] - 1).unsqueeze(1)
        ended = alphas.gather(1, last) + log_probs[:, :, 0].gather(1, last)
        scores = relative(torch.cat((ended, joint[:, 1:]), dim=1), total)
        cells = (state[0].transpose(0, 1), state[1].transpose(0, 1))
        return Prefixes(scores, _Memory(owners, *cells, log_probs, alphas, total))


KINDS.add(KIND, Kind(RnntConfig, RnntSpec, RnntModel, SequenceTask))
