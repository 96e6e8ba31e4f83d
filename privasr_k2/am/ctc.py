"""Acoustic model for connectionist temporal classification (CTC): normalization, encoder, outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import kaldialign
import torch
from torch import Tensor, nn

from privasr_k2.am.encoders import EncoderConfig, make_encoder, subsampled
from privasr_k2.am.encoders.common import Pointwise, valid_frames
from privasr_k2.am.losses import ctc_loss, greedy_tokens
from privasr_k2.am.specaugment import SpecAugment, SpecAugmentConfig
from privasr_k2.am.stretch import stretch
from privasr_k2.data.batches import Batch
from privasr_k2.training.task import Loss, TrainerConfig


@dataclass(frozen=True)
class CtcConfig(TrainerConfig):
    """What ``conf/am_ctc.yaml`` holds: an encoder, a training, and these.

    Attributes:
        encoder: which network, and how large.
        utterance_mean: subtract each utterance's own mean before the corpus's mean and deviation.
        time_stretch: most by which an utterance's duration is changed while training, as a share of it.
        spec_augment: masks over the features while training.
        max_duration: most seconds of speech in a batch, padding included.
        memory_gb: features are kept in memory up to this size.
    """

    encoder: EncoderConfig
    utterance_mean: bool
    time_stretch: float
    spec_augment: SpecAugmentConfig
    max_duration: float
    memory_gb: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_duration <= 0:
            raise ValueError(f"max_duration must be above 0, got {self.max_duration}")
        if not 0 <= self.time_stretch < 1:
            raise ValueError(f"time_stretch must be in [0, 1), got {self.time_stretch}")
        if self.memory_gb < 0:
            raise ValueError(f"memory_gb must not be below 0, got {self.memory_gb}")


@dataclass(frozen=True)
class CtcSpec:
    """What is needed to build a :class:`CtcModel` again, besides its weights.

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


class CtcModel(nn.Module):
    """Features to log-probabilities of tokens; token 0 is the blank.

    Attributes:
        tokens: the tokens' names, where they are known.
        ctc_topology: the paths that its loss sums over: equal tokens have a blank between them.
    """

    ctc_topology = "standard"
    mean: Tensor
    deviation: Tensor

    def __init__(self, spec: CtcSpec) -> None:
        super().__init__()
        self.spec = spec
        self.feature_dim, self.num_tokens = spec.feature_dim, spec.num_tokens
        self.subsampling = spec.encoder.subsampling
        self.tokens: list[str] | None = None
        self.register_buffer("mean", torch.zeros(spec.feature_dim))
        self.register_buffer("deviation", torch.ones(spec.feature_dim))
        self.encoder = make_encoder(spec.feature_dim, spec.encoder)
        self.output = Pointwise(self.encoder.out_dim, spec.num_tokens)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`log_probs`, in the mode that the model is in and with gradients."""
        x, lengths = self.encoder(self._normalize(features.transpose(1, 2), lengths), lengths)
        return self.output(x).transpose(1, 2).float().log_softmax(dim=2), lengths

    @torch.no_grad()
    def log_probs(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the tokens at every output frame; padding and company change nothing.

        Args:
            features: (N, T, F) float32.
            lengths: (N,) int64, true frames.

        Returns:
            (N, T', C) float32 and its true lengths (N,) int64.
        """
        self.eval()
        return self(features, lengths)

    def output_frames(self, frames: int) -> int:
        """T' for T frames."""
        return subsampled(frames, self.subsampling)

    def _normalize(self, x: Tensor, lengths: Tensor) -> Tensor:
        valid = valid_frames(x, lengths)
        if self.spec.utterance_mean:
            x = x - (x * valid).sum(dim=2, keepdim=True) / valid.sum(dim=2, keepdim=True)
        return (x - self.mean.unsqueeze(1)) / self.deviation.unsqueeze(1) * valid


def feature_statistics(batches: Iterable[Batch], *, utterance_mean: bool) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (F,) of true frames, less the utterance's mean where that is subtracted."""
    count, total, squares = 0, torch.zeros(1), torch.zeros(1)
    for batch in batches:
        x = batch.features.double()
        valid = valid_frames(x.transpose(1, 2), batch.lengths).transpose(1, 2)
        if utterance_mean:
            x = x - (x * valid).sum(1, keepdim=True) / valid.sum(1, keepdim=True)
        count += int(batch.lengths.sum())
        total = total + (x * valid).sum((0, 1))
        squares = squares + (x.square() * valid).sum((0, 1))
    mean = total / count
    # A feature that never changes is left as it is.
    deviation = (squares / count - mean.square()).clamp(min=0).sqrt()
    return mean.float(), torch.where(deviation > 1e-8, deviation, torch.ones_like(deviation)).float()


class CtcTask:
    """How the trainer gets losses from a :class:`CtcModel`: nats and, when scoring, token errors, a token.

    Args:
        spec_augment: masks while training; None = none.
        time_stretch: changes of tempo while training, as in :class:`CtcConfig`.
    """

    def __init__(self, spec_augment: SpecAugment | None = None, *, time_stretch: float = 0.0) -> None:
        self._spec_augment, self._time_stretch = spec_augment, time_stretch

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator | None) -> Loss:
        """The losses of a batch; ``generator`` is None when scoring."""
        features, lengths = batch.features, batch.lengths
        if generator is not None and self._time_stretch > 0:
            features, lengths = stretch(features, lengths, self._time_stretch, generator)
        if generator is not None and self._spec_augment is not None:
            features = self._spec_augment(features, lengths, generator)
        log_probs, lengths = model(features, lengths)
        sums = ctc_loss(log_probs, lengths, batch.targets, batch.target_lengths)
        extra: Mapping[str, float] = {}
        if generator is None:
            extra = {"token_errors": _token_errors(log_probs, lengths, batch)}
        return Loss(sums=sums, count=int(batch.target_lengths.sum()), extra=extra)

    def figures(self, means: Mapping[str, float]) -> dict[str, float]:
        """Losses and errors a token."""
        return dict(means)


def _token_errors(log_probs: Tensor, lengths: Tensor, batch: Batch) -> int:
    targets = (row[:length] for row, length in zip(batch.targets.tolist(), batch.target_lengths.tolist()))
    hyps = greedy_tokens(log_probs, lengths)
    return sum(kaldialign.edit_distance(ref, hyp)["total"] for ref, hyp in zip(targets, hyps))
