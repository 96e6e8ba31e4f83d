"""Whisper's input: log-mel spectra, 25 ms every 10 ms (Radford et al. 2022, section 2.2)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SAMPLE_RATE = 16000
"""In Hz."""
_WINDOW, _HOP = 400, 160
_FLOOR, _DECADES = 1e-10, 8.0
_KNEE, _STEP = 15.0, math.log(6.4) / 27.0


def log_mel(
    audio: Tensor, lengths: Tensor, num_bins: int, pad_samples: int
) -> tuple[Tensor, Tensor]:
    """(N, T, F) and true lengths (N,), where T = ``pad_samples`` / 160.

    Args:
        audio: (N, S), 0 behind each utterance's length.
        lengths: (N,) samples.
        num_bins: F, 80 or 128.
        pad_samples: silence follows up to so many samples, a multiple of 160, S or more.
    """
    padded = torch.nn.functional.pad(audio, (0, pad_samples - audio.size(1)))
    window = torch.hann_window(_WINDOW, dtype=audio.dtype)
    spectrum = torch.stft(padded, _WINDOW, _HOP, window=window, return_complex=True)
    power = spectrum[..., :-1].abs().square()  # (N, 201, T)
    logs = (_filters(num_bins).to(power) @ power).clamp(min=_FLOOR).log10().transpose(1, 2)
    loudest = logs.amax(dim=(1, 2), keepdim=True)
    frames = torch.div(lengths + _HOP - 1, _HOP, rounding_mode="floor")
    return (torch.maximum(logs, loudest - _DECADES) + 4.0) / 4.0, frames


def _filters(num_bins: int) -> Tensor:
    """(F, 201) Slaney's triangles of equal area, linear below 1 kHz and logarithmic above."""
    top = _KNEE + math.log(SAMPLE_RATE / 2000) / _STEP
    mels = torch.linspace(0, top, num_bins + 2, dtype=torch.float64)
    hertz = torch.where(mels < _KNEE, mels * 200 / 3, 1000 * torch.exp((mels - _KNEE) * _STEP))
    points = torch.linspace(0, SAMPLE_RATE / 2, _WINDOW // 2 + 1, dtype=torch.float64)
    slopes, widths = points - hertz[:, None], hertz.diff()[:, None]
    rising, falling = slopes[:-2] / widths[:-1], -slopes[2:] / widths[1:]
    triangles = torch.minimum(rising, falling).clamp(min=0)
    return (triangles * 2 / (hertz[2:] - hertz[:-2])[:, None]).float()
