"""Encoders of acoustic models: features (N, F, T) to (N, D, T')."""

from __future__ import annotations

from dataclasses import dataclass, fields

from torch import nn

from privasr_k2.am.encoders.blstm import Blstm, BlstmConfig
from privasr_k2.am.encoders.common import STRIDES, subsampled
from privasr_k2.am.encoders.conformer import Conformer, ConformerConfig
from privasr_k2.am.encoders.pyramid import Pyramid, PyramidConfig
from privasr_k2.am.encoders.tdnn import Tdnn, TdnnConfig

ENCODERS = {"tdnn": Tdnn, "blstm": Blstm, "conformer": Conformer, "pyramid": Pyramid}


@dataclass(frozen=True)
class EncoderConfig:
    """Which encoder, and the numbers of each: those of the others wait to be chosen.

    Attributes:
        kind: ``tdnn``, ``blstm`` or ``conformer``.
    """

    kind: str
    tdnn: TdnnConfig
    blstm: BlstmConfig
    conformer: ConformerConfig

    def __post_init__(self) -> None:
        known = [field.name for field in fields(self) if field.name in ENCODERS]
        if self.kind not in known:
            raise ValueError(f"encoder.kind must be one of {', '.join(known)}, got {self.kind!r}")

    @property
    def subsampling(self) -> int:
        """Input frames for an output frame of the chosen encoder."""
        return getattr(self, self.kind).subsampling

    def output_frames(self, frames: int) -> int:
        """Output frames of the chosen encoder for ``frames`` input frames."""
        return subsampled(frames, self.subsampling)


@dataclass(frozen=True)
class PyramidEncoderConfig(EncoderConfig):
    """The encoders of models whose outputs are not aligned to frames: also ``pyramid``."""

    pyramid: PyramidConfig

    @property
    def subsampling(self) -> int:
        """Input frames for an output frame of the chosen encoder."""
        return self.pyramid.all_subsampling if self.kind == "pyramid" else super().subsampling

    def output_frames(self, frames: int) -> int:
        """Output frames of the chosen encoder for ``frames`` input frames."""
        if self.kind != "pyramid":
            return super().output_frames(frames)
        left = subsampled(frames, self.pyramid.subsampling)
        for _ in range(self.pyramid.reductions):
            left = (left + 1) // 2
        return left


def make_encoder(feature_dim: int, config: EncoderConfig) -> nn.Module:
    """The chosen encoder, with ``out_dim`` channels at its output."""
    return ENCODERS[config.kind](feature_dim, getattr(config, config.kind))


__all__ = ["ENCODERS", "STRIDES", "EncoderConfig", "PyramidEncoderConfig", "make_encoder", "subsampled"]
