"""Encoders of acoustic models: features (N, F, T) to (N, D, T')."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from privasr_k2.am.encoders.blstm import Blstm, BlstmConfig
from privasr_k2.am.encoders.common import STRIDES, subsampled
from privasr_k2.am.encoders.conformer import Conformer, ConformerConfig
from privasr_k2.am.encoders.tdnn import Tdnn, TdnnConfig

ENCODERS = {"tdnn": Tdnn, "blstm": Blstm, "conformer": Conformer}


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
        if self.kind not in ENCODERS:
            raise ValueError(f"encoder.kind must be one of {', '.join(ENCODERS)}, got {self.kind!r}")

    @property
    def subsampling(self) -> int:
        """Input frames for an output frame of the chosen encoder."""
        return getattr(self, self.kind).subsampling


def make_encoder(feature_dim: int, config: EncoderConfig) -> nn.Module:
    """The chosen encoder, with ``out_dim`` channels at its output."""
    return ENCODERS[config.kind](feature_dim, getattr(config, config.kind))


__all__ = ["ENCODERS", "STRIDES", "EncoderConfig", "make_encoder", "subsampled"]
