"""Sphinx's cepstra against CMU Sphinx itself, as its decoder logs them, and against a slow twin."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.data.sphinx import cepstra

#: -wlen 0.025625, -alpha 0.97, -unit_area yes and -round_filters yes are Sphinx's defaults.
FRONT_END = {
    **{"lowerf": "130", "upperf": "6800", "nfilt": "40", "transform": "legacy", "lifter": "0"},
    **{"remove_noise": "no", "dither": "no", "feat": "1s_c_d_dd", "svspec": "0-12/13-25/26-38"},
    **{"cmn": "batch", "agc": "none", "model": "ptm"},
}


def speech(count: int) -> np.ndarray:
    """(S,) int16: a gliding tone with harmonics, in noise, with silence in its midst."""
    seconds = np.arange(count) / 16000
    phase = 2 * np.pi * (120 + 40 * seconds) * seconds
    voiced = sum(np.sin(k * phase) / k for k in range(1, 30))
    noise = np.random.default_rng(3).normal(0, 0.02, count)
    signal = 0.2 * voiced * (1 + np.sin(2 * np.pi * 3 * seconds)) + noise
    signal[count // 2 : count * 3 // 4] = 0
    return np.round(32767 * np.clip(signal, -1, 1)).astype(np.int16)


def sphinx_itself(samples: np.ndarray, folder: Path) -> np.ndarray:
    """(T, 13), from the cepstra that the decoder of the package pocketsphinx writes to its log."""
    pocketsphinx = pytest.importorskip("pocketsphinx")
    model, logged = folder / "model", folder / "cepstra"
    model.mkdir()
    logged.mkdir()
    for path in Path(pocketsphinx.get_model_path("en-us/en-us")).iterdir():
        (model / path.name).symlink_to(path)
    # The model's own front end would win over flags of the decoder.
    (model / "feat.params").unlink()
    flags = "".join(f"-{name} {value}\n" for name, value in FRONT_END.items())
    (model / "feat.params").write_text(flags)
    decoder = pocketsphinx.Decoder(
        hmm=str(model), lm=None, keyphrase="hello world", mfclogdir=str(logged), loglevel="FATAL"
    )
    decoder.start_utt()
    decoder.process_raw(samples.tobytes(), True, True)
    decoder.end_utt()
    (path,) = logged.iterdir()
    values = np.frombuffer(path.read_bytes()[4:], dtype=">f4")
    return values.reshape(-1, 13)


def slow_cepstra(samples: list[int]) -> list[list[float]]:
    """The definition, sample by sample, with the sum of the Fourier transform."""

    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    def on_grid(number: int) -> int:
        """Edge number 0 to 41, as a point of the spectrum."""
        step = (mel(6800) - mel(130)) / 41
        return int(700 * (10 ** ((mel(130) + number * step) / 2595) - 1) / 31.25 + 0.5)

    rows = []
    for start in range(0, len(samples) - 79, 160):
        frame = []
        for n in range(start, min(start + 410, len(samples))):
            before = samples[n - 1] if n > 0 else 0
            hamming = 0.54 - 0.46 * math.cos(2 * math.pi * (n - start) / 409)
            frame.append((samples[n] - 0.97 * before) * hamming)
        power = []
        for k in range(257):
            real = sum(x * math.cos(2 * math.pi * k * n / 512) for n, x in enumerate(frame))
            imaginary = sum(x * math.sin(2 * math.pi * k * n / 512) for n, x in enumerate(frame))
            power.append(real * real + imaginary * imaginary)
        logs = []
        for j in range(40):
            low, centre, high = on_grid(j), on_grid(j + 1), on_grid(j + 2)
            energy = 0.0
            for k in range(low, high + 1):
                slope = (k - low) / (centre - low) if k <= centre else (high - k) / (high - centre)
                energy += power[k] * slope * 2 / ((high - low) * 31.25)
            logs.append(math.log(energy + 1e-4))
        row = []
        for i in range(13):
            terms = [logs[j] * math.cos(math.pi * i * (j + 0.5) / 40) for j in range(40)]
            row.append((sum(terms) - terms[0] / 2) / 40)
        rows.append(row)
    return rows


@pytest.mark.parametrize("count", [16000, 15990, 4097])
def test_as_sphinx_itself(count: int, tmp_path: Path) -> None:
    samples = speech(count)
    theirs = sphinx_itself(samples, tmp_path)
    ours = cepstra(samples.astype(np.float32) / 32768, 16000)
    assert 1 <= len(ours) - len(theirs) <= 2, "frames of the end that Sphinx leaves out"
    np.testing.assert_allclose(ours[: len(theirs)], theirs, atol=2e-5)


def test_as_the_slow_twin_to_the_last_frame() -> None:
    samples = speech(1290)
    ours = cepstra(samples.astype(np.float32) / 32768, 16000)
    np.testing.assert_allclose(ours, slow_cepstra(samples.tolist()), atol=1e-5)


@pytest.mark.shared_data
def test_an4_looks_as_librispeech_through_this_front_end(shared_data: Path) -> None:
    """Other speech from other microphones, but the scale, the transform and the filters show."""
    kaldi_native_io = pytest.importorskip("kaldi_native_io")
    soundfile = pytest.importorskip("soundfile")
    lines = (shared_data / "an4" / "train" / "feats.scp").read_text(encoding="utf-8").splitlines()
    places = [line.split()[1] for line in lines[::6]]
    read, folder = kaldi_native_io.FloatMatrix.read, shared_data / "an4/train"
    an4 = [np.asarray(read(f"{folder}/{place}")) for place in places]
    paths = sorted((shared_data / "LibriSpeech" / "train-clean-100").glob("*/*/*.flac"))[::12]
    librispeech = [cepstra(soundfile.read(path)[0], 16000) for path in paths]

    def movement(of: list[np.ndarray]) -> np.ndarray:
        """(13,) deviations of the differences between frames."""
        return np.concatenate([np.diff(x, axis=0) for x in of]).std(axis=0)

    ratio = movement(an4) / movement(librispeech)
    assert np.all((ratio > 0.85) & (ratio < 1.2)), ratio
    apart = np.concatenate(an4).mean(axis=0) - np.concatenate(librispeech).mean(axis=0)
    assert np.sqrt(np.mean(apart[1:] ** 2)) < 0.15, apart
