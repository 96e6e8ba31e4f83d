"""Simulated recording of clean speech, (count,) float: a room, noise and a level."""

from __future__ import annotations

import numpy as np


def white_noise(count: int, generator: np.random.Generator) -> np.ndarray:
    """Gaussian noise with a flat spectrum, (count,)."""
    return generator.standard_normal(count)


def pink_noise(count: int, generator: np.random.Generator) -> np.ndarray:
    """Gaussian noise with power 1/f, (count,): white noise shaped in the frequency domain."""
    length = 1 << max(count - 1, 1).bit_length()  # a transform of prime length is slow
    spectrum = np.fft.rfft(generator.standard_normal(length))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    spectrum[0] = 0.0
    return np.fft.irfft(spectrum, length)[:count]


def babble(voices: list[np.ndarray], count: int, generator: np.random.Generator) -> np.ndarray:
    """Several voices at the same power, each repeated from a random place on, (count,)."""
    total = np.zeros(count)
    for voice in voices:
        start = int(generator.integers(len(voice)))
        total += np.resize(np.roll(voice, -start), count) / max(_rms(voice), 1e-9)
    return total


def add_noise(speech: np.ndarray, noise: np.ndarray, *, snr_db: float) -> np.ndarray:
    """``speech`` plus ``noise``, scaled to a ratio of mean powers of ``snr_db`` decibels.

    >>> noisy = add_noise(np.ones(4), np.array([1.0, -1.0, 1.0, -1.0]), snr_db=20.0)
    >>> noisy.round(3).tolist()
    [1.1, 0.9, 1.1, 0.9]
    """
    power = max(_rms(noise), 1e-9)
    return speech + noise * (_rms(speech) / power * 10.0 ** (-snr_db / 20.0))


def reverberate(
    speech: np.ndarray,
    *,
    t60: float,
    wet: float,
    sampling_rate: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """``speech`` in a small room: a direct path and Gaussian noise that decays by 60 dB in ``t60``.

    Args:
        t60: seconds; 0 leaves the speech as it is.
        wet: energy of the reverberation relative to the direct path.
        sampling_rate: in Hz.
        generator: draws the impulse response.

    Returns:
        (count,), cut at the end of the speech.
    """
    length = int(t60 * sampling_rate)
    if length < 2 or wet <= 0.0:
        return speech
    from scipy.signal import fftconvolve

    decay = 10.0 ** (-3.0 * np.arange(length) / length)
    response = generator.standard_normal(length) * decay
    response *= np.sqrt(wet / np.sum(response**2))
    response[0] += 1.0
    return fftconvolve(speech, response)[: len(speech)]


def trim(speech: np.ndarray, *, below_db: float = 40.0) -> np.ndarray:
    """Without the ends ``below_db`` decibels under the peak; empty only if ``speech`` is."""
    level = np.abs(speech)
    loud = np.flatnonzero(level > level.max(initial=0.0) * 10.0 ** (-below_db / 20.0))
    return speech if len(loud) == 0 else speech[loud[0] : loud[-1] + 1]


def scale_to_peak(samples: np.ndarray, *, peak_db: float) -> np.ndarray:
    """``samples`` with their peak at ``peak_db`` decibels relative to full scale (1.0)."""
    return samples * (10.0 ** (peak_db / 20.0) / max(np.abs(samples).max(initial=0.0), 1e-9))


def _rms(samples: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(samples))))
