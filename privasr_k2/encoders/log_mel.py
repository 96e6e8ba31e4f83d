"""Whisper's input: log-mel spectra of 25 ms every 10 ms (Radford et al. 2022, section 2.2).

Filters are Slaney's: linear below 1 kHz, logarithmic above, of equal area.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from privasr_k2.encoders.common import SAMPLE_RATE, is_true

WINDOW, HOP = 400, 160
"""Samples."""
_FLOOR = 1e-10
_RANGE = 8.0
"""Powers of ten below an utterance's loudest point; what is below is raised to that."""
_TAIL = 2
"""Frames behind the last whose window still holds samples of the utterance."""


def log_mel(
    audio: Tensor, lengths: Tensor, num_bins: int, pad_samples: int
) -> tuple[Tensor, Tensor]:
    """(N, T, F) and true lengths (N,), T = ceil(S / 160).

    Args:
        audio: (N, S), 0 behind each utterance's length.
        lengths: (N,) samples.
        num_bins: F, 80 or 128.
        pad_samples: S is at least this, a multiple of 160: silence follows. The far end is then
            reflected, as Whisper's is; otherwise silence follows.
    """
    frames = torch.div(lengths + HOP - 1, HOP, rounding_mode="floor")
    num = int(frames.max()) if pad_samples == 0 else pad_samples // HOP
    computed = num if pad_samples else num + _TAIL
    audio = torch.nn.functional.pad(audio, (0, computed * HOP - audio.size(1)))
    half = WINDOW // 2
    before = audio[:, 1 : half + 1].flip(1)
    behind = audio[:, -half - 1 : -1].flip(1) if pad_samples else torch.zeros_like(before)
    surrounded = torch.cat((before, audio, behind), dim=1)[:, : (computed - 1) * HOP + WINDOW]
    window = torch.hann_window(WINDOW, device=audio.device, dtype=audio.dtype)
    spectrum = torch.stft(surrounded, WINDOW, HOP, window=window, center=False, return_complex=True)
    power = spectrum.real.square() + spectrum.imag.square()  # (N, 201, T)
    logs = (mel_filters(num_bins).to(power) @ power).clamp(min=_FLOOR).log10().transpose(1, 2)
    # Alone and in a batch the loudest point is sought in the same frames.
    own = is_true(frames + _TAIL, computed).unsqueeze(2)
    loudest = logs.masked_fill(~own, -math.inf).amax(dim=(1, 2), keepdim=True)
    return (torch.maximum(logs, loudest - _RANGE)[:, :num] + 4.0) / 4.0, frames


@functools.lru_cache(maxsize=4)
def mel_filters(num_bins: int) -> Tensor:
    """(F, 201) weights of the points of a spectrum from 0 to 8 kHz."""
    edges = torch.linspace(0, _mel(SAMPLE_RATE / 2), num_bins + 2, dtype=torch.float64)
    hertz = torch.where(
        edges < 15.0, edges * 200.0 / 3.0, 1000.0 * torch.exp((edges - 15.0) * _LOG_STEP)
    )
    points = torch.linspace(0, SAMPLE_RATE / 2, WINDOW // 2 + 1, dtype=torch.float64)
    low, centre, high = (hertz[i : num_bins + i].unsqueeze(1) for i in range(3))
    rising, falling = (points - low) / (centre - low), (high - points) / (high - centre)
    return (torch.minimum(rising, falling).clamp(min=0.0) * 2.0 / (high - low)).float()


_LOG_STEP = math.log(6.4) / 27.0


def _mel(hertz: float) -> float:
    """Slaney's scale, from 1 kHz on.

    >>> _mel(1000.0)
    15.0
    """
    return 15.0 + math.log(hertz / 1000.0) / _LOG_STEP
