"""Copies of train with noise and in rooms, against sums and convolutions of the samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile
from lhotse import CutSet, Recording, RecordingSet, SupervisionSegment
from scipy.signal import fftconvolve

from privasr_k2 import config
from privasr_k2.data.audio import load_samples
from privasr_k2.data.features import FeatureConfig, compute, load_features
from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.data.perturbations import Noise, Perturbation, perturbations
from privasr_k2.errors import ConfigError, DataError
from tests.support.conf import section

FBANK = config.load(FeatureConfig, [section("features")])
RATE = 16000


def write(path: Path, samples: np.ndarray, rate: int = RATE) -> Recording:
    soundfile.write(path, samples.astype(np.float32), rate, subtype="FLOAT")
    return Recording.from_file(path)


def ways(
    *,
    seed: int = 1,
    snr: tuple[float, float] = (10.0, 20.0),
    noise: Path | None = None,
    rirs: Path | None = None,
) -> tuple[Perturbation, ...]:
    return perturbations(RATE, seed=seed, snr=snr, noise=noise, rirs=rirs)


def manifest(folder: Path, name: str, recordings: Sequence[Recording]) -> Path:
    path = folder / f"{name}_recordings_all.jsonl.gz"
    RecordingSet.from_recordings(recordings).to_file(path)
    return path


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """Two utterances of train, one of dev; noise at another rate, shorter than speech."""
    drawn = np.random.default_rng(1)
    folder, feats = tmp_path / "manifests", tmp_path / "wav"
    folder.mkdir()
    feats.mkdir()
    for role, names in {"train": ["a", "b"], "dev": ["c"]}.items():
        said = []
        for name in names:
            path = feats / f"{name}.wav"
            soundfile.write(path, (0.1 * drawn.normal(size=2 * RATE)).astype(np.float32), RATE)
            cut = Recording.from_file(path).to_cut().with_id(name)
            text = SupervisionSegment(name, name, 0, 2, speaker=f"speaker-{name}", text="A WORD")
            cut.supervisions = [text]
            said.append(cut)
        save_cuts(said, folder, role)
    noise = [write(feats / f"noise{n}.wav", drawn.normal(size=4000), 8000) for n in range(3)]
    manifest(tmp_path, "noise", noise)
    response = np.zeros(800)
    response[[0, 300, 700]] = 1.0, 0.5, -0.2
    manifest(tmp_path, "rirs", [write(feats / "rir.wav", response)])
    return folder


def test_noise_has_the_ratio_that_was_drawn_and_lasts_to_the_end(manifests: Path) -> None:
    cut = next(iter(load_cuts(manifests, "train")))
    [way] = ways(noise=manifests.parent / "noise_recordings_all.jsonl.gz", snr=(12.0, 12.0))
    clean, noisy = load_samples(cut), load_samples(way(cut))
    noise = noisy - clean
    assert len(noisy) == len(clean)
    energies = [np.mean(part**2) for part in np.split(noise[: RATE * 7 // 4], 7)]
    assert min(energies) > 0.2 * max(energies)
    assert 10 * np.log10(np.mean(clean**2) / np.mean(noise**2)) == pytest.approx(12, abs=0.6)
    # The seed and the id decide, nothing else.
    np.testing.assert_array_equal(load_samples(way(cut)), noisy)
    assert isinstance(way, Noise)
    other = dataclasses.replace(way, seed=2)
    assert np.abs(load_samples(other(cut)) - noisy).max() > 0.01


def test_a_room_is_a_convolution_of_the_energy_that_speech_had(manifests: Path) -> None:
    cut = next(iter(load_cuts(manifests, "train")))
    [way] = ways(rirs=manifests.parent / "rirs_recordings_all.jsonl.gz")
    clean, heard = load_samples(cut), load_samples(way(cut))
    response, _ = soundfile.read(manifests.parent / "wav/rir.wav")
    expected = fftconvolve(clean, response)[: len(clean)]
    found = np.dot(expected, heard) / np.sqrt(np.dot(expected, expected) * np.dot(heard, heard))
    assert found > 0.999
    assert np.mean(heard**2) == pytest.approx(np.mean(clean**2), rel=0.05)


def test_train_has_a_copy_of_each_kind_that_belongs_to_its_original(
    manifests: Path, tmp_path: Path
) -> None:
    rich = dataclasses.replace(FBANK, speed_perturb=True, cuts_per_file=1)
    files = {
        name: manifests.parent / f"{name}_recordings_all.jsonl.gz" for name in ("noise", "rirs")
    }
    for jobs in (1, 2):
        compute(manifests, tmp_path / str(jobs), rich, jobs, **files)
    train = {cut.id: cut for cut in load_cuts(tmp_path / "1", "train")}
    ends = ["", "_sp0.9", "_sp1.1", "_noise", "_rvb"]
    assert sorted(train) == sorted(f"{name}{end}" for name in "ab" for end in ends)
    assert [cut.id for cut in load_cuts(tmp_path / "1", "dev")] == ["c"]
    for name, cut in train.items():
        original, _, end = name.partition("_")
        assert (cut.custom or {}).get("original_id") == (original if end else None)
        assert cut.supervisions[0].speaker == f"speaker-{original}"
        assert cut.supervisions[0].text == "A WORD"
        assert len(load_features(cut)) == cut.num_frames
    assert not train["a_noise"].has_recording  # its audio would be the clean one
    for cut in load_cuts(tmp_path / "2", "train"):
        np.testing.assert_array_equal(load_features(cut), load_features(train[cut.id]))


def test_the_copy_is_worse_than_the_original_where_the_noise_is_loud(manifests: Path) -> None:
    cut = next(iter(load_cuts(manifests, "train")))
    noise = manifests.parent / "noise_recordings_all.jsonl.gz"
    distances = []
    for snr in (30.0, 0.0):
        [way] = ways(noise=noise, snr=(snr, snr))
        distances.append(float(np.mean((load_samples(way(cut)) - load_samples(cut)) ** 2)))
    assert distances[1] > 100 * distances[0]


def test_what_is_no_manifest_of_noise_is_refused(manifests: Path, tmp_path: Path) -> None:
    cuts = manifests / "cuts_dev.jsonl.gz"
    with pytest.raises(DataError, match="recordings of impulse responses"):
        ways(rirs=cuts)
    assert ways(noise=cuts)  # cuts are noise, too
    bad = tmp_path / "noise.jsonl.gz"
    for content in (b"", b"\x1f\x8b\x08\x00", b"{}\n"):
        bad.write_bytes(content)
        with pytest.raises(DataError, match="manifest"):
            ways(noise=bad)
    with pytest.raises(DataError, match="manifest"):
        ways(noise=tmp_path / "none.jsonl.gz")
    empty = tmp_path / "empty_recordings.jsonl.gz"
    RecordingSet.from_recordings([]).to_file(empty)
    with pytest.raises(DataError):
        ways(noise=empty)
    given = dataclasses.replace(FBANK, kind="given")
    noise = manifests.parent / "noise_recordings_all.jsonl.gz"
    with pytest.raises(ConfigError, match="noise"):
        compute(manifests, tmp_path / "feats", given, noise=noise)


def test_noise_that_cannot_be_read_is_named(manifests: Path, tmp_path: Path) -> None:
    (tmp_path / "wav/noise1.wav").write_bytes(b"RIFF")
    (tmp_path / "wav/noise0.wav").write_bytes(b"RIFF")
    (tmp_path / "wav/noise2.wav").write_bytes(b"RIFF")
    noise = tmp_path / "noise_recordings_all.jsonl.gz"
    with pytest.raises(DataError, match=r"noise\d\.wav"):
        compute(manifests, tmp_path / "feats", FBANK, noise=noise)
    assert not (tmp_path / "feats").exists()


def test_noise_of_several_channels_is_left_out(manifests: Path, tmp_path: Path) -> None:
    stereo = write(tmp_path / "wav/stereo.wav", np.ones((RATE, 2)))
    mono = Recording.from_file(tmp_path / "wav/noise0.wav")
    path = tmp_path / "both.jsonl.gz"
    CutSet.from_manifests(recordings=RecordingSet.from_recordings([stereo, mono])).to_file(path)
    [way] = ways(noise=path)
    assert isinstance(way, Noise)
    assert {cut.recording_id for cut in way.noise} == {"noise0"}
