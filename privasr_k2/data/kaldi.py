"""Kaldi's filter banks and cepstra, computed by lhotse's layers.

Frames are 25 ms long and 10 ms apart, with Povey's window, their mean removed, a preemphasis of
0.97, no dither and reflected edges. Filters end 400 Hz below half the sampling rate, and energies
are at least 2^-23: the settings of lhotse's ``Fbank()``, and of icefall. lhotse's extractors want
one sampling rate and refuse signals of less than a frame; these functions take any.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

NUM_FILTERS, NUM_CEPSTRA = 80, 40

_FRAMES_AT_ONCE = 400
"""So few that what is computed of them stays in the processor's cache."""


def fbank(samples: np.ndarray, sampling_rate: int) -> np.ndarray:
    """Logarithms of the energies of 80 mel filters: (S,) floats in [-1, 1] to (T, 80) float32.

    T = (S + shift / 2) // shift with a shift of 10 ms.

    >>> fbank(np.zeros(16000, dtype=np.float32), 16000).shape
    (100, 80)
    """
    return _features(samples, sampling_rate, "fbank")


def mfcc(samples: np.ndarray, sampling_rate: int) -> np.ndarray:
    """Cepstra of 40 mel filters, liftered by 22: (S,) floats in [-1, 1] to (T, 40) float32.

    T is that of :func:`fbank`.

    >>> mfcc(np.zeros(8000, dtype=np.float32), 8000).shape
    (100, 40)
    """
    return _features(samples, sampling_rate, "mfcc")


def _features(samples: np.ndarray, sampling_rate: int, kind: str) -> np.ndarray:
    import torch

    window, shift = sampling_rate * 25 // 1000, sampling_rate // 100
    num_frames = (len(samples) + shift // 2) // shift
    if num_frames == 0:
        return np.zeros((0, NUM_FILTERS if kind == "fbank" else NUM_CEPSTRA), dtype=np.float32)
    # As Kaldi: the middle of frame t is at (t + 1/2) shift, and what lies beyond the signal is
    # reflected, of a short one several times. lhotse reflects once, and is a sample off where
    # window and shift are odd, as at 44.1 kHz.
    left = window // 2 - shift // 2
    right = max(0, (num_frames - 1) * shift + window - left - len(samples))
    padded = np.pad(samples.astype(np.float32), (left, right), mode="symmetric")
    layer, parts = _layer(kind, sampling_rate), []
    for start in range(0, num_frames, _FRAMES_AT_ONCE):
        stop = min(start + _FRAMES_AT_ONCE, num_frames)
        heard = torch.from_numpy(padded[start * shift : (stop - 1) * shift + window])
        parts.append(layer(heard.unsqueeze(0))[0].numpy())
    return np.concatenate(parts)


@cache
def _layer(kind: str, sampling_rate: int) -> torch.nn.Module:
    """lhotse's layer, for signals whose edges are reflected."""
    from lhotse.features.kaldi.layers import Wav2LogFilterBank, Wav2MFCC

    filters = {"num_filters": NUM_FILTERS if kind == "fbank" else NUM_CEPSTRA, "snip_edges": True}
    with warnings.catch_warnings():  # of frames that are missing with snip_edges
        warnings.simplefilter("ignore", UserWarning)
        if kind == "fbank":
            return Wav2LogFilterBank(sampling_rate, **filters)
        return Wav2MFCC(sampling_rate, num_ceps=NUM_CEPSTRA, **filters)
