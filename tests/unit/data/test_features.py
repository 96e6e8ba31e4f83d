"""What is refused of a signal, and the folder of features that is written."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data.features import FeatureConfig, compute, extract, load_features
from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.errors import ConfigError, DataError
from tests.support import trees
from tests.support.conf import section

FBANK = config.load(FeatureConfig, [section("features")])


@pytest.fixture
def samples() -> np.ndarray:
    seconds = np.arange(24050) / 16000
    tone = 0.3 * np.sin(2 * np.pi * (300 + 800 * seconds) * seconds)
    return (tone + np.random.default_rng(0).normal(0, 0.01, len(seconds))).astype(np.float32)


def test_another_rate_and_no_samples(samples: np.ndarray) -> None:
    assert extract(samples[:8000], 8000).shape == (100, 80)
    assert extract(samples[:0], 16000).shape == (0, 80)
    with pytest.raises(DataError, match="one channel"):
        extract(samples[None], 16000)
    with pytest.raises(ConfigError, match="plp"):
        extract(samples, 16000, "plp")


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "manifests"
    for role, count in (("train", 5), ("test", 2)):
        utterances = []
        for i in range(count):
            audio = trees.noise(folder / "audio" / f"{role}{i}.flac", 1.0 + 0.11 * i)
            utterances.append(Utterance(f"{role}{i}", "a b", f"{role}_s", role, audio))
        save_cuts(make_cuts(utterances), folder, role)
    return folder


def test_stored_features_are_the_extracted_ones(manifests: Path) -> None:
    out = manifests.parent / "feats_fbank"
    about = compute(manifests, out, FBANK)
    assert (about["dim"], about["frame_shift"], about["sampling_rate"], about["kind"]) == (
        80,
        0.01,
        16000,
        "fbank",
    )
    manifests.parent.rename(manifests.parent.parent / "moved")
    for role in ("train", "test"):
        for cut in load_cuts(manifests.parent.parent / "moved" / "feats_fbank", role):
            expected = extract(cut.load_audio()[0], 16000)
            found = load_features(cut)
            assert found.dtype == np.float32
            assert found.shape == expected.shape
            assert np.abs(found - expected).max() <= 2.0**-7 + 1e-4


def test_speed_perturbation_of_train_only(manifests: Path) -> None:
    out = manifests.parent / "feats_fbank"
    compute(manifests, out, dataclasses.replace(FBANK, speed_perturb=True, cuts_per_file=2))
    train = {cut.id: cut for cut in load_cuts(out, "train")}
    assert len(train) == 15
    assert len(load_cuts(out, "test")) == 2
    slow, fast = train["train0_sp0.9"], train["train0_sp1.1"]
    assert slow.custom["original_id"] == fast.custom["original_id"] == "train0"
    assert (len(load_features(slow)), len(load_features(fast))) == (111, 91)
    assert slow.supervisions[0].text == "a b"
    assert slow.supervisions[0].speaker == "train_s"


def test_speed_moves_the_frequency_of_a_tone(tmp_path: Path) -> None:
    import soundfile

    folder = tmp_path / "data" / "manifests"
    (folder / "audio").mkdir(parents=True)
    path = folder / "audio" / "tone.wav"
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * 2000 * np.arange(16000) / 16000), 16000)
    save_cuts(make_cuts([Utterance("tone", "a", "s", "train", path)]), folder, "train")
    compute(folder, tmp_path / "data" / "feats", dataclasses.replace(FBANK, speed_perturb=True))
    for cut in load_cuts(tmp_path / "data" / "feats", "train"):
        speed = 1.0 if cut.id == "tone" else float(cut.id[-3:])
        samples = 0.3 * np.sin(2 * np.pi * 2000 * speed * np.arange(16000) / 16000)
        peak = extract(samples.astype(np.float32), 16000)[50].argmax()
        assert load_features(cut)[50].argmax() == peak


@pytest.mark.slow
def test_the_same_bytes_for_any_number_of_jobs(manifests: Path) -> None:
    options = dataclasses.replace(FBANK, cuts_per_file=2)
    compute(manifests, manifests.parent / "one", options, num_jobs=1)
    compute(manifests, manifests.parent / "two", options, num_jobs=2)
    folders = [manifests.parent / name for name in ("one", "two")]
    one, two = ({path.name: path.read_bytes() for path in f.iterdir()} for f in folders)
    assert one == two


@pytest.mark.parametrize("kind", ["given", "auto"])
def test_given_features_stay_where_they_are(
    manifests: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fbank, again = manifests.parent / "feats_fbank", manifests.parent / "feats_given"
    compute(manifests, fbank, FBANK)
    about = compute(fbank, again, dataclasses.replace(FBANK, kind=kind))
    assert (about["dim"], about["kind"], about["frame_shift"]) == (80, "given", 0.01)
    assert {path.name for path in again.iterdir()} == {
        "features.yaml", "cuts_train.jsonl.gz", "cuts_test.jsonl.gz",
    }  # fmt: skip
    monkeypatch.chdir("/")
    for before, after in zip(load_cuts(fbank, "test"), load_cuts(again, "test"), strict=True):
        assert before.features == after.features
        np.testing.assert_array_equal(load_features(before), load_features(after))
    with pytest.raises(DataError, match="kind=fbank"):
        compute(manifests, again, dataclasses.replace(FBANK, kind="given"))
    with pytest.raises(DataError, match="a cut with features"):
        load_features(load_cuts(manifests, "test")[0])


def test_given_features_of_other_frames(manifests: Path) -> None:
    from lhotse import CutSet

    fbank, given = manifests.parent / "feats_fbank", manifests.parent / "given"
    compute(manifests, fbank, FBANK)
    for role in ("train", "test"):
        cuts = load_cuts(fbank, role).drop_recordings()
        longer = [dataclasses.replace(cut, duration=cut.duration + 0.05) for cut in cuts]
        save_cuts(CutSet.from_cuts(longer), given, role)
    with pytest.raises(DataError, match="test0: expected 105 frames, found 100 stored"):
        compute(given, manifests.parent / "again", dataclasses.replace(FBANK, kind="given"))


@pytest.mark.parametrize("num_jobs", [1, 2])
def test_given_features_that_cannot_be_read(manifests: Path, num_jobs: int) -> None:
    """Also where the error comes out of another process."""
    from lhotse import CutSet

    fbank, given = manifests.parent / "feats_fbank", manifests.parent / "given"
    compute(manifests, fbank, FBANK)
    np.save(manifests.parent / "x.npy", np.array([print], object), allow_pickle=True)
    for role in ("train", "test"):
        cuts = load_cuts(fbank, role).drop_recordings()
        where = {"storage_type": "numpy_files", "storage_path": str(manifests.parent)}
        bad = [
            dataclasses.replace(
                cut, features=dataclasses.replace(cut.features, storage_key="x.npy", **where)
            )
            for cut in cuts
        ]
        save_cuts(CutSet.from_cuts(bad), given, role)
    kind = dataclasses.replace(FBANK, kind="given")
    with pytest.raises(DataError, match=r"x\.npy \(test0\): .* found Object arrays cannot be"):
        compute(given, manifests.parent / "again", kind, num_jobs)


def test_copies_at_other_speeds_are_made_of_audio(manifests: Path) -> None:
    fbank, again = manifests.parent / "feats_fbank", manifests.parent / "feats_again"
    compute(manifests, fbank, FBANK)
    both = dataclasses.replace(FBANK, kind="auto", speed_perturb=True)
    assert compute(fbank, again, both)["kind"] == "fbank"
    assert len(load_cuts(again, "train")) == 15


def test_text_only_cuts_have_a_way_out(tmp_path: Path) -> None:
    save_cuts(make_cuts([Utterance("u", "a b", "s", "train")]), tmp_path / "manifests", "train")
    with pytest.raises(DataError, match="speech=synthetic"):
        compute(tmp_path / "manifests", tmp_path / "feats", FBANK)
    assert [path.name for path in tmp_path.iterdir()] == ["manifests"]


def test_audio_damaged_in_its_middle_is_named(manifests: Path) -> None:
    path = manifests / "audio" / "train1.flac"
    content = bytearray(path.read_bytes())
    content[9000:24000] = bytes(15000)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"train1\.flac: expected the audio of train1"):
        compute(manifests, manifests.parent / "feats", FBANK)


def test_no_manifests(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder of manifests"):
        compute(tmp_path, tmp_path / "feats", FBANK)
    with pytest.raises(DataError, match="the role 'dev'"):
        load_cuts(tmp_path, "dev")


@pytest.mark.parametrize(
    ("key", "value"),
    [("kind", "plp"), ("tick_power", "0"), ("cuts_per_file", "0"), ("speed_perturb", "maybe")],
)
def test_configuration_out_of_range(key: str, value: str) -> None:
    files = [section("features")]
    with pytest.raises(ConfigError, match=key):
        config.load(FeatureConfig, files, [f"{key}={value}"])
