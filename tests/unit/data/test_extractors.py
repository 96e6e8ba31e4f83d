"""Our features through lhotse's own calls, in any working directory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lhotse import CutSet, LilcomChunkyWriter, Mfcc, MfccConfig, NumpyFilesWriter
from lhotse.features.base import FeatureExtractor, create_default_feature_extractor

from privasr_k2 import config
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data import extractors  # noqa: F401
from privasr_k2.data.features import DIMENSIONS, FeatureConfig, compute, extract, extractor_name
from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.errors import DataError
from tests.support import trees
from tests.support.conf import section

FBANK = config.load(FeatureConfig, [section("features")])
KINDS = sorted(DIMENSIONS)


def extractor(kind: str) -> FeatureExtractor:
    """What a user of lhotse alone has for a kind, or finds by the type of what is stored."""
    if kind == "mfcc":
        return Mfcc(MfccConfig(num_filters=40, num_ceps=40))
    return create_default_feature_extractor(extractor_name(kind))


def cuts_of(folder: Path, count: int = 2) -> CutSet:
    paths = [trees.noise(folder / f"u{n}.flac", 1.0 + n / 4) for n in range(count)]
    return make_cuts([Utterance(path.stem, "a b", "s", "train", path) for path in paths])


@pytest.mark.parametrize("kind", KINDS)
def test_lhotse_computes_and_stores_what_the_verb_does(tmp_path: Path, kind: str) -> None:
    cut = cuts_of(tmp_path, 1)[0]
    with NumpyFilesWriter(tmp_path / "exact") as writer:
        stored = cut.compute_and_store_features(extractor(kind), storage=writer)
    assert stored.features.type == extractor_name(kind)
    assert stored.num_features == extractor(kind).feature_dim(16000) == DIMENSIONS[kind]
    ours = extract(cut.load_audio()[0], 16000, kind)
    np.testing.assert_allclose(stored.load_features(), ours, rtol=0, atol=2e-5)
    assert np.array_equal(cut.compute_features(extractor(kind)), stored.load_features())
    again = FeatureExtractor.from_dict(extractor(kind).to_dict())
    assert type(again) is type(extractor(kind))


@pytest.fixture
def feats(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "manifests"
    save_cuts(cuts_of(folder / "audio"), folder, "train")
    compute(folder, tmp_path / "data" / "feats", FBANK)
    return tmp_path / "data" / "feats"


def test_the_verbs_folder_holds_what_lhotse_stores(feats: Path, tmp_path: Path) -> None:
    for cut in load_cuts(feats, "train"):
        with LilcomChunkyWriter(tmp_path / cut.id, tick_power=FBANK.tick_power) as writer:
            theirs = cut.drop_features().compute_and_store_features(extractor("fbank"), writer)
        assert np.array_equal(theirs.load_features(), cut.load_features())
        for name in ("type", "num_frames", "num_features", "frame_shift", "start", "duration"):
            assert getattr(theirs.features, name) == getattr(cut.features, name)


def test_stored_features_are_mixed_in_any_folder(
    feats: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(feats.parent)
    cuts = load_cuts(Path("feats"), "train")
    monkeypatch.chdir("/")
    for cut in cuts:
        values = cut.load_features()
        # As loud as the other: twice the energy.
        doubled = cut.mix(cut.with_id("other"), snr=0).load_features()
        np.testing.assert_allclose(doubled, values + np.log(2), atol=1e-4)
    # 10 dB below: a tenth of the energy, as if the signals had been mixed.
    first, second = cuts
    mixed = first.mix(second.truncate(duration=first.duration), snr=10)
    heard = extract(mixed.load_audio()[0].astype(np.float32), 16000)
    assert np.abs(mixed.load_features() - heard).mean() < 0.3
    padded = first.pad(duration=2.0, pad_feat_value=-23.0).load_features()
    assert padded.shape == (200, 80) and (padded[100:] == -23.0).all()


def test_what_cannot_be_mixed_or_computed_says_so(tmp_path: Path) -> None:
    cut = cuts_of(tmp_path, 1)[0]
    with NumpyFilesWriter(tmp_path / "exact") as writer:
        stored = cut.compute_and_store_features(extractor("mfcc"), storage=writer)
    with pytest.raises(ValueError, match="mix"):
        stored.mix(stored.with_id("other"), snr=0).load_features()
    with pytest.raises(DataError, match="type 'given'"):
        cut.compute_features(extractor("given"))
    with pytest.raises(DataError, match="one channel"):
        extractor("sphinx").extract(np.zeros((2, 16000)), 16000)
