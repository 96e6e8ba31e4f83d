"""Parts that encoders share: padding, pointwise layers, norms, dropout, subsampling.

Arrays in encoders are (N, D, T): oneDNN's convolutions are several times faster on a CPU than
matrix products over (N, T, D). A linear layer is a convolution of width one.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from privasr_k2.constraints import Checked
from privasr_k2.plugins import Registry

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

    It mixes neither frames nor utterances, as padding and per-example gradients require.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class ChannelDropout(nn.Module):
    """Dropout of an utterance's whole channels, one mask for all frames: (N, D, T) -> (N, D, T)."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0.0:
            return x
        keep = torch.rand(x.size(0), x.size(1), 1, device=x.device) >= self.probability
        return x * (keep.to(x.dtype) / (1.0 - self.probability))


class Subsampling(nn.Module):
    """Two convolutions over time, stride ``factor``: (N, F, T) -> (N, D, ceil(T / factor))."""

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


class EncoderSettings(Checked):
    """Settings that all encoders share; each encoder has a frozen dataclass of its own.

    Attributes:
        subsampling: input frames for a frame behind :class:`Subsampling`.
        dropout: share dropped, in [0, 1).
    """

    subsampling: int
    dropout: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subsampling not in STRIDES:
            raise ValueError(f"subsampling must be one of {[*STRIDES]}, got {self.subsampling}")

    @property
    def frame_factor(self) -> int:
        """Input frames for an output frame."""
        return self.subsampling

    def output_frames(self, frames: int) -> int:
        """Output frames for ``frames`` input frames."""
        return subsampled(frames, self.subsampling)


@dataclass(frozen=True)
class Encoder:
    """One encoder.

    Attributes:
        settings: a frozen dataclass that is an :class:`EncoderSettings`.
        make: (feature_dim, settings) to a module (N, F, T), (N,) -> (N, D, T'), (N,) with
            ``out_dim`` D.
        aligned: whether its outputs keep enough frames to align tokens to, as CTC does.
    """

    settings: type[EncoderSettings]
    make: Callable[[int, Any], nn.Module]
    aligned: bool


def _own_encoders() -> None:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"privasr_k2.am.encoders.{module.name}")


#: By name. The package's own are the modules of this folder; plugins add to them.
ENCODERS = Registry[Encoder]("encoder.kind", _own_encoders)
_M = TypeVar("_M", bound=type[nn.Module])


def encoder(
    name: str, settings: type[EncoderSettings], *, aligned: bool = True
) -> Callable[[_M], _M]:
    """Register the class below as the encoder ``name``; see :class:`Encoder`."""

    def register(made: _M) -> _M:
        ENCODERS.add(name, Encoder(settings, made, aligned))
        return made

    return register
