"""Filter banks and cepstra against kaldi-native-fbank, Kaldi's own code in C++."""

from __future__ import annotations

from pathlib import Path

import kaldi_native_fbank as knf
import numpy as np
import pytest
import soundfile

from privasr_k2.data import kaldi

KINDS = {"fbank": kaldi.fbank, "mfcc": kaldi.mfcc}
#: Of rounding: differences of both from the same in float64 are as large.
TOLERANCE = {"fbank": 0.005, "mfcc": 0.01}
RNG = np.random.default_rng(0)


def native(samples: np.ndarray, rate: int, kind: str) -> np.ndarray:
    """The definition, with lhotse's and icefall's settings."""
    options = knf.FbankOptions() if kind == "fbank" else knf.MfccOptions()
    options.frame_opts.samp_freq, options.frame_opts.dither = rate, 0.0
    options.frame_opts.snip_edges = False
    options.mel_opts.low_freq, options.mel_opts.high_freq = 20.0, -400.0
    options.mel_opts.num_bins = size = {"fbank": 80, "mfcc": 40}[kind]
    if kind == "mfcc":
        options.num_ceps, options.use_energy = size, False
    computer = (knf.OnlineFbank if kind == "fbank" else knf.OnlineMfcc)(options)
    computer.accept_waveform(rate, samples.tolist())
    computer.input_finished()
    frames = [computer.get_frame(t) for t in range(computer.num_frames_ready)]
    return np.array(frames, dtype=np.float32).reshape(-1, size)


def differences(samples: np.ndarray, rate: int, kind: str) -> np.ndarray:
    """Of all values; ours have the same shape, and are float32."""
    found, expected = KINDS[kind](samples, rate), native(samples, rate, kind)
    assert found.dtype == np.float32 and found.shape == expected.shape
    return np.abs(found - expected)


@pytest.mark.shared_data
@pytest.mark.parametrize("kind", KINDS)
def test_real_speech(shared_data: Path, kind: str) -> None:
    files = sorted((shared_data / "LibriSpeech" / "test-other").glob("*/*/*.flac"))[::6]
    assert len(files) > 5
    for path in files:
        samples, rate = soundfile.read(path, dtype="float32")
        found = differences(samples, rate, kind)
        assert found.max() < TOLERANCE[kind] and found.mean() < 1e-4
        half = differences(np.ascontiguousarray(samples[::2]), rate // 2, kind)
        assert half.max() < TOLERANCE[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 44100, 48000])
def test_signals_from_nothing_to_many_frames(rate: int, kind: str) -> None:
    signal = RNG.normal(0, 0.1, rate * 5 + 7).astype(np.float32)
    shift = rate // 100
    frame_edges = [shift // 2 - 1, shift // 2, shift, 3 * shift // 2, 5 * shift // 2]
    for size in (0, 1, *frame_edges, *(n + 1 for n in frame_edges), rate + 3, len(signal)):
        assert differences(signal[:size], rate, kind).max(initial=0.0) < TOLERANCE[kind], size


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(16000),
        np.full(16000, 0.5),
        RNG.normal(0, 1e-5, 16000),
        np.eye(1, 16000, 8000)[0],
        np.sign(np.sin(np.arange(16000) * 0.05)),
    ],
    ids=["silence", "constant", "hardly any noise", "click", "square wave"],
)
def test_signals_that_are_no_speech(samples: np.ndarray, kind: str) -> None:
    assert differences(samples.astype(np.float32), 16000, kind).max() < TOLERANCE[kind]


def test_frames_do_not_depend_on_what_is_computed_with_them() -> None:
    signal = RNG.normal(0, 0.1, 16000 * 9).astype(np.float32)
    whole, beginning = kaldi.fbank(signal, 16000), kaldi.fbank(signal[: 16000 * 6], 16000)
    np.testing.assert_allclose(whole[:595], beginning[:595], rtol=0, atol=1e-5)


def test_no_number_in_the_signal_is_none_in_the_features() -> None:
    signal = RNG.normal(0, 0.1, 16000).astype(np.float32)
    signal[8000] = np.nan
    found = kaldi.fbank(signal, 16000)
    assert np.isnan(found[50]).all() and np.isfinite(found[:40]).all()
