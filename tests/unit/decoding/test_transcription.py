"""Files and folders of audio: names, what fails, and a recognizer upon a public encoder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile

from privasr_k2.decoding.recognizer import FILE, Recognizer, read_audio, resample
from privasr_k2.decoding.transcription import AudioFile, Transcript, find_audio, transcribe_files
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_jsonl
from tests.support import trees
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    hugging_face_tensors,
    save_safetensors,
    tiny_whisper,
)
from tests.support.verbs import run

if TYPE_CHECKING:
    from privasr_k2.am.ctc import CtcModel

CHUNKS = {"chunk_seconds": 2.0, "chunk_overlap": 0.5}


@pytest.fixture
def audio(tmp_path: Path) -> Path:
    """A folder with audio of three formats, two depths and two rates, and other files."""
    folder = tmp_path / "audio"
    trees.noise(folder / "b.wav", 1.0, file_format="WAV")
    trees.noise(folder / "a/long one.FLAC", 7.3)
    trees.noise(folder / "a/b/old.sph", 0.8, file_format="NIST")
    trees.noise(folder / "a/telephone.wav", 1.5, rate=8000, file_format="WAV")
    trees.lines(folder / "a/notes.txt", "no audio")
    (folder / "c.wav").mkdir()
    return folder


NAMES = ["a/b/old.sph", "a/long one.FLAC", "a/telephone.wav", "b.wav"]


def test_names_are_relative_to_the_folder(audio: Path) -> None:
    found = find_audio([audio, audio / "a/notes.txt"])
    assert found[:-1] == [AudioFile(name, audio / name) for name in NAMES]
    assert found[-1].name == str(audio / "a/notes.txt")
    with pytest.raises(ConfigError, match=r"old\.sph: expected one file of this name"):
        find_audio([audio / "a", audio, audio / "a"])
    with pytest.raises(DataError, match="found none"):
        find_audio([audio / "c.wav"])


@pytest.mark.parametrize("name", ["a.ogg", "a.OPUS", "a.sph"])
def test_what_a_folder_is_searched_for(tmp_path: Path, name: str) -> None:
    trees.lines(tmp_path / name, "")
    trees.lines(tmp_path / "a.txt", "")
    assert find_audio([tmp_path]) == [AudioFile(name, tmp_path / name)]


class Counts:
    """Says how many samples there are, in place of a recognizer."""

    def transcribe(self, samples: np.ndarray, sampling_rate: int) -> str | None:
        if sampling_rate == 8000:
            raise DataError("encoder tiny", "audio", "noise", "leave it out")
        return None if len(samples) == 16000 else str(len(samples))


def test_what_fails_is_named_and_the_others_go_on(audio: Path) -> None:
    (audio / "empty.wav").write_bytes(b"")
    (audio / "rubbish.flac").write_bytes(b"rubbish" * 100)
    soundfile.write(audio / "stereo.wav", np.zeros((800, 2)), 16000)
    whole = (audio / "b.wav").read_bytes()
    (audio / "truncated.wav").write_bytes(whole[: len(whole) // 2])
    trees.noise(audio / "tab\there.wav", 0.1, file_format="WAV")
    os.rename(audio / "tab\there.wav", os.fsencode(audio) + b"/latin\xe4.wav")
    trees.noise(audio / "tab\there.wav", 0.1, file_format="WAV")
    results = list(transcribe_files(Counts(), find_audio([audio])))
    read = [result for result in results if isinstance(result, Transcript)]
    assert read == [
        Transcript("a/b/old.sph", 0.8, "12800"),
        Transcript("a/long one.FLAC", 7.3, "116800"),
        Transcript("b.wav", 1.0, None),
    ]
    errors = {str(e.place): e for e in results if isinstance(e, DataError)}
    found = {
        f"{audio}/a/telephone.wav, encoder tiny": "noise",
        f"{audio}/empty.wav": "an empty file",
        f"{audio}/rubbish.flac": "no readable audio",
        f"{audio}/stereo.wav": "2",
        f"{audio}/truncated.wav": "a truncated file",
        f"{audio}/tab\there.wav": "another",
        f"{audio}/latin\udce4.wav": "another",
    }
    assert {place: error.found[: len(found[place])] for place, error in errors.items()} == found
    [missing] = transcribe_files(Counts(), [AudioFile("x", audio / "x")])
    assert isinstance(missing, DataError) and missing.found == "no such file"


@pytest.fixture
def exp(tmp_path: Path) -> tuple[Path, CtcModel]:
    """A recognizer upon a tiny Whisper that hears 2 s at a time, and its head."""
    pytest.importorskip("lhotse")
    from tests.support.encoder_recognizer import write_recognizer

    encoder = tmp_path / "tiny"
    save_safetensors(encoder, hugging_face_tensors(tiny_whisper()), WHISPER_CONFIG)
    return tmp_path / "exp", write_recognizer(tmp_path / "exp", encoder, 64, **CHUNKS)


def by_hand(exp: Path, head: CtcModel, path: Path) -> str | None:
    """Words of a file by the encoder's own functions, the head and the search."""
    import torch

    from privasr_k2 import config
    from privasr_k2.decoding.kaldi_backend import open_decoder
    from privasr_k2.decoding.recognizer import RecognizerSpec
    from privasr_k2.encoders.chunks import ChunkConfig, encode_long
    from privasr_k2.encoders.loading import load_encoder

    spec = config.load(RecognizerSpec, [exp / FILE])
    samples, rate = read_audio(path)
    samples = samples if rate == 16000 else resample(samples, rate, 16000)
    chunks = ChunkConfig(CHUNKS["chunk_seconds"], CHUNKS["chunk_overlap"], batch=1)
    with torch.no_grad():
        outputs = encode_long(load_encoder(spec.public_encoder), torch.from_numpy(samples), chunks)
    stored = outputs[: round(len(samples) / 320)].half().float()
    scores, lengths = head.log_probs(stored[None], torch.tensor([len(stored)]))
    [hyps] = open_decoder(exp / spec.graph, spec.search).decode(scores, lengths)
    return None if hyps is None else hyps[0].words


@pytest.mark.k2
def test_a_folder_by_a_recognizer_upon_a_public_encoder(
    audio: Path, exp: tuple[Path, CtcModel], tmp_path: Path
) -> None:
    folder, head = exp
    expected = {name: by_hand(folder, head, audio / name) for name in NAMES}
    assert len(expected["a/long one.FLAC"].split()) > 5 and len(set(expected.values())) == 4
    (audio / "empty.wav").write_bytes(b"")
    flags = f"--out-jsonl {tmp_path}/words.jsonl --out-text {tmp_path}/words.txt"
    shown = run(f"transcribe --in-exp {folder} {flags} {audio}", code=2)
    lines = "".join(f"{name}\t{words}\n" for name, words in expected.items())
    assert (tmp_path / "words.txt").read_text() == lines and shown.startswith(lines)
    assert f"{audio}/empty.wav: expected an audio file, found an empty file" in shown
    assert "expected 5 files of audio, found 1 that cannot be read" in shown
    records = {record["path"]: record for record in read_jsonl(tmp_path / "words.jsonl")}
    assert {name: record["words"] for name, record in records.items()} == expected
    assert records["a/telephone.wav"]["seconds"] == 1.5


@pytest.mark.k2
def test_the_encoder_is_read_once(
    audio: Path, exp: tuple[Path, CtcModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    from privasr_k2.encoders import frozen

    read, opened = [], frozen.load_encoder
    frozen._opened.cache_clear()
    monkeypatch.setattr(frozen, "load_encoder", lambda *a, **k: read.append(a) or opened(*a, **k))
    recognizer = Recognizer.from_folder(exp[0])
    assert all(isinstance(r, Transcript) for r in transcribe_files(recognizer, find_audio([audio])))
    assert len(read) == 1
    with pytest.raises(DataError, match="at least one frame"):
        recognizer.transcribe(np.full(16000, np.nan, dtype=np.float32), 16000)


@pytest.mark.k2
def test_another_encoder_in_its_place_is_refused(exp: tuple[Path, CtcModel]) -> None:
    from privasr_k2.encoders import frozen

    encoder = exp[0].parent / "tiny"
    changed = {name: tensor * 1.01 for name, tensor in hugging_face_tensors(tiny_whisper()).items()}
    save_safetensors(encoder, changed, WHISPER_CONFIG)
    frozen._opened.cache_clear()
    with pytest.raises(DataError, match="expected an encoder with sha256"):
        Recognizer.from_folder(exp[0])
