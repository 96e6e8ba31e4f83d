"""Acoustic model for connectionist temporal classification (CTC)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import kaldialign
import torch
from torch import Tensor, nn

from privasr_k2.am.ctc_prefix import CtcSteps
from privasr_k2.am.encoders.common import Pointwise
from privasr_k2.am.kinds import KINDS, Kind
from privasr_k2.am.losses import ctc_loss, greedy_tokens
from privasr_k2.am.model import AcousticModel, AmConfig, AmTask, ModelSpec
from privasr_k2.constraints import one_of
from privasr_k2.data.batches import Batch
from privasr_k2.training.task import Loss

KIND = "ctc"


@dataclass(frozen=True)
class CtcConfig(AmConfig):
    """Section ``am_ctc`` of the configuration."""

    kind: Annotated[str, one_of(KIND)]


@dataclass(frozen=True)
class CtcSpec(ModelSpec):
    """Content of a :class:`CtcModel`'s ``model.yaml``."""


class CtcModel(AcousticModel):
    """Features to log-probabilities of tokens; token 0 is the blank.

    Attributes:
        ctc_topology: of its loss: equal tokens have a blank between them.
    """

    ctc_topology = "standard"
    output_layers = ("output",)

    def __init__(self, spec: CtcSpec) -> None:
        super().__init__(spec)
        self.output = Pointwise(self.encoder.out_dim, spec.num_tokens)

    def forward(
        self, features: Tensor, lengths: Tensor, masks: Tensor | None = None, start: int = 0
    ) -> tuple[Tensor, Tensor]:
        """As :meth:`log_probs`, in the mode that the model is in and with gradients.

        Args:
            masks, start: as in :meth:`encoded`.
        """
        x, lengths = self.encoded(features, lengths, masks, start=start)
        return self.output(x).transpose(1, 2).float().log_softmax(dim=2), lengths

    @torch.no_grad()
    def log_probs(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the tokens at every output frame; padding and batch change nothing.

        Args:
            features: (N, T, F) float32.
            lengths: (N,) int64, true frames.

        Returns:
            (N, T', C) float32 and its true lengths (N,) int64.
        """
        self.eval()
        return self(features, lengths)

    def encode(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`privasr_k2.am.sequence.Recognizer.encode`: :meth:`log_probs`."""
        return self.log_probs(features, lengths)

    @torch.no_grad()
    def log_likelihoods(
        self, encoded: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, sizes: Tensor
    ) -> Tensor:
        return -ctc_loss(encoded[rows], lengths[rows], targets, sizes).double()

    @torch.no_grad()
    def stepper(self, encoded: Tensor, lengths: Tensor) -> CtcSteps:
        return CtcSteps(encoded, lengths)


class CtcTask(AmTask):
    """Losses of a :class:`CtcModel`, in nats; when scoring also token errors."""

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator | None) -> Loss:
        batch = self.augmented(batch, generator)
        log_probs, lengths = model(batch.features, batch.lengths, batch.masks)
        sums = ctc_loss(log_probs, lengths, batch.targets, batch.target_lengths)
        extra: Mapping[str, float] = {}
        if generator is None:
            extra = {"token_errors": token_errors(batch, greedy_tokens(log_probs, lengths))}
        return Loss(sums=sums, count=int(batch.target_lengths.sum()), extra=extra)


def token_errors(batch: Batch, hyps: Sequence[Sequence[int]]) -> int:
    """Edits between a batch's targets and what was recognized."""
    pairs = zip(batch.targets.tolist(), batch.target_lengths.tolist())
    targets = (row[:length] for row, length in pairs)
    return sum(kaldialign.edit_distance(ref, hyp)["total"] for ref, hyp in zip(targets, hyps))


KINDS.add(KIND, Kind(CtcConfig, CtcSpec, CtcModel, CtcTask))
