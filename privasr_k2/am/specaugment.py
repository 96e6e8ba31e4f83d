"""SpecAugment without time warping.

Park et al. (2019), "SpecAugment: a simple data augmentation method".

:class:`SpecAugment` draws which values are masked. The model masks them, :func:`masked`: behind the
layers of a public encoder that it has, which expect all values, and before its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from privasr_k2.constraints import Checked, Natural, NotNegative, Share


@dataclass(frozen=True)
class SpecAugmentConfig(Checked):
    """How much is masked; ``conf/ctc.yaml#am_ctc`` explains the values."""

    time_masks_per_second: NotNegative
    time_width: Natural
    max_time_share: Share
    frequency_masks: Natural
    frequency_width: Natural


class SpecAugment:
    """Randomly placed bands of frames and of features, drawn for each utterance.

    Args:
        frame_shift: seconds between frames of features.

    >>> config = SpecAugmentConfig(1.0, 10, 0.5, 1, 2)
    >>> x, lengths = torch.randn(2, 100, 8), torch.tensor([100, 60])
    >>> masks = SpecAugment(config, frame_shift=0.01)(x, lengths, torch.Generator().manual_seed(1))
    >>> masks.shape, masks.dtype, masked(x, lengths, masks).shape
    (torch.Size([2, 100, 8]), torch.bool, torch.Size([2, 100, 8]))
    """

    def __init__(self, config: SpecAugmentConfig, *, frame_shift: float) -> None:
        self._config, self._frame_shift = config, frame_shift

    def __call__(self, features: Tensor, lengths: Tensor, generator: torch.Generator) -> Tensor:
        """Which values are masked, (N, T, F) bool: none behind an utterance's length.

        Args:
            features: (N, T, F); only their shape and device count.
            lengths: (N,), true frames.
            generator: of the machine's processor, so that every device masks alike.
        """
        config, frames = self._config, features.size(1)
        true = torch.arange(frames) < lengths.cpu().unsqueeze(1)  # (N, T)
        over_time = self._over_time(lengths.cpu(), frames, generator).unsqueeze(2)  # (N, T, 1)
        width = min(config.frequency_width, features.size(2))
        counts = torch.full((len(features),), config.frequency_masks)
        everywhere = torch.full((len(features),), features.size(2))
        bands = _bands(counts, everywhere, width, features.size(2), generator)
        either = over_time | bands.unsqueeze(1)  # (N, T, F)
        return (either & true.unsqueeze(2)).to(features.device)

    def _over_time(self, lengths: Tensor, frames: int, generator: torch.Generator) -> Tensor:
        config = self._config
        counts = (lengths * (config.time_masks_per_second * self._frame_shift)).round().long()
        if config.time_width > 0:
            most = (lengths * config.max_time_share / config.time_width).floor().long()
            counts = torch.minimum(counts, most)
        return _bands(counts, lengths, config.time_width, frames, generator)


def masked(features: Tensor, lengths: Tensor, masks: Tensor) -> Tensor:
    """Features (N, T, F) with their mean over the utterance's frames where ``masks`` is true.

    Args:
        lengths: (N,), true frames.
        masks: (N, T, F) of :class:`SpecAugment`.
    """
    true = torch.arange(features.size(1), device=lengths.device) < lengths.unsqueeze(1)
    true = true.to(features)
    mean = torch.einsum("ntf,nt->nf", features, true) / true.sum(1, keepdim=True)
    return torch.where(masks, mean.unsqueeze(1), features)


def _bands(
    counts: Tensor, sizes: Tensor, width: int, total: int, generator: torch.Generator
) -> Tensor:
    """(N, total) true inside ``counts`` bands of at most ``width`` within the first ``sizes``."""
    number = int(counts.max()) if len(counts) else 0
    drawn = torch.rand(2, len(counts), number, 1, generator=generator)
    widths = (drawn[0] * (width + 1)).floor()
    starts = (drawn[1] * (sizes.view(-1, 1, 1) - widths + 1).clamp(min=1)).floor()
    places = torch.arange(total).view(1, 1, -1)
    inside = (places >= starts) & (places < starts + widths)
    wanted = torch.arange(number).view(1, -1, 1) < counts.view(-1, 1, 1)
    return (inside & wanted).any(dim=1)
