"""Time-delay neural network: residual dilated convolutions over time.

Peddinti, Povey and Khudanpur (2015), "A time delay neural network architecture for efficient
modeling of long temporal contexts"; here with residual connections and layer normalization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import MinLen
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
from privasr_k2.constraints import Count, ShareBelowOne


@dataclass(frozen=True)
class TdnnConfig(EncoderSettings):
    """Numbers of a TDNN; ``conf/ctc.yaml#am_ctc`` explains them."""

    dim: Count
    kernel: Count
    dilations: Annotated[list[Count], MinLen(1)]
    subsampling: int
    dropout: ShareBelowOne

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, got {self.kernel}")


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
        self.blocks = nn.ModuleList(
            TdnnBlock(config.dim, config.kernel, dilation, config.dropout)
            for dilation in config.dilations
        )
        self.norm = ChannelNorm(config.dim)
        self.out_dim = config.dim

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x, lengths = self.subsampling(x, lengths)
        valid = valid_frames(x, lengths)
        for block in self.blocks:
            x = block(x, valid)
        return self.norm(x), lengths
