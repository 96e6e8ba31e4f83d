"""Kaldi data directories through lhotse's reader, checked beforehand by file and line.

Understood are ``text``, ``utt2spk``, ``wav.scp`` (with or without ``segments``) or ``feats.scp``,
``utt2dur`` and ``spk2gender``. Files are sorted by their first field in C order, as in Kaldi.
``lhotse.kaldi`` neither names lines nor resolves relative paths, and floors durations to
milliseconds. So it reads a copy of the checked tables, with absolute paths and exact durations.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from privasr_k2.corpora.lhotse_manifests import cuts_of
from privasr_k2.corpora.utterances import OVERSHOOT_SECONDS
from privasr_k2.data import problems as kinds
from privasr_k2.data.audio import read_headers
from privasr_k2.data.problems import Problem, report
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    from lhotse import CutSet

FRAME_SHIFT = 0.01
"""Seconds between the frames of ``feats.scp`` without ``utt2dur``: Kaldi's default."""

_MOST_SECONDS = 1e9
"""Of a recording, whose samples must be countable."""
_MISSING = "no such line there"
_END = "-1"
"""Kaldi's end of a segment that lasts to the end of its recording."""
_AUDIO, _FEATURES, _GENDERS = "wav.scp", "feats.scp", "spk2gender"


class Line(NamedTuple):
    """What stands after the id in a line of a table; ``place`` is ``file:line``."""

    place: str
    rest: str


Table = dict[str, Line]
_Staged = dict[str, dict[str, str]]
"""File name -> id -> the rest of its line."""


@dataclass(frozen=True)
class Pipes:
    """Treatment of commands in ``wav.scp``.

    Attributes:
        allowed: whether to run them; they are shell commands of whoever wrote the file.
        out_dir: keeps their output.
        num_jobs: commands at a time, and threads that look at audio.
    """

    allowed: bool
    out_dir: Path
    num_jobs: int


def is_kaldi_dir(folder: Path) -> bool:
    """Whether a folder is meant to be a Kaldi data directory."""
    return any((folder / name).is_file() for name in ("text", _AUDIO, _FEATURES))


def read_kaldi_dir(folder: Path, *, part: str, pipes: Pipes, sampling_rate: int) -> CutSet:
    """One cut for each line of ``text``, in that order.

    Args:
        part: name to give to its utterances.
        sampling_rate: of audio and of given features, in Hz.

    Raises:
        DataError: all problems of the directory's files.
    """
    from lhotse.kaldi import load_kaldi_data_dir
    from lhotse.qa import fix_manifests

    directory = _Directory(folder)
    staged, shift = directory.staged(pipes, sampling_rate)
    way_out = "mend the files, for example with utils/fix_data_dir.sh"
    report(sorted(directory.problems, key=_by_line), place=folder, way_out=way_out)
    with tempfile.TemporaryDirectory() as name:
        for file, table in staged.items():
            lines = (f"{key} {rest}".rstrip() + "\n" for key, rest in table.items())
            (Path(name) / file).write_text("".join(lines), encoding="utf-8")
        recordings, supervisions, features = load_kaldi_data_dir(
            name, sampling_rate, frame_shift=shift, feature_type="given"
        )
    places = {key: line.place for key, line in directory.text.items()}
    if shift is not None:
        return cuts_of({"supervisions": supervisions, "features": features}, part, places)
    recordings, supervisions = fix_manifests(recordings, supervisions)
    return cuts_of({"recordings": recordings, "supervisions": supervisions}, part, places)


def _by_line(problem: Problem) -> tuple[str, int]:
    path, _, line = problem.place.rpartition(":")
    return (path, int(line)) if line.isdigit() else (problem.place, 0)


def read_table(path: Path, problems: list[Problem], *, may_be_empty: bool = False) -> Table:
    """First field -> place and the rest of its line; what is wrong is added to ``problems``."""
    table: Table = {}
    previous = ""
    if not path.is_file():
        problems.append(Problem(str(path), "a file", "nothing", kinds.NO_FILE))
        return table
    for number, line in read_lines(path):
        place, words = f"{path}:{number}", line.split(maxsplit=1)
        if not words:
            problems.append(Problem(place, "an id and its value", "an empty line", kinds.FORM))
            continue
        # Of all line ends only "\n" was one so far; lhotse knows "\r" too.
        key, rest = words[0], "".join(words[1:]).strip().replace("\r", " ")
        if key in table:
            found = f"{key!r} again, after {table[key].place}"
            problems.append(Problem(place, "an id that stands once", found, kinds.DOUBLE))
            continue
        if key.encode() < previous.encode():
            found = f"{key!r} after {previous!r}"
            expected = "lines sorted as by LC_ALL=C sort"
            problems.append(Problem(place, expected, found, kinds.ORDER))
        if not rest and not may_be_empty:
            problems.append(Problem(place, "an id and its value", repr(line), kinds.FORM))
            continue
        table[key] = Line(place, rest)
        previous = key
    if not table and not problems:
        problems.append(Problem(str(path), "lines of an id and its value", "an empty file"))
    return table


class _Directory:
    """The tables of a directory and their problems."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[Problem] = []
        self.text = read_table(folder / "text", self.problems, may_be_empty=True)
        self.speakers = read_table(folder / "utt2spk", self.problems)
        if not all((folder / name).is_file() for name in ("text", "utt2spk")):
            # Each line of the other one would be one more problem.
            report(self.problems, place=folder, way_out="add the file: fix_data_dir.sh cannot")
        self.tables = {
            name: read_table(folder / name, self.problems)
            for name in (_AUDIO, "segments", _FEATURES, "utt2dur", _GENDERS)
            if (folder / name).is_file()
        }
        self._check_keys(self.text, self.speakers, "utt2spk")
        self._check_keys(self.speakers, self.text, "text")
        genders = self.tables.get(_GENDERS)
        if genders is not None:
            named = {line.rest: line for line in self.speakers.values()}
            self._check_keys(named, genders, _GENDERS)

    def _problem(self, place: str, expected: str, found: str, kind: str = "") -> None:
        self.problems.append(Problem(place, expected, found, kind))

    def _check_keys(self, table: Table, other: Collection[str], name: str) -> None:
        for key in table.keys() - other:
            self._problem(table[key].place, f"{key!r} also in {name}", _MISSING, kinds.NO_LINE)

    def staged(self, pipes: Pipes, rate: int) -> tuple[_Staged, float | None]:
        """The tables for lhotse, and the frame shift of given features, in seconds."""
        shift, tables = None, {}
        if _AUDIO in self.tables:
            tables = self._with_audio(pipes, rate)
        elif _FEATURES in self.tables:
            shift, tables = self._with_features()
        else:
            self._problem(str(self.folder), "wav.scp or feats.scp", "neither")
        plain = {"text": self.text, "utt2spk": self.speakers}
        if _GENDERS in self.tables:
            plain[_GENDERS] = self.tables[_GENDERS]
        tables |= {n: {k: line.rest for k, line in table.items()} for n, table in plain.items()}
        return tables, shift

    def _with_audio(self, pipes: Pipes, rate: int) -> _Staged:
        recordings, name = self.tables[_AUDIO], _AUDIO
        segments = {
            key: Line(self.text[key].place, f"{key} 0 {_END}")
            for key in recordings
            if key in self.text
        }
        if "segments" in self.tables:
            segments, name = self.tables["segments"], "segments"
        self._check_keys(self.text, segments, name)
        spans = {key: self._span(line) for key, line in segments.items() if key in self.text}
        used = {recording: segments[key] for key, (recording, *_) in spans.items()}
        self._check_keys(used, recordings, _AUDIO)
        there = {key: line for key, line in recordings.items() if key in used}
        paths = self._audio_paths(there, pipes)
        seconds = self._seconds(paths, pipes.num_jobs, rate)
        for key, (recording, start, end) in spans.items():
            length = seconds.get(recording, _MOST_SECONDS)
            last = length if end == -1 else min(length, end)
            if end > length + OVERSHOOT_SECONDS or round(last * rate) <= round(start * rate):
                found = f"{length:.2f} s of audio, but {start:g} to {end:g} s are wanted"
                self._problem(segments[key].place, f"audio for {key}", found, kinds.TIMES)
        return {
            _AUDIO: {key: str(path) for key, path in paths.items()},
            "reco2dur": {key: repr(length) for key, length in seconds.items()},
            "segments": {
                key: f"{recording} {start} {_END if end == -1 else end}"
                for key, (recording, start, end) in spans.items()
            },
        }

    def _seconds(self, paths: Mapping[str, Path], num_jobs: int, rate: int) -> dict[str, float]:
        """The length of each recording whose audio can be read and has the rate."""
        seconds, headers = {}, read_headers(paths.values(), num_jobs)
        for key, path in paths.items():
            header = headers[path]
            if header.problem is not None:
                self._problem(str(path), f"audio for {key}", header.problem)
            elif (header.num_channels, header.sampling_rate) != (1, rate):
                found = f"{header.sampling_rate} Hz and {header.num_channels} channels"
                kind = kinds.CHANNELS if header.num_channels != 1 else kinds.RATE
                self._problem(str(path), f"audio of {rate} Hz and one channel", found, kind)
            else:
                seconds[key] = header.num_samples / rate
        return seconds

    def _span(self, line: Line) -> tuple[str, float, float]:
        fields = line.rest.split()
        try:
            recording, start, end = fields[0], float(fields[1]), float(fields[2])
            if start < 0 or not (start < end < _MOST_SECONDS or end == -1):
                raise ValueError
        except (IndexError, ValueError):
            expected = "UTTERANCE RECORDING START END with START < END, or END = -1"
            self._problem(line.place, expected, repr(line.rest), kinds.FORM)
            return fields[0], 0.0, -1.0
        return recording, start, end

    def _with_features(self) -> tuple[float, _Staged]:
        entries = self.tables[_FEATURES]
        self._check_keys(self.text, entries, _FEATURES)
        archives, frames = {}, {}
        for key in self.text.keys() & entries.keys():
            if (archive := self._archive(entries[key])) is not None:
                archives[key], frames[key] = archive
        shift = self._frame_shift(frames)
        return shift, {
            _FEATURES: archives,
            # lhotse wants recordings; their audio is never read.
            _AUDIO: {key: key for key in archives},
            "reco2dur": {key: repr(round(count * shift, 6)) for key, count in frames.items()},
            "segments": {key: f"{key} 0 {_END}" for key in archives},
        }

    def _archive(self, entry: Line) -> tuple[str, int] | None:
        """ARCHIVE:OFFSET with an absolute path, and the number of frames."""
        import kaldi_native_io

        name, _, offset = entry.rest.rpartition(":")
        if not offset.isdigit():
            name, offset = entry.rest, ""
        path = self._resolve(name)
        if entry.rest.endswith("|") or not os.path.isfile(path):
            found = "a command" if entry.rest.endswith("|") else f"no file {path}"
            self._problem(entry.place, "ARCHIVE:OFFSET", found)
            return None
        place = f"{path}:{offset}" if offset else str(path)
        try:
            # The header alone: rows and columns of a matrix, compressed or not.
            return place, int(kaldi_native_io.MatrixShape.read(place).num_rows)
        except (RuntimeError, ValueError) as error:
            reason = [*str(error).strip().splitlines(), "an unreadable matrix"][0]
            self._problem(entry.place, "a matrix of features", reason)
            return None

    def _frame_shift(self, frames: Mapping[str, int]) -> float:
        """The usual shift that fits best; an utterance lacks up to two frames at its ends."""
        seconds, most = 0.0, 0
        for key, line in self.tables.get("utt2dur", {}).items():
            try:
                seconds += float(line.rest) if key in frames else 0.0
                most += frames[key] + 1 if key in frames else 0
            except ValueError:
                self._problem(line.place, "UTTERANCE SECONDS", repr(line.rest), kinds.FORM)
        shifts = (FRAME_SHIFT, 0.02, 0.03, 0.04, 0.005, 0.0125)
        return min(shifts, key=lambda shift: abs(most * shift - seconds)) if most else FRAME_SHIFT

    def _audio_paths(self, table: Table, pipes: Pipes) -> dict[str, Path]:
        """Recording -> file. Commands are refused, or run where the user allows it."""
        commands = {key: line for key, line in table.items() if line.rest.endswith("|")}
        files = {k: self._resolve(line.rest) for k, line in table.items() if k not in commands}
        if pipes.allowed:
            return files | (self._run(commands, pipes) if commands else {})
        expected = "a file name (a command would be run only with --allow-pipes true)"
        for line in commands.values():
            self._problem(line.place, expected, repr(line.rest), kinds.PIPE)
        return files

    def _run(self, commands: Table, pipes: Pipes) -> dict[str, Path]:
        """Run commands, which the user allowed, and keep what those write that end well."""
        pipes.out_dir.mkdir(parents=True, exist_ok=True)
        paths = {key: pipes.out_dir / f"{n:07d}.wav" for n, key in enumerate(commands)}

        def run(key: str) -> str | None:
            command = ["bash", "-c", f"set -o pipefail; {commands[key].rest.rstrip('| ')}"]
            streams = dict(stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            with paths[key].open("wb") as file:
                done = subprocess.run(command, stdout=file, **streams, check=False)
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return f"exit status {done.returncode}: {' '.join(last)}" if done.returncode else None

        with ThreadPoolExecutor(max(1, pipes.num_jobs)) as pool:
            for key, problem in zip(commands, pool.map(run, commands)):
                if problem is not None:
                    place, expected = commands[key].place, "a command that succeeds"
                    self._problem(place, expected, problem, kinds.FAILED_PIPE)
                    del paths[key]  # one problem, not also that of an empty file
        return paths

    def _resolve(self, name: str) -> Path:
        """A relative name counts from the folder, its parent, or the working directory."""
        names = [(place / name).absolute() for place in (self.folder, self.folder.parent, Path())]
        # Not Path.exists, which raises where a name is too long for the system.
        return next((path for path in names if os.path.exists(path)), names[0])
