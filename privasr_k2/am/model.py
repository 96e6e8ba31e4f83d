"""The base of all acoustic models: configuration, normalization, encoder, augmentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from privasr_k2.am.encoders import EncoderConfig, make_encoder
from privasr_k2.am.encoders.common import valid_frames
from privasr_k2.am.specaugment import SpecAugment, SpecAugmentConfig, masked
from privasr_k2.am.time_stretch import time_stretch
from privasr_k2.constraints import Count, Natural, NotNegative, Positive, ShareBelowOne
from privasr_k2.data.batches import Batch
from privasr_k2.encoders.layers import LayerMixture
from privasr_k2.encoders.upper import UpperSpec, new_upper
from privasr_k2.errors import ConfigError
from privasr_k2.training.task import TrainerConfig
from privasr_k2.training.trainable import HEAD, LAST_BLOCK, LoraConfig


@dataclass(frozen=True)
class AmConfig(TrainerConfig):
    """What sections ``am_<kind>`` share; ``conf/ctc.yaml#am_ctc`` explains the values.

    Attributes:
        folds, fold: with ``folds`` above 0, dev is group ``fold`` (from 1) of so many groups of
            train's speakers, and train the other groups; see :func:`privasr_k2.data.folds.fold_of`.
    """

    NEUTRAL: ClassVar[Mapping[str, str]] = {"memory_gb": "says where features are read from"}

    kind: str
    encoder: EncoderConfig
    mixed_layers: Count
    utterance_mean: bool
    time_stretch: ShareBelowOne
    spec_augment: SpecAugmentConfig
    trained: list[str]
    lora: LoraConfig
    folds: Natural
    fold: Natural
    max_duration: Positive
    memory_gb: NotNegative

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds and not (self.folds > 1 and 1 <= self.fold <= self.folds):
            raise ValueError(
                f"fold must be 1 to folds, of 2 folds or more, got {self.fold} of {self.folds}"
            )


@dataclass(frozen=True)
class ModelSpec:
    """Content of ``model.yaml``: all that is needed to build a model, besides its weights.

    Attributes:
        feature_dim: features F.
        num_tokens: outputs C; token 0 is the blank, or the end of the sentence.
        mixed_layers: features are the outputs of so many layers side by side, which are mixed.
        public: layers of a public encoder between features and normalization, if there are any.
    """

    kind: str
    feature_dim: int
    num_tokens: int
    utterance_mean: bool
    encoder: EncoderConfig
    mixed_layers: int = field(default=1, kw_only=True)
    public: UpperSpec | None = field(default=None, kw_only=True)


class AcousticModel(nn.Module):
    """Normalization and encoder, maybe behind layers of a public encoder.

    What follows is the subclass's.

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
        self.public = None if spec.public is None else new_upper(spec.public)
        self.mixture = LayerMixture(spec.mixed_layers) if spec.mixed_layers > 1 else None
        if spec.feature_dim % spec.mixed_layers:
            expected = f"features of {spec.mixed_layers} layers, side by side"
            way_out = "set mixed_layers to the number of encoder.layers of the features"
            raise ConfigError("mixed_layers", expected, f"{spec.feature_dim} features", way_out)
        self.encoder = make_encoder(spec.feature_dim // spec.mixed_layers, spec.encoder)

    def encoded(
        self, features: Tensor, lengths: Tensor, masks: Tensor | None = None, start: int = 0
    ) -> tuple[Tensor, Tensor]:
        """(N, T, F) features and (N,) lengths to (N, D, T') and (N,), with gradients.

        Args:
            masks: (N, T, F), which values are masked behind the public encoder's layers.
            start: ``features`` are what enters this block of those layers.
        """
        if self.public is not None:
            features = self.public(features, lengths, start)
        if masks is not None:
            features = masked(features, lengths, masks)
        x = self._normalize(features.transpose(1, 2), lengths)
        if self.mixture is not None:
            x = self.mixture(x.unflatten(1, (self.spec.mixed_layers, -1)))
        return self.encoder(x, lengths)

    def part_names(self, part: str) -> tuple[str, ...]:
        """As :class:`privasr_k2.training.trainable.HasParts`; a last block has what follows it.

        It is that of the public encoder where the model has one; what follows that is the head.
        """
        if part not in (HEAD, LAST_BLOCK):
            return self.output_layers
        name, encoder, behind = "encoder", self.encoder, self.output_layers
        if self.public is not None:
            name, encoder = "public", self.public
            behind = tuple(child for child, _ in self.named_children() if child != "public")
        if part == HEAD:
            return behind if self.public is not None else ()
        blocks = getattr(encoder, "blocks", ())
        return (f"{name}.blocks.{len(blocks) - 1}", f"{name}.norm", *behind) if len(blocks) else ()

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

    def augmented(self, batch: Batch, generator: torch.Generator | None) -> Batch:
        """A batch at other tempos and with masks, unless ``generator`` is None."""
        if generator is None:
            return batch
        features, lengths, masks = batch.features, batch.lengths, batch.masks
        if self._time_stretch > 0:
            features, lengths = time_stretch(features, lengths, self._time_stretch, generator)
        if self._spec_augment is not None:
            masks = self._spec_augment(features, lengths, generator)
        return replace(batch, features=features, lengths=lengths, masks=masks)

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
