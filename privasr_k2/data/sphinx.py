"""The 13 cepstra of CMU Sphinx's front end, for corpora that come with only those, as AN4.

The front end of SphinxTrain and Sphinx-3: ``-transform legacy -nfilt 40 -lowerf 130 -upperf 6800``
at 16 kHz, no dither, no liftering, 16-bit scale. Window, filters, logarithm and scale differ from
HTK's and Kaldi's.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from privasr_k2.errors import DataError

SAMPLING_RATE = 16000
"""Hz."""
NUM_CEPSTRA = 13

_SHIFT, _WINDOW = 160, 410
"""Samples: 10 ms and 25.625 ms."""
_FFT = 512
_PRE_EMPHASIS = 0.97
_LOWEST, _HIGHEST, _FILTERS = 130.0, 6800.0, 40
_FULL_SCALE = 32768.0
_ENERGY_FLOOR = 1e-4
"""Added to the energies of 16-bit samples, so that silence has a logarithm."""
_FRAMES_AT_ONCE = 10000


def cepstra(samples: np.ndarray, sampling_rate: int) -> np.ndarray:
    """Mel cepstra as CMU Sphinx computes them: (S,) floats in [-1, 1] to (T, 13) float32.

    Frame t sees the samples 160 t to 160 t + 409. T = (S + 80) // 160 as for other features: one or
    two frames more than Sphinx, padded with zeros.

    Raises:
        DataError: another sampling rate than 16000 Hz.

    >>> silence = cepstra(np.zeros(1600, dtype=np.float32), 16000)
    >>> silence.shape, round(float(silence[0, 0]), 3)
    ((10, 13), -9.095)
    """
    if sampling_rate != SAMPLING_RATE:
        place, way_out = "features of kind=sphinx", "resample it, or choose kind=fbank or kind=mfcc"
        raise DataError(place, f"audio of {SAMPLING_RATE} Hz", f"{sampling_rate} Hz", way_out)
    num_frames = (len(samples) + _SHIFT // 2) // _SHIFT
    signal = samples.astype(np.float64) * _FULL_SCALE
    # Before the zeros are appended: in Sphinx, too, they do not take part in the pre-emphasis.
    signal[1:] -= _PRE_EMPHASIS * signal[:-1]
    padded = np.pad(signal, (0, _WINDOW))
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_SHIFT]
    values = np.empty((num_frames, NUM_CEPSTRA), dtype=np.float32)
    for start in range(0, num_frames, _FRAMES_AT_ONCE):
        block = slice(start, min(start + _FRAMES_AT_ONCE, num_frames))
        values[block] = _cepstra_of_frames(frames[block])
    return values


def _cepstra_of_frames(frames: np.ndarray) -> np.ndarray:
    """(T, 410) samples, pre-emphasized, to (T, 13)."""
    spectrum = np.fft.rfft(frames * np.hamming(_WINDOW), _FFT)
    filters, cosines = _bases()
    return np.log((spectrum.real**2 + spectrum.imag**2) @ filters + _ENERGY_FLOOR) @ cosines


@cache
def _bases() -> tuple[np.ndarray, np.ndarray]:
    """The filters, (257, 40), and what makes cepstra of their logarithms, (40, 13)."""
    lowest, highest = 2595 * np.log10(1 + np.array([_LOWEST, _HIGHEST]) / 700)
    edges = 700 * (10 ** (np.linspace(lowest, highest, _FILTERS + 2) / 2595) - 1)
    # Edges are moved to points of the spectrum, and every triangle has unit area.
    spacing = SAMPLING_RATE / _FFT
    edges = np.floor(edges / spacing + 0.5) * spacing
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    frequencies = spacing * np.arange(_FFT // 2 + 1)[:, None]
    rising, falling = (frequencies - low) / (centre - low), (high - frequencies) / (high - centre)
    filters = np.maximum(0, np.minimum(rising, falling)) * 2 / (high - low)
    # Sphinx's first transform, not orthonormal: a mean where the lowest filter counts half.
    cosines = np.cos(np.pi / _FILTERS * np.outer(np.arange(_FILTERS) + 0.5, np.arange(NUM_CEPSTRA)))
    cosines /= _FILTERS
    cosines[0] /= 2
    return filters, cosines
