"""Encoders of acoustic models: features (N, F, T) to (N, D, T').

A new encoder is one file of this folder, or a plugin (:mod:`privasr_k2.plugins`): a dataclass of
its numbers, and a module below :func:`privasr_k2.am.encoders.common.encoder`.
"""

from __future__ import annotations

from torch import nn

from privasr_k2.am.encoders.common import ENCODERS
from privasr_k2.config import Choice


class EncoderConfig(Choice):
    """The encoder that was chosen, one whose outputs are aligned to frames, and its numbers."""

    @classmethod
    def choices(cls) -> dict[str, type]:
        """The numbers of each encoder."""
        aligned = [name for name in ENCODERS.names() if ENCODERS[name].aligned]
        return {name: ENCODERS[name].settings for name in aligned}

    @property
    def subsampling(self) -> int:
        """Input frames for an output frame."""
        return self.settings.frame_factor

    def output_frames(self, frames: int) -> int:
        """Output frames for ``frames`` input frames."""
        return self.settings.output_frames(frames)


class AnyEncoderConfig(EncoderConfig):
    """Any encoder, for models whose outputs are not aligned to frames."""

    @classmethod
    def choices(cls) -> dict[str, type]:
        """The numbers of each encoder."""
        return {name: ENCODERS[name].settings for name in ENCODERS.names()}


def make_encoder(feature_dim: int, config: EncoderConfig) -> nn.Module:
    """The chosen encoder, with ``out_dim`` channels at its output."""
    return ENCODERS[config.kind].make(feature_dim, config.settings)
