"""What all encoders share: padding, pointwise layers, norms, dropout, subsampling.

Inside an encoder arrays are (N, D, T), channels before time, because oneDNN's convolutions are several times
faster on a CPU than matrix products over (N, T, D); a linear layer is a convolution of width one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

# The strides of the two convolutions that make a subsampling factor.
STRIDES = {1: (1, 1), 2: (2, 1), 3: (3, 1), 4: (2, 2), 6: (3, 2)}


def valid_frames(x: Tensor, lengths: Tensor) -> Tensor:
    """1 at true frames and 0 at padding, (N, 1, T) in the type of ``x`` (N, D, T).

    >>> valid_frames(torch.zeros(2, 4, 3), torch.tensor([3, 1])).tolist()
    [[[1.0, 1.0, 1.0]], [[1.0, 0.0, 0.0]]]
    """
    frames = torch.arange(x.size(2), device=x.device)
    return (frames.unsqueeze(0) < lengths.unsqueeze(1)).unsqueeze(1).to(x.dtype)


class Pointwise(nn.Conv1d):
    """A linear layer at every frame: (N, D_in, T) -> (N, D_out, T)."""

    def __init__(self, in_dim: int, out_dim: int) -> None:
        super().__init__(in_dim, out_dim, kernel_size=1)


class ChannelNorm(nn.Module):
    """Layer normalization over the channels of every frame, (N, D, T) -> (N, D, T).

    Unlike batch normalization it mixes neither frames nor utterances: padding, batch size and the number
    of processes cannot change a result, and per-example gradients exist.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class ChannelDropout(nn.Module):
    """Dropout of whole channels of an utterance: one mask for all its frames, (N, D, T) -> (N, D, T)."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0.0:
            return x
        keep = torch.rand(x.size(0), x.size(1), 1, device=x.device) >= self.probability
        return x * (keep.to(x.dtype) / (1.0 - self.probability))


class Subsampling(nn.Module):
    """Two convolutions over time that keep every ``factor``-th frame: (N, F, T) -> (N, D, ceil(T / factor)).

    Args:
        in_dim: features F.
        out_dim: channels D.
        factor: 1, 2, 3, 4 or 6 input frames for an output frame.
    """

    def __init__(self, in_dim: int, out_dim: int, factor: int) -> None:
        super().__init__()
        first, second = STRIDES[factor]
        self.first = nn.Conv1d(in_dim, out_dim, kernel_size=5, stride=first, padding=2)
        self.norm = ChannelNorm(out_dim)
        self.second = nn.Conv1d(out_dim, out_dim, kernel_size=3, stride=second, padding=1)
        self.strides = (first, second)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = self.first(x * valid_frames(x, lengths))
        lengths = _strided(lengths, self.strides[0])
        x = torch.relu(self.norm(x))
        x = self.second(x * valid_frames(x, lengths))
        return x, _strided(lengths, self.strides[1])


def _strided(lengths: Tensor, stride: int) -> Tensor:
    return torch.div(lengths + (stride - 1), stride, rounding_mode="floor")


def subsampled(frames: int, factor: int) -> int:
    """Output frames of :class:`Subsampling` for ``frames`` input frames.

    >>> subsampled(10, 4)
    3
    """
    return math.ceil(math.ceil(frames / STRIDES[factor][0]) / STRIDES[factor][1])
