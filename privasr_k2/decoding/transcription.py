"""Audio files and folders of them through a recognizer, one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.decoding.recognizer import read_audio
from privasr_k2.errors import ConfigError, DataError

if TYPE_CHECKING:
    from privasr_k2.decoding.recognizer import Recognizer

SUFFIXES = (".wav", ".flac", ".sph", ".ogg", ".opus")
"""Of the files that are taken from a folder, in any case."""


@dataclass(frozen=True)
class AudioFile:
    """A file to transcribe.

    Attributes:
        name: relative to its folder with ``/``; the path as it was given without a folder.
    """

    name: str
    path: Path


@dataclass(frozen=True)
class Transcript:
    """What was recognized.

    Attributes:
        path: :attr:`AudioFile.name`.
        seconds: of audio.
        words: None where the search found no path.
    """

    path: str
    seconds: float
    words: str | None


def find_audio(paths: Sequence[Path]) -> list[AudioFile]:
    """The files that are given, and those in given folders and below them, sorted within each.

    A file that is given is taken whatever its name; in a folder :data:`SUFFIXES` decide.

    Raises:
        DataError: a folder without audio.
        ConfigError: two files of one name, as of two folders.
    """
    files = [file for path in paths for file in (_below(path) if path.is_dir() else _named(path))]
    seen: dict[str, Path] = {}
    for file in files:
        if file.name in seen:
            found, way_out = f"{seen[file.name]} and {file.path}", "give the folder above them"
            raise ConfigError(file.name, "one file of this name", found, way_out)
        seen[file.name] = file.path
    return files


def transcribe_files(
    recognizer: Recognizer, files: Iterable[AudioFile]
) -> Iterator[Transcript | DataError]:
    """For each file what was recognized, or why it cannot be read; the others go on."""
    for file in files:
        try:
            _check_name(file)
            samples, sampling_rate = read_audio(file.path)
            words = recognizer.transcribe(samples, sampling_rate)
        except DataError as error:
            place = str(file.path)
            at = place if error.place in (place, "audio") else f"{place}, {error.place}"
            yield DataError(at, error.expected, error.found, error.way_out)
        else:
            yield Transcript(file.name, len(samples) / sampling_rate, words)


def _named(path: Path) -> list[AudioFile]:
    return [AudioFile(str(path), path)]


def _below(folder: Path) -> list[AudioFile]:
    found = sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and not path.is_dir()
    )
    if not found:
        expected, way_out = f"files {', '.join('*' + s for s in SUFFIXES)}", "give the files"
        raise DataError(folder, expected, "none, nor in folders below", way_out)
    return [AudioFile(path.relative_to(folder).as_posix(), path) for path in found]


def _check_name(file: AudioFile) -> None:
    """A line of text has to hold the name."""
    readable = os.fsencode(file.name).decode("utf-8", errors="replace")
    if readable != file.name or any(mark in file.name for mark in "\t\n\r"):
        expected = "a name in UTF-8, without tabs and line breaks"
        raise DataError(file.path, expected, "another", "rename the file")
