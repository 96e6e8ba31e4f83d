"""Acoustic model for connectionist temporal classification (CTC): normalization, encoder,
outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import kaldialign
import torch
from torch import Tensor, nn

from privasr_k2.am.ctc_prefix import CtcSteps
from privasr_k2.am.encoders import EncoderConfig
from privasr_k2.am.encoders.common import Pointwise
from privasr_k2.am.kinds import KINDS, Kind
from privasr_k2.am.losses import ctc_loss, greedy_tokens
from privasr_k2.am.model import AcousticModel, AmConfig, AmTask
from privasr_k2.data.batches import Batch
from privasr_k2.training.task import Loss

KIND = "ctc"


@dataclass(frozen=True)
class CtcConfig(AmConfig):
    """Section ``am_ctc`` of the configuration."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_kind(KIND)


@dataclass(frozen=True)
class CtcSpec:
    """All that is needed to build a :class:`CtcModel` again, besides its weights.

    Attributes:
        kind: ``ctc``.
        feature_dim: features F.
        num_tokens: outputs C, the blank included.
    """

    kind: str
    feature_dim: int
    num_tokens: int
    utterance_mean: bool
    encoder: EncoderConfig


class CtcModel(AcousticModel):
    """Features to log-probabilities of tokens; token 0 is the blank.

    Attributes:
        ctc_topology: the paths that its loss sums over: equal tokens have a blank between them.
    """

    ctc_topology = "standard"

    def __init__(self, spec: CtcSpec) -> None:
        super().__init__(
            spec.feature_dim, spec.num_tokens, spec.encoder, utterance_mean=spec.utterance_mean
        )
        self.spec = spec
        self.output = Pointwise(self.encoder.out_dim, spec.num_tokens)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`log_probs`, in the mode that the model is in and with gradients."""
        x, lengths = self.encoded(features, lengths)
        return self.output(x).transpose(1, 2).float().log_softmax(dim=2), lengths

    @torch.no_grad()
    def log_probs(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the tokens at every output frame; padding and company change
        nothing.

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
        self,
        encoded: Tensor,
        lengths: Tensor,
        rows: Tensor,
        targets: Tensor,
        target_lengths: Tensor,
    ) -> Tensor:
        """As :meth:`privasr_k2.am.sequence.Recognizer.log_likelihoods`."""
        return -ctc_loss(encoded[rows], lengths[rows], targets, target_lengths).double()

    @torch.no_grad()
    def stepper(self, encoded: Tensor, lengths: Tensor) -> CtcSteps:
        """As :meth:`privasr_k2.am.sequence.Recognizer.stepper`."""
        return CtcSteps(encoded, lengths)


class CtcTask(AmTask):
    """How the trainer gets losses from a :class:`CtcModel`: nats and, when scoring, token errors, a
    token.
    """

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator | None) -> Loss:
        """The losses of a batch; ``generator`` is None when scoring."""
        features, lengths = self.augmented(batch, generator)
        log_probs, lengths = model(features, lengths)
        sums = ctc_loss(log_probs, lengths, batch.targets, batch.target_lengths)
        extra: Mapping[str, float] = {}
        if generator is None:
            extra = {"token_errors": token_errors(batch, greedy_tokens(log_probs, lengths))}
        return Loss(sums=sums, count=int(batch.target_lengths.sum()), extra=extra)


def token_errors(batch: Batch, hyps: Sequence[Sequence[int]]) -> int:
    """Edits between a batch's targets and what was recognized."""
    targets = (
        row[:length] for row, length in zip(batch.targets.tolist(), batch.target_lengths.tolist())
    )
    return sum(kaldialign.edit_distance(ref, hyp)["total"] for ref, hyp in zip(targets, hyps))


KINDS.add(KIND, Kind(CtcConfig, CtcSpec, CtcModel, CtcTask))
