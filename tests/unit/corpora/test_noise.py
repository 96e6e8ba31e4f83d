from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.corpora.noise import (
    add_noise,
    babble,
    pink_noise,
    reverberate,
    scale_to_peak,
    trim,
    white_noise,
)
from privasr_k2.randomness import stream


def octave_powers(samples: np.ndarray) -> np.ndarray:
    power = np.abs(np.fft.rfft(samples)) ** 2
    return np.array([power[2**k : 2 ** (k + 1)].sum() for k in range(6, 14)])


def test_pink_noise_has_equal_power_in_every_octave_and_white_noise_twice_as_much_in_the_next():
    for make, growth in ((pink_noise, 1.0), (white_noise, 2.0)):
        powers = octave_powers(make(40_000, stream(1, "noise")))
        assert (powers[1:] / powers[:-1]).mean() == pytest.approx(growth, rel=0.1)


def test_add_noise_has_the_ratio():
    generator = stream(1, "x")
    speech, noise = generator.standard_normal(5000) * 3.0, generator.standard_normal(5000)
    added = add_noise(speech, noise, snr_db=7.0) - speech
    assert 10 * np.log10(np.mean(speech**2) / np.mean(added**2)) == pytest.approx(7.0)


def test_babble_gives_every_voice_the_same_power():
    left, right = np.zeros(100), np.zeros(100)
    left[::2], right[1::2] = 5.0, 0.1
    mixed = babble([left, right], 1000, stream(1, "b"))
    assert len(mixed) == 1000
    assert mixed.max() == pytest.approx(np.sqrt(2) * (2 if mixed.min() == 0 else 1))


def test_reverberation_rings_on_with_the_energy_asked_for():
    impulse = np.zeros(8000)
    impulse[0] = 1.0
    rung = reverberate(impulse, t60=0.25, wet=0.5, sampling_rate=16000, generator=stream(1, "r"))
    assert np.sum((rung - impulse) ** 2) == pytest.approx(0.5, rel=1e-6)
    assert np.allclose(rung[4000:], 0.0)  # 0.25 s
    early, late = np.sum(rung[1:400] ** 2), np.sum(rung[2000:2400] ** 2)
    # 60 dB in 4000 samples: 30 dB in 2000
    assert 10 * np.log10(early / late) == pytest.approx(30.0, abs=1.5)


def test_no_reverberation_is_no_change():
    speech = stream(1, "s").standard_normal(100)
    assert (
        reverberate(speech, t60=0.0, wet=0.5, sampling_rate=16000, generator=stream(1, "r"))
        is speech
    )


def test_trim_and_scale():
    speech = np.array([0.0, 1e-6, 0.5, 0.0, -1.0, 0.001, 0.0])
    assert trim(speech).tolist() == [0.5, 0.0, -1.0]
    assert trim(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert np.abs(scale_to_peak(speech, peak_db=-20.0)).max() == pytest.approx(0.1)
