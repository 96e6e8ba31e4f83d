"""Conformer: Gulati et al. (2020), "Conformer: convolution-augmented transformer for speech".

Positions enter the self-attention by rotation (Su et al. 2021, "RoFormer", eq. 34), without table
or longest length. The convolution module has layer normalization in place of batch normalization.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

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
class ConformerConfig(EncoderSettings):
    """Numbers of a Conformer; ``conf/ctc.yaml#am_ctc`` explains them."""

    dim: Count
    layers: Count
    heads: Count
    feedforward: Count
    kernel: Count
    subsampling: int
    dropout: ShareBelowOne

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim % (2 * self.heads):
            raise ValueError(
                f"dim must be a multiple of 2 heads = {2 * self.heads}, got {self.dim}"
            )
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, got {self.kernel}")


class FeedForward(nn.Module):
    """Norm, widen, swish, narrow: (N, D, T) -> (N, D, T)."""

    def __init__(self, dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm = ChannelNorm(dim)
        self.wide = Pointwise(dim, hidden)
        self.inner_dropout = ChannelDropout(dropout)
        self.narrow = Pointwise(hidden, dim)
        self.dropout = ChannelDropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        wide = functional.silu(self.wide(self.norm(x)))
        return self.dropout(self.narrow(self.inner_dropout(wide)))


def rotate(x: Tensor) -> Tensor:
    """Rotary positions: channels (i, i + E/2) of frame t turn by t / 10000^(2 i / E).

    Args:
        x: queries or keys (N, H, E, T).
    """
    half = x.size(2) // 2
    rate = torch.exp(torch.arange(half, device=x.device) * (-math.log(10000.0) / half))
    angle = rate.unsqueeze(1) * torch.arange(x.size(3), device=x.device).unsqueeze(0)  # (E / 2, T)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[:, :, :half], x[:, :, half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=2)


class SelfAttention(nn.Module):
    """Norm and multi-head self-attention over true frames: (N, D, T) -> (N, D, T)."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm = ChannelNorm(dim)
        self.qkv = Pointwise(dim, 3 * dim)
        self.out = Pointwise(dim, dim)
        self.dropout = ChannelDropout(dropout)
        self.heads = heads

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        n, d, t = x.size(0), x.size(1), x.size(2)
        qkv = self.qkv(self.norm(x)).view(n, 3, self.heads, d // self.heads, t)
        q, k, v = qkv.unbind(1)  # each (N, H, E, T)
        scores = rotate(q).transpose(2, 3) @ rotate(k) * (d // self.heads) ** -0.5  # (N, H, T, T)
        scores = scores.masked_fill(valid.unsqueeze(1) == 0, -1e4)  # finite in half precision too
        attended = v @ scores.softmax(dim=3).transpose(2, 3)  # (N, H, E, T)
        return self.dropout(self.out(attended.reshape(n, d, t)))


class Convolution(nn.Module):
    """Norm, gated pointwise, depthwise, norm, swish, pointwise: (N, D, T) -> (N, D, T)."""

    def __init__(self, dim: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.norm = ChannelNorm(dim)
        self.gated = Pointwise(dim, 2 * dim)
        self.depthwise = nn.Conv1d(dim, dim, kernel, padding=kernel // 2, groups=dim)
        self.inner_norm = ChannelNorm(dim)
        self.out = Pointwise(dim, dim)
        self.dropout = ChannelDropout(dropout)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        y = functional.glu(self.gated(self.norm(x)), dim=1) * valid
        return self.dropout(self.out(functional.silu(self.inner_norm(self.depthwise(y)))))


class ConformerBlock(nn.Module):
    """Half a feed-forward module, attention, convolution, the other half, norm."""

    def __init__(self, config: ConformerConfig) -> None:
        super().__init__()
        self.before = FeedForward(config.dim, config.feedforward, config.dropout)
        self.attention = SelfAttention(config.dim, config.heads, config.dropout)
        self.convolution = Convolution(config.dim, config.kernel, config.dropout)
        self.after = FeedForward(config.dim, config.feedforward, config.dropout)
        self.norm = ChannelNorm(config.dim)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        x = x + 0.5 * self.before(x)
        x = x + self.attention(x, valid)
        x = x + self.convolution(x, valid)
        return self.norm(x + 0.5 * self.after(x))


@encoder("conformer", ConformerConfig)
class Conformer(nn.Module):
    """Features (N, F, T) and lengths (N,) -> (N, D, T') and lengths."""

    def __init__(self, feature_dim: int, config: ConformerConfig) -> None:
        super().__init__()
        self.subsampling = Subsampling(feature_dim, config.dim, config.subsampling)
        self.blocks = nn.ModuleList(ConformerBlock(config) for _ in range(config.layers))
        self.out_dim = config.dim

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x, lengths = self.subsampling(x, lengths)
        valid = valid_frames(x, lengths)
        for block in self.blocks:
            x = block(x, valid)
        return x, lengths
