"""Sphinx's cepstra: known values, frames and bad input. Against Sphinx itself and a slow twin:
tests/oracles/test_sphinx.py."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data import sphinx as module
from privasr_k2.data.features import FeatureConfig, compute, extract, load_features
from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.data.sphinx import cepstra
from privasr_k2.errors import DataError
from tests.support import trees
from tests.support.conf import section

DEFAULTS = config.load(FeatureConfig, [section("features")])
SPHINX = dataclasses.replace(DEFAULTS, kind="sphinx")


def test_there_are_as_many_frames_as_of_other_kinds() -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, 1300).astype(np.float32)
    for count in (0, 1, 79, 80, 81, 409, 410, 411, 1200, 1250, 1300):
        made = extract(noise[:count], 16000, "sphinx")
        assert made.dtype == np.float32
        assert made.shape == (len(extract(noise[:count], 16000, "fbank")), 13)


def test_twice_as_loud_moves_the_first_cepstrum_only() -> None:
    noise = np.random.default_rng(1).normal(0, 0.05, 16000)
    moved = cepstra(2 * noise, 16000) - cepstra(noise, 16000)
    # log 4 in 39.5 of 40 filters; what the lowest filter's half lacks is the remainder in the other
    # cepstra.
    np.testing.assert_allclose(moved[:, 0], np.log(4) * 39.5 / 40, atol=1e-4)
    lacking = -np.log(4) / 80 * np.cos(np.pi / 80 * np.arange(1, 13))
    np.testing.assert_allclose(moved[:, 1:], np.tile(lacking, (100, 1)), atol=1e-4)


def test_frames_are_local_and_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(2).normal(0, 0.05, 16000)
    whole = cepstra(noise, 16000)
    later = noise.copy()
    later[160 * 50 + 410 :] = 0
    np.testing.assert_array_equal(cepstra(later, 16000)[:51], whole[:51])
    assert np.abs(cepstra(later, 16000)[51] - whole[51]).max() > 0
    monkeypatch.setattr(module, "_FRAMES_AT_ONCE", 9)
    np.testing.assert_allclose(cepstra(noise, 16000), whole, atol=1e-6)


def test_another_sampling_rate_is_refused() -> None:
    with pytest.raises(DataError, match="expected audio of 16000 Hz, found 8000 Hz"):
        extract(np.zeros(8000, dtype=np.float32), 8000, "sphinx")


def test_stored_finely_with_speeds(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    audio = trees.noise(folder / "audio" / "u.flac", 1.037)
    save_cuts(make_cuts([Utterance("u", "a b", "s", "train", audio)]), folder, "train")
    about = compute(folder, tmp_path / "feats", dataclasses.replace(SPHINX, speed_perturb=True))
    assert (about["kind"], about["dim"], about["frame_shift"]) == ("sphinx", 13, 0.01)
    cuts = {cut.id: cut for cut in load_cuts(tmp_path / "feats", "train")}
    assert {name: len(load_features(cut)) for name, cut in cuts.items()} == {
        "u": 104,
        "u_sp0.9": 115,
        "u_sp1.1": 94,
    }
    assert cuts["u"].features.type == "sphinx"
    # Their deviations are a tenth of filter energies', and so steps of 1/64 would be coarse.
    expected = cepstra(cuts["u"].load_audio()[0], 16000)
    assert np.abs(load_features(cuts["u"]) - expected).max() <= 2.0**-13 + 1e-5
