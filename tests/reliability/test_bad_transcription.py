"""``privasr transcribe`` with a damaged public encoder, and with what is no audio."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from privasr_k2.__main__ import main
from tests.support import trees
from tests.support.bad_encoders import (
    FOLDERS,
    code,
    no_folder,
    no_model,
    one_error,
    other_weights,
    privasr,
    sound_encoder,
    wider,
)

pytestmark = [pytest.mark.reliability, pytest.mark.k2]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A sound encoder with its card, to be damaged."""
    return sound_encoder(tmp_path / "tiny")


@pytest.fixture(scope="module")
def recognizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``exp/`` and the encoder ``tiny/`` that it names."""
    from tests.support.encoder_recognizer import write_recognizer

    root = tmp_path_factory.mktemp("recognizer")
    write_recognizer(root / "exp", sound_encoder(root / "tiny"), 64)
    return root


@pytest.mark.parametrize("damage", [no_folder, no_model, code, wider, other_weights])
def test_transcribing_with_a_damaged_encoder(
    damage: Callable[[Path], None],
    recognizer: Path,
    encoder: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    exp = Path(shutil.copytree(recognizer / "exp", tmp_path / "exp"))
    spec = (exp / "recognizer.yaml").read_text()
    (exp / "recognizer.yaml").write_text(spec.replace(str(recognizer / "tiny"), str(encoder)))
    damage(encoder)
    audio = trees.noise(tmp_path / "a.flac")
    assert privasr("transcribe", "--in-exp", exp, audio, audio.parent / "b.flac") == 2
    shown = capfd.readouterr()
    place, *parts = FOLDERS[damage]
    one_error(shown.err, f"{encoder}{place}", *parts)
    assert shown.out == ""


def stereo(path: Path) -> None:
    import numpy as np
    import soundfile

    soundfile.write(path, np.zeros((16000, 2)), 16000)


FILE_OF = {
    "empty": (lambda p: p.write_bytes(b""), "an audio file", "an empty file", "give a WAV"),
    "rubbish": (lambda p: p.write_bytes(b"x" * 99), "an audio file", "no readable", "give a WAV"),
    "missing": (lambda p: None, "an audio file", "no such file", "give a WAV"),
    "stereo": (stereo, "one channel", "2", "choose one"),
}


@pytest.mark.parametrize("case", FILE_OF)
def test_transcribing_what_is_no_audio(
    case: str, recognizer: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make, *parts = FILE_OF[case]
    make(tmp_path / "a.wav")
    assert privasr("transcribe", "--in-exp", recognizer / "exp", tmp_path / "a.wav") == 2
    shown = capfd.readouterr()
    one_error(shown.err, tmp_path / "a.wav", *parts)
    assert shown.out == ""


def test_transcribing_audio_at_8_khz(
    recognizer: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is resampled: only :func:`compute_features` refuses it."""
    audio = trees.noise(tmp_path / "a.wav", 1.0, 8000, "WAV")
    main(["transcribe", "--in-exp", str(recognizer / "exp"), str(audio)], standalone_mode=False)
    assert capfd.readouterr().out.startswith(f"{audio}\t")
