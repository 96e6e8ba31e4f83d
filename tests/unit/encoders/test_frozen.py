"""Outputs of a frozen encoder as stored features."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2 import config
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data.features import FeatureConfig, compute, load_features
from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.encoders.frozen import FrozenEncoder
from privasr_k2.encoders.loading import load_encoder
from privasr_k2.errors import ConfigError, DataError
from tests.support import trees
from tests.support.conf import section
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    hugging_face_tensors,
    save_safetensors,
    tiny_whisper,
)

FEATURES = config.load(FeatureConfig, [section("features")], ["kind=encoder", "cuts_per_file=2"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_safetensors(tmp_path / "tiny", hugging_face_tensors(tiny_whisper()), WHISPER_CONFIG)
    return tmp_path / "tiny"


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    utterances = []
    for number in range(3):
        audio = trees.noise(tmp_path / f"audio/{number}.flac", 1.0 + 0.1 * number)
        utterances.append(Utterance(f"u{number}", "a b", "s", "train", audio))
    save_cuts(make_cuts(utterances), tmp_path / "data/manifests", "train")
    return tmp_path / "data/manifests"


def test_stored_features_are_the_encoders_outputs(folder: Path, manifests: Path) -> None:
    pytest.importorskip("lhotse")
    layers = dataclasses.replace(FEATURES.encoder, layers=[1, 2])
    frozen = FrozenEncoder(folder, layers)
    settings = dataclasses.replace(FEATURES, encoder=layers, speed_perturb=True)
    about = compute(manifests, manifests.parent / "feats", settings, 1, frozen)
    assert (about["dim"], about["frame_shift"], about["kind"]) == (128, 0.02, "encoder")
    assert about["public_encoder"]["training_data"] and len(about["public_encoder"]["sha256"]) == 64
    encoder = load_encoder(folder)
    manifests.parent.rename(manifests.parent.parent / "moved")
    cuts = load_cuts(manifests.parent.parent / "moved/feats", "train")
    assert len(cuts) == 9 and {cut.features.type for cut in cuts} == {"public-encoder"}
    for cut in cuts:
        audio = torch.from_numpy(cut.load_audio())
        with torch.no_grad():
            inputs = encoder.features(audio, torch.tensor([audio.size(1)]))
            outputs, _ = encoder(*inputs, layers=[1, 2])
        expected = torch.cat([*outputs[:, 0]], dim=1).numpy()
        stored = load_features(cut)
        assert stored.dtype == np.float32 and stored.shape[1] == expected.shape[1]
        assert len(stored) == cut.num_frames and len(expected) - len(stored) in (0, 1)
        np.testing.assert_allclose(stored, expected[: len(stored)], atol=2e-3, rtol=1e-3)


def test_the_same_for_any_number_of_jobs(folder: Path, manifests: Path) -> None:
    pytest.importorskip("lhotse")
    frozen = FrozenEncoder(folder, FEATURES.encoder)
    for jobs in (1, 2):
        compute(manifests, manifests.parent / f"feats_{jobs}", FEATURES, jobs, frozen)
    one, two = (load_cuts(manifests.parent / f"feats_{jobs}", "train") for jobs in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert (load_features(first) == load_features(second)).all()


def test_other_rates_and_layers_are_refused(folder: Path) -> None:
    frozen = FrozenEncoder(folder, FEATURES.encoder)
    assert frozen.extract(np.zeros(16000, dtype=np.float32), 16000).shape == (50, 64)
    with pytest.raises(DataError, match="8000 Hz"):
        frozen.extract(np.zeros(8000, dtype=np.float32), 8000)
    wrong = FrozenEncoder(folder, dataclasses.replace(FEATURES.encoder, layers=[3]))
    with pytest.raises(ConfigError, match="layers"):
        wrong.extract(np.zeros(16000, dtype=np.float32), 16000)
