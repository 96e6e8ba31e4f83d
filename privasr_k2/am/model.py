"""The base of all acoustic models: configuration, normalization, encoder, augmentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from privasr_k2.am.encoders import EncoderConfig, make_encoder
from privasr_k2.am.encoders.common import valid_frames
from privasr_k2.am.specaugment import SpecAugment, SpecAugmentConfig
from privasr_k2.am.time_stretch import time_stretch
from privasr_k2.constraints import NotNegative, Positive, ShareBelowOne
from privasr_k2.data.batches import Batch
from privasr_k2.training.task import TrainerConfig
from privasr_k2.training.trainable import LAST_BLOCK, LoraConfig


@dataclass(frozen=True)
class AmConfig(TrainerConfig):
    """What sections ``am_<kind>`` share; ``conf/ctc.yaml#am_ctc`` explains the values."""

    NEUTRAL: ClassVar[Mapping[str, str]] = {"memory_gb": "says where features are read from"}

    kind: str
    encoder: EncoderConfig
    utterance_mean: bool
    time_stretch: ShareBelowOne
    spec_augment: SpecAugmentConfig
    trained: list[str]
    lora: LoraConfig
    max_duration: Positive
    memory_gb: NotNegative


@dataclass(frozen=True)
class ModelSpec:
    """Content of ``model.yaml``: all that is needed to build a model, besides its weights.

    Attributes:
        feature_dim: features F.
        num_tokens: outputs C; token 0 is the blank, or the end of the sentence.
    """

    kind: str
    feature_dim: int
    num_tokens: int
    utterance_mean: bool
    encoder: EncoderConfig


class AcousticModel(nn.Module):
    """Normalization and encoder; what follows is the subclass's.

    Attributes:
        output_layers: names of the layers that give tokens.
        tokens: the tokens' names, where they are known.
    """

    output_layers: ClassVar[tuple[str, ...]]
    mean: Tensor
    deviation: Tensor

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.spec, self.utterance_mean = spec, spec.utterance_mean
        self.feature_dim, self.num_tokens = spec.feature_dim, spec.num_tokens
        self.subsampling = spec.encoder.subsampling
        self.tokens: list[str] | None = None
        self.register_buffer("mean", torch.zeros(spec.feature_dim))
        self.register_buffer("deviation", torch.ones(spec.feature_dim))
        self.encoder = make_encoder(spec.feature_dim, spec.encoder)

    def encoded(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(N, T, F) features and (N,) lengths to (N, D, T') and (N,), with gradients."""
        return self.encoder(self._normalize(features.transpose(1, 2), lengths), lengths)

    def part_names(self, part: str) -> tuple[str, ...]:
        """As :class:`privasr_k2.training.trainable.HasParts`; a last block has what follows it."""
        blocks = getattr(self.encoder, "blocks", ())
        if part == LAST_BLOCK and not len(blocks):
            return ()
        behind = (f"encoder.blocks.{len(blocks) - 1}", "encoder.norm") if part == LAST_BLOCK else ()
        return (*behind, *self.output_layers)

    def needs_frames(self) -> bool:
        """Whether a transcript must fit its frames as CTC's must."""
        return True

    def output_frames(self, frames: int) -> int:
        """T' for T frames."""
        return self.spec.encoder.output_frames(frames)

    def _normalize(self, x: Tensor, lengths: Tensor) -> Tensor:
        valid = valid_frames(x, lengths)
        if self.utterance_mean:
            x = x - (x * valid).sum(dim=2, keepdim=True) / valid.sum(dim=2, keepdim=True)
        return (x - self.mean.unsqueeze(1)) / self.deviation.unsqueeze(1) * valid


class AmTask:
    """Augmentation and figures for the log, the same for all acoustic models.

    Args:
        spec_augment: masks while training; None = none.
        time_stretch: changes of tempo while training, as in :class:`AmConfig`.
    """

    def __init__(
        self, spec_augment: SpecAugment | None = None, *, time_stretch: float = 0.0
    ) -> None:
        self._spec_augment, self._time_stretch = spec_augment, time_stretch

    def augmented(self, batch: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """A batch's features and lengths, augmented unless ``generator`` is None."""
        features, lengths = batch.features, batch.lengths
        if generator is not None and self._time_stretch > 0:
            features, lengths = time_stretch(features, lengths, self._time_stretch, generator)
        if generator is not None and self._spec_augment is not None:
            features = self._spec_augment(features, lengths, generator)
        return features, lengths

    def figures(self, means: dict[str, float]) -> dict[str, float]:
        """Losses and errors a token."""
        return dict(means)


def feature_statistics(batches: Iterable[Batch], *, utterance_mean: bool) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (F,) of true frames, less the utterance's mean if subtracted."""
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
    deviation = (squares / count - mean.square()).clamp(min=0).sqrt()
    # A feature that never changes is left as it is.
    deviation = torch.where(deviation > 1e-8, deviation, torch.ones_like(deviation))
    return mean.float(), deviation.float()
