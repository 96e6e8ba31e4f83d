"""Time-delay neural network: residual dilated convolutions over time.

Peddinti, Povey and Khudanpur (2015), "A time delay neural network architecture for efficient
modeling of long temporal contexts"; here with residual connections and layer normalization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from privasr_k2.am.encoders.common import (
    ChannelDropout,
    ChannelNorm,
    EncoderSettings,
    Pointwise,
    Subsampling,
    encoder,
    valid_frames,
)


@dataclass(frozen=True)
class TdnnConfig(EncoderSettings):
    """Numbers of a TDNN.

    Attributes:
        dim: channels D.
        kernel: frames that a convolution sees (odd).
        dilations: the step between those frames, an entry a block.
        subsampling: input frames for an output frame.
        dropout: share of channels dropped in a block, in [0, 1).
    """

    dim: int
    kernel: int
    dilations: list[int]
    subsampling: int
    dropout: float

    def __post_init__(self) -> None:
        self.check("tdnn", dim=1, kernel=1)
        if self.kernel % 2 == 0:
            raise ValueError(f"encoder.tdnn.kernel must be odd, got {self.kernel}")
        if not self.dilations or min(self.dilations) < 1:
            raise ValueError(
                f"encoder.tdnn.dilations must be a list of numbers above 0, got {self.dilations}"
            )


class TdnnBlock(nn.Module):
    """x + W relu(conv(norm(x))), (N, D, T) -> (N, D, T)."""

    def __init__(self, dim: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.norm = ChannelNorm(dim)
        self.conv = nn.Conv1d(dim, dim, kernel, dilation=dilation, padding=dilation * (kernel // 2))
        self.dropout = ChannelDropout(dropout)
        self.out = Pointwise(dim, dim)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        y = torch.relu(self.conv(self.norm(x) * valid))
        return x + self.out(self.dropout(y))


@encoder("tdnn", TdnnConfig)
class Tdnn(nn.Module):
    """Features (N, F, T) and lengths (N,) -> (N, D, T') and lengths."""

    def __init__(self, feature_dim: int, config: TdnnConfig) -> None:
        super().__init__()
        self.subsampling = Subsampling(feature_dim, config.dim, config.subsampling)
        self.blocks = _blocks(config.dim, config.kernel, config.dilations, config.dropout)
        self.norm = ChannelNorm(config.dim)
        self.out_dim = config.dim

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x, lengths = self.subsampling(x, lengths)
        valid = valid_frames(x, lengths)
        for block in self.blocks:
            x = block(x, valid)
        return self.norm(x), lengths


def _blocks(dim: int, kernel: int, dilations: Sequence[int], dropout: float) -> nn.ModuleList:
    return nn.ModuleList(TdnnBlock(dim, kernel, dilation, dropout) for dilation in dilations)
