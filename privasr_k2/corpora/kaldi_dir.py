"""Reader of one Kaldi data directory that names every problem by file and line.

Understood are ``text``, ``utt2spk``, ``wav.scp`` (with or without ``segments``) or ``feats.scp``,
and ``utt2dur``. Files are sorted by their first field in C order, as in Kaldi.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.utterances import Utterance
from privasr_k2.data.problems import Problem, report
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    from lhotse import Features

FRAME_SHIFT = 0.01
"""Seconds between the frames of ``feats.scp`` without ``utt2dur``: Kaldi's default."""

_MOST_SECONDS = 1e9
"""Of a recording, whose samples must be countable."""
_MISSING = "no such line there"
_AUDIO, _FEATURES = "wav.scp", "feats.scp"


@dataclass(frozen=True)
class _Line:
    place: str
    rest: str


_Table = dict[str, _Line]


@dataclass(frozen=True)
class Pipes:
    """Treatment of commands in ``wav.scp``.

    Attributes:
        allowed: whether to run them; they are shell commands of whoever wrote the file.
        out_dir: keeps their output.
        num_jobs: commands at a time.
    """

    allowed: bool
    out_dir: Path
    num_jobs: int


def is_kaldi_dir(folder: Path) -> bool:
    """Whether a folder is meant to be a Kaldi data directory."""
    return any((folder / name).is_file() for name in ("text", _AUDIO, _FEATURES))


def read_kaldi_dir(folder: Path, *, part: str, pipes: Pipes, sampling_rate: int) -> list[Utterance]:
    """The utterances of a Kaldi data directory, in its order.

    Args:
        part: name to give to its utterances.
        sampling_rate: in Hz, noted in the manifests of given features.

    Raises:
        DataError: all problems of the directory's files.
    """
    directory = _Directory(folder, part)
    utterances, problems = [], directory.problems
    if _AUDIO in directory.tables:
        utterances = directory.with_audio(pipes)
    elif _FEATURES in directory.tables:
        utterances = directory.with_features(sampling_rate)
    else:
        problems.append(Problem(str(folder), "wav.scp or feats.scp", "neither"))
    way_out = "mend the files, for example with utils/fix_data_dir.sh"
    report(sorted(problems, key=_by_line), place=folder, way_out=way_out)
    return utterances


def _by_line(problem: Problem) -> tuple[str, int]:
    path, _, line = problem.place.rpartition(":")
    return (path, int(line)) if line.isdigit() else (problem.place, 0)


class _Directory:
    """The tables of a directory and their problems."""

    def __init__(self, folder: Path, part: str) -> None:
        self.folder, self.part = folder, part
        self.problems: list[Problem] = []
        self.text, self.speakers = self._read("text"), self._read("utt2spk")
        if not all((folder / name).is_file() for name in ("text", "utt2spk")):
            # Each line of the other one would be one more problem.
            report(self.problems, place=folder, way_out="add the file: fix_data_dir.sh cannot")
        names = (_AUDIO, "segments", _FEATURES, "utt2dur")
        self.tables = {name: self._read(name) for name in names if (folder / name).is_file()}
        for table, other, name in (
            (self.text, self.speakers, "utt2spk"),
            (self.speakers, self.text, "text"),
        ):
            for key in table.keys() - other.keys():
                self._problem(table[key].place, f"{key!r} also in {name}", _MISSING)

    def _problem(self, place: str, expected: str, found: str) -> None:
        self.problems.append(Problem(place, expected, found))

    def _read(self, name: str) -> _Table:
        """First field -> place and the rest of its line."""
        table: _Table = {}
        path, previous = self.folder / name, ""
        if not path.is_file():
            self._problem(str(path), "a file", "nothing")
            return table
        for number, line in read_lines(path):
            place, (key, _, rest) = f"{path}:{number}", line.strip().partition(" ")
            if "\t" in key:
                key, _, rest = line.strip().partition("\t")
            if not key:
                self._problem(place, "an id and its value", "an empty line")
                continue
            if key in table:
                found = f"{key!r} again, after {table[key].place}"
                self._problem(place, "an id that stands once", found)
                continue
            if key.encode() < previous.encode():
                found = f"{key!r} after {previous!r}"
                self._problem(place, "lines sorted as by LC_ALL=C sort", found)
            if not rest.strip() and name != "text":
                self._problem(place, "an id and its value", repr(line))
                continue
            table[key] = _Line(place, rest.strip())
            previous = key
        return table

    def with_audio(self, pipes: Pipes) -> list[Utterance]:
        recordings, segments = self.tables[_AUDIO], self.tables.get("segments")
        audio = self._audio_paths(recordings, pipes)
        spans: dict[str, tuple[str, float, float | None]] = {k: (k, 0.0, None) for k in recordings}
        if segments is not None:
            spans = {key: self._span(line) for key, line in segments.items()}
        utterances = []
        for key, line in self.text.items():
            recording, start, end = spans.get(key, ("", 0.0, None))
            path = audio.get(recording)
            if key not in spans:
                name = _AUDIO if segments is None else "segments"
                self._problem(line.place, f"{key!r} also in {name}", _MISSING)
            elif recording not in recordings:
                place = line.place if segments is None else segments[key].place
                self._problem(place, f"recording {recording!r} in wav.scp", _MISSING)
            elif path is not None and key in self.speakers:
                speaker, span = self.speakers[key].rest, (path, start, end)
                utterances.append(
                    Utterance(key, line.rest, speaker, self.part, *span, place=line.place)
                )
        return utterances

    def _span(self, line: _Line) -> tuple[str, float, float | None]:
        fields = line.rest.split()
        try:
            recording, start, end = fields[0], float(fields[1]), float(fields[2])
            if not 0 <= start < end < _MOST_SECONDS:
                raise ValueError
        except (IndexError, ValueError):
            expected = "UTTERANCE RECORDING START END with START < END"
            self._problem(line.place, expected, repr(line.rest))
            return (fields[0], 0.0, None)
        return recording, start, end

    def _audio_paths(self, table: _Table, pipes: Pipes) -> dict[str, Path]:
        """Recording -> file. Commands are refused, or run where the user allows it."""
        commands = {key: line for key, line in table.items() if line.rest.endswith("|")}
        files = {k: self._resolve(line.rest) for k, line in table.items() if k not in commands}
        if pipes.allowed:
            return files | (self._run(commands, pipes) if commands else {})
        expected = "a file name (a command would be run only with allow_pipes=true)"
        for line in commands.values():
            self._problem(line.place, expected, repr(line.rest))
        return files

    def _run(self, commands: _Table, pipes: Pipes) -> dict[str, Path]:
        """Run commands, which the user allowed, and keep what they write."""
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
                    self._problem(commands[key].place, "a command that succeeds", problem)
        return paths

    def _resolve(self, name: str) -> Path:
        """A relative name counts from the file's folder, else from the working directory."""
        path = Path(name)
        if path.is_absolute():
            return path
        beside, here = (self.folder / path).absolute(), path.absolute()
        # Not Path.exists, which raises where a name is too long for the system.
        return here if os.path.exists(here) and not os.path.exists(beside) else beside

    def with_features(self, sampling_rate: int) -> list[Utterance]:
        utterances = []
        for key, line in self.text.items():
            entry = self.tables[_FEATURES].get(key)
            if entry is None:
                self._problem(line.place, f"{key!r} also in feats.scp", _MISSING)
                continue
            features = self._features(key, entry, sampling_rate)
            if features is not None and key in self.speakers:
                said = (line.rest, self.speakers[key].rest, self.part)
                utterances.append(Utterance(key, *said, features=features, place=line.place))
        return utterances

    def _features(self, key: str, entry: _Line, sampling_rate: int) -> Features | None:
        import kaldi_native_io
        from lhotse import Features

        name, _, offset = entry.rest.rpartition(":")
        if not offset.isdigit():
            name, offset = entry.rest, ""
        path = self._resolve(name)
        if entry.rest.endswith("|") or not os.path.isfile(path):
            found = "a command" if entry.rest.endswith("|") else f"no file {path}"
            self._problem(entry.place, "ARCHIVE:OFFSET", found)
            return None
        storage_path = f"{path}:{offset}" if offset else str(path)
        try:
            # The header alone: rows and columns of a matrix, compressed or not.
            shape = kaldi_native_io.MatrixShape.read(storage_path)
        except (RuntimeError, ValueError) as error:
            reason = [*str(error).strip().splitlines(), "an unreadable matrix"][0]
            self._problem(entry.place, "a matrix of features", reason)
            return None
        frames, shift = int(shape.num_rows), FRAME_SHIFT
        duration = self.tables.get("utt2dur", {}).get(key)
        if duration is not None and frames > 0:
            try:
                shift = _frame_shift(float(duration.rest), frames)
            except ValueError:
                self._problem(duration.place, "UTTERANCE SECONDS", repr(duration.rest))
        return Features(
            type="given",
            num_frames=frames,
            num_features=int(shape.num_cols),
            frame_shift=shift,
            sampling_rate=sampling_rate,
            start=0.0,
            duration=round(frames * shift, 6),
            # As lhotse's reader of Kaldi archives wants it: the path with the offset, and no key.
            storage_type="kaldiio",
            storage_path=storage_path,
            storage_key="",
            recording_id=key,
            channels=0,
        )


def _frame_shift(seconds: float, frames: int) -> float:
    """The usual frame shift that fits best; an utterance lacks up to two frames at its ends."""
    shifts = (0.01, 0.02, 0.03, 0.04, 0.005, 0.0125)
    return min(shifts, key=lambda shift: abs((frames + 1) * shift - seconds))
