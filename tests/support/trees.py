"""Tiny corpora in official layouts, made of noise: what the tests of corpora read."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import soundfile


def noise(path: Path, seconds: float = 1.0, rate: int = 16000, file_format: str = "FLAC") -> Path:
    """An audio file of noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = int(seconds * rate)
    samples = np.random.default_rng(count + rate).normal(0, 0.1, count)
    soundfile.write(path, samples, rate, format=file_format, subtype="PCM_16")
    return path


def lines(path: Path, *content: str) -> Path:
    """A text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return path


def gzipped(path: Path, *content: str) -> Path:
    """A gzipped text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in content).encode()))
    return path


def librispeech(
    root: Path, parts: Iterable[str] = ("train-clean-100", "test-other"), speakers: int = 4
) -> Path:
    """Two utterances a speaker; speakers of different parts differ."""
    for number, part in enumerate(parts):
        for speaker in range(100 * number + 1, 100 * number + 1 + speakers):
            chapter, names = root / part / str(speaker) / "9", [f"{speaker}-9-000{n}" for n in "01"]
            for name in names:
                noise(chapter / f"{name}.flac", 1.0 + 0.1 * (speaker % 10))
            lines(chapter / f"{speaker}-9.trans.txt", f"{names[0]} IT'S A DOG", f"{names[1]} YES")
    return root


_PHONES = ("0 4000 h#", "4000 5000 sh", "5000 6000 ix", "6000 7000 dcl")


def timit(root: Path, train: Iterable[str] = ("FCJF0",)) -> Path:
    """Two utterances a speaker, with phones and words; one speaker of dev and one of core test."""
    people = [("TRAIN", name) for name in train] + [("TEST", "FAKS0"), ("TEST", "MDAB0")]
    for part, speaker in people:
        for sentence in ("SX127", "SI648"):
            stem = root / part / "DR1" / speaker / sentence
            noise(stem.with_suffix(".WAV"), 1.0, file_format="NIST")
            lines(stem.with_suffix(".PHN"), *_PHONES)
            lines(stem.with_suffix(".WRD"), "4000 6000 she", "6000 7000 had")
            lines(stem.with_suffix(".TXT"), "0 16000 She had.")
    return root


def kaldi(root: Path, role: str, speakers: Iterable[str]) -> Path:
    """A Kaldi data directory with WAV files beside it."""
    folder, ids = root / role, sorted(f"{speaker}-{n}" for speaker in speakers for n in "01")
    for name in ids:
        noise(folder / "wav" / f"{name}.wav", 1.0, file_format="WAV")
    lines(folder / "text", *(f"{i} Hello World" for i in ids))
    lines(folder / "utt2spk", *(f"{i} {i.split('-')[0]}" for i in ids))
    lines(folder / "wav.scp", *(f"{i} wav/{i}.wav" for i in ids))
    return folder


def yesno(root: Path) -> Path:
    """60 files of 8 kHz whose names say the words, one for yes."""
    for number in range(60):
        bits = "_".join(f"{number * 4 + 1:08b}")
        noise(root / f"{bits}.wav", 1.0 + 0.01 * number, 8000, "WAV")
    return root


def listing(root: Path) -> dict[str, int]:
    """Every file with the time of its last change: to see that nothing was written."""
    return {str(path): path.stat().st_mtime_ns for path in sorted(root.rglob("*"))}
