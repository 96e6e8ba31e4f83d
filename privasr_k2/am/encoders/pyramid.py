"""The listener of LAS: Chan et al. (2016), "Listen, attend and spell", section 2.1, eq. 5.

Between two BLSTM layers neighbouring frames are joined: each layer sees half as many, and the
attention has few to choose from.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from privasr_k2.am.encoders.blstm import BlstmLayer
from privasr_k2.am.encoders.common import (
    ChannelDropout,
    EncoderSettings,
    Subsampling,
    encoder,
    valid_frames,
)
from privasr_k2.constraints import Count, Natural, ShareBelowOne


@dataclass(frozen=True)
class PyramidConfig(EncoderSettings):
    """Numbers of a pyramid of BLSTMs; ``conf/pate.yaml#am_las`` explains them."""

    dim: Count
    reductions: Natural
    subsampling: int
    dropout: ShareBelowOne

    @property
    def frame_factor(self) -> int:
        """Input frames for an output frame."""
        return self.subsampling * 2**self.reductions

    def output_frames(self, frames: int) -> int:
        """Output frames for ``frames`` input frames."""
        left = super().output_frames(frames)
        for _ in range(self.reductions):
            left = (left + 1) // 2
        return left


def joined(x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Neighbouring frames side by side, (N, D, T) -> (N, 2 D, ceil(T / 2)), padded with 0.

    >>> y, lengths = joined(torch.tensor([[[1.0, 2, 3, 9]]]), torch.tensor([3]))
    >>> y.tolist(), lengths.tolist()
    ([[[1.0, 3.0], [2.0, 0.0]]], [2])
    """
    x = functional.pad(x * valid_frames(x, lengths), (0, x.size(2) % 2))
    half = torch.div(lengths + 1, 2, rounding_mode="floor")
    return torch.cat((x[:, :, 0::2], x[:, :, 1::2]), dim=1), half


@encoder("pyramid", PyramidConfig, aligned=False)
class Pyramid(nn.Module):
    """Features (N, F, T) and lengths (N,) -> (N, 2 D, T') and lengths."""

    def __init__(self, feature_dim: int, config: PyramidConfig) -> None:
        super().__init__()
        self.subsampling = Subsampling(feature_dim, config.dim, config.subsampling)
        dims = [config.dim] + [4 * config.dim] * config.reductions
        self.layers = nn.ModuleList(BlstmLayer(in_dim, config.dim) for in_dim in dims)
        self.dropout = ChannelDropout(config.dropout)
        self.dim, self.out_dim = config.dim, 2 * config.dim

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x, lengths = self.subsampling(x, lengths)
        zero = x.new_zeros(1, x.size(0), self.dim)
        for depth, layer in enumerate(self.layers):
            if depth:
                x, lengths = joined(x, lengths)
            x = self.dropout(layer(x, lengths, (zero, zero), x.size(2))[0])
        return x, lengths
