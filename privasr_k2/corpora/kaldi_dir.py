"""Reading one Kaldi data directory, with every problem of its files named by file and line.

Understood: ``text``, ``utt2spk`` and ``wav.scp`` (with ``segments`` or without) or ``feats.scp``
(matrices compressed or not), ``utt2dur`` where there is one. As in Kaldi, files are sorted by their
first field in C order.
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
"""Seconds between the frames of ``feats.scp`` where no ``utt2dur`` tells: Kaldi's own default."""

_MOST_SECONDS = 1e9
"""Of a recording: beyond it, and at infinity, samples could not be counted."""


@dataclass(frozen=True)
class _Line:
    place: str
    rest: str


@dataclass(frozen=True)
class Pipes:
    """Treatment of commands in ``wav.scp``.

    Attributes:
        allowed: whether they are run at all: whoever wrote the file then runs programs in your
            name.
        out_dir: where their output is kept, run once.
        num_jobs: commands at a time.
    """

    allowed: bool
    out_dir: Path
    num_jobs: int


def is_kaldi_dir(folder: Path) -> bool:
    """Whether a folder is meant to be a Kaldi data directory."""
    return (
        (folder / "text").is_file()
        or (folder / "wav.scp").is_file()
        or (folder / "feats.scp").is_file()
    )


def read_kaldi_dir(folder: Path, *, part: str, pipes: Pipes, sampling_rate: int) -> list[Utterance]:
    """The utterances of a Kaldi data directory, in its order.

    Args:
        folder: holds ``text`` and the others.
        part: the name to give to its utterances.
        pipes: what to do with commands in ``wav.scp``.
        sampling_rate: noted in the manifests of given features.

    Raises:
        DataError: all problems of the directory's files.
    """
    problems: list[Problem] = []
    text = _read(folder / "text", problems)
    speakers = _read(folder / "utt2spk", problems)
    if not all((folder / name).is_file() for name in ("text", "utt2spk")):
        # Each line of the other one would be one more problem.
        report(problems, place=folder, way_out="add the file: fix_data_dir.sh cannot")
    places = {name: folder / name for name in ("wav.scp", "segments", "feats.scp", "utt2dur")}
    tables = {name: _read(path, problems) for name, path in places.items() if path.is_file()}
    if "wav.scp" not in tables and "feats.scp" not in tables:
        problems.append(Problem(str(folder), "wav.scp or feats.scp", "neither"))
    _same_ids(folder / "utt2spk", speakers, "text", text, problems)
    utterances = []
    if "wav.scp" in tables:
        utterances = _with_audio(folder, text, speakers, tables, part, pipes, problems)
    elif "feats.scp" in tables:
        utterances = _with_features(folder, text, speakers, tables, part, sampling_rate, problems)
    report(
        sorted(problems, key=_by_line),
        place=folder,
        way_out="mend the files, for example with utils/fix_data_dir.sh",
    )
    return utterances


def _by_line(problem: Problem) -> tuple[str, int]:
    path, _, line = problem.place.rpartition(":")
    return (path, int(line)) if line.isdigit() else (problem.place, 0)


def _read(path: Path, problems: list[Problem]) -> dict[str, _Line]:
    """First field -> place and the rest of its line."""
    table: dict[str, _Line] = {}
    if not path.is_file():
        problems.append(Problem(str(path), "a file", "nothing"))
        return table
    previous = ""
    for number, line in read_lines(path):
        place, (key, _, rest) = f"{path}:{number}", line.strip().partition(" ")
        if "\t" in key:
            key, _, rest = line.strip().partition("\t")
        if not key:
            problems.append(Problem(place, "an id and its value", "an empty line"))
            continue
        if key in table:
            problems.append(
                Problem(place, "an id that stands once", f"{key!r} again, after {table[key].place}")
            )
            continue
        if key.encode() < previous.encode():
            problems.append(
                Problem(place, "lines sorted as by LC_ALL=C sort", f"{key!r} after {previous!r}")
            )
        if not rest.strip() and path.name != "text":
            problems.append(Problem(place, "an id and its value", repr(line)))
            continue
        table[key] = _Line(place, rest.strip())
        previous = key
    return table


def _same_ids(
    path: Path,
    table: dict[str, _Line],
    other_name: str,
    other: dict[str, _Line],
    problems: list[Problem],
) -> None:
    for key, line in other.items():
        if key not in table:
            problems.append(
                Problem(line.place, f"{key!r} also in {path.name}", "no such line there")
            )
    for key, line in table.items():
        if key not in other:
            problems.append(
                Problem(line.place, f"{key!r} also in {other_name}", "no such line there")
            )


def _with_audio(
    folder: Path,
    text: dict[str, _Line],
    speakers: dict[str, _Line],
    tables: dict[str, dict[str, _Line]],
    part: str,
    pipes: Pipes,
    problems: list[Problem],
) -> list[Utterance]:
    audio = _audio_paths(folder, tables["wav.scp"], pipes, problems)
    spans: dict[str, tuple[str, float, float | None]] = {
        key: (key, 0.0, None) for key in tables["wav.scp"]
    }
    if "segments" in tables:
        spans = {key: _span(line, problems) for key, line in tables["segments"].items()}
    utterances = []
    for key, line in text.items():
        recording, start, end = spans.get(key, ("", 0.0, None))
        path = audio.get(recording)
        if key not in spans:
            where = "segments" if "segments" in tables else "wav.scp"
            problems.append(Problem(line.place, f"{key!r} also in {where}", "no such line there"))
        elif recording not in tables["wav.scp"]:
            place = tables["segments"][key].place
            problems.append(
                Problem(place, f"recording {recording!r} in wav.scp", "no such line there")
            )
        elif path is not None and key in speakers:
            utterances.append(
                Utterance(
                    key, line.rest, speakers[key].rest, part, path, start, end, place=line.place
                )
            )
    return utterances


def _span(line: _Line, problems: list[Problem]) -> tuple[str, float, float | None]:
    fields = line.rest.split()
    try:
        recording, start, end = fields[0], float(fields[1]), float(fields[2])
        if not 0 <= start < end < _MOST_SECONDS:
            raise ValueError
    except (IndexError, ValueError):
        problems.append(
            Problem(line.place, "UTTERANCE RECORDING START END with START < END", repr(line.rest))
        )
        return (fields[0], 0.0, None)
    return recording, start, end


def _audio_paths(
    folder: Path, table: dict[str, _Line], pipes: Pipes, problems: list[Problem]
) -> dict[str, Path]:
    """Recording -> file. Commands are refused, or run where the user allows it."""
    files = {
        key: _resolve(folder, line.rest)
        for key, line in table.items()
        if not line.rest.endswith("|")
    }
    commands = {key: line for key, line in table.items() if line.rest.endswith("|")}
    if commands and not pipes.allowed:
        for line in commands.values():
            problems.append(
                Problem(
                    line.place,
                    "a file name (a command would be run only with allow_pipes=true)",
                    repr(line.rest),
                )
            )
        return files
    return files | (
        _run_pipes(commands, pipes.out_dir, pipes.num_jobs, problems) if commands else {}
    )


def _run_pipes(
    wanted: dict[str, _Line], out_dir: Path, num_jobs: int, problems: list[Problem]
) -> dict[str, Path]:
    """Run commands of ``wav.scp`` and keep what they write: recording -> file."""
    out_dir.mkdir(parents=True, exist_ok=True)
    paths = {key: out_dir / f"{number:07d}.wav" for number, key in enumerate(wanted)}

    def run(key: str) -> str | None:
        with paths[key].open("wb") as file:
            # The user allowed it with allow_pipes=true: wav.scp is a list of shell commands by its
            # definition.
            command = ["bash", "-c", f"set -o pipefail; {wanted[key].rest.rstrip('| ')}"]
            done = subprocess.run(
                command, stdout=file, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False
            )
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return f"exit status {done.returncode}: {' '.join(last)}" if done.returncode else None

    with ThreadPoolExecutor(max(1, num_jobs)) as pool:
        for key, problem in zip(wanted, pool.map(run, wanted)):
            if problem is not None:
                problems.append(Problem(wanted[key].place, "a command that succeeds", problem))
    return paths


def _resolve(folder: Path, name: str) -> Path:
    """A relative name counts from the folder of its file, or else from where the command was
    given.
    """
    path = Path(name)
    if path.is_absolute():
        return path
    beside = (folder / path).absolute()
    here = path.absolute()
    # Not Path.exists, which raises where a name is too long for the system.
    return here if os.path.exists(here) and not os.path.exists(beside) else beside


def _with_features(
    folder: Path,
    text: dict[str, _Line],
    speakers: dict[str, _Line],
    tables: dict[str, dict[str, _Line]],
    part: str,
    sampling_rate: int,
    problems: list[Problem],
) -> list[Utterance]:
    durations = tables.get("utt2dur", {})
    utterances = []
    for key, line in text.items():
        entry = tables["feats.scp"].get(key)
        if entry is None:
            problems.append(Problem(line.place, f"{key!r} also in feats.scp", "no such line there"))
            continue
        features = _features(folder, key, entry, durations.get(key), sampling_rate, problems)
        if features is not None and key in speakers:
            utterances.append(
                Utterance(
                    key, line.rest, speakers[key].rest, part, features=features, place=line.place
                )
            )
    return utterances


def _features(
    folder: Path,
    key: str,
    entry: _Line,
    duration: _Line | None,
    sampling_rate: int,
    problems: list[Problem],
) -> Features | None:
    import kaldi_native_io
    from lhotse import Features

    name, _, offset = entry.rest.rpartition(":")
    if not offset.isdigit():
        name, offset = entry.rest, ""
    path = _resolve(folder, name)
    if entry.rest.endswith("|") or not os.path.isfile(path):
        found = "a command" if entry.rest.endswith("|") else f"no file {path}"
        problems.append(Problem(entry.place, "ARCHIVE:OFFSET", found))
        return None
    storage_path = f"{path}:{offset}" if offset else str(path)
    try:
        # The header alone: rows and columns of a matrix, compressed or not.
        shape = kaldi_native_io.MatrixShape.read(storage_path)
    except (RuntimeError, ValueError) as error:
        reason = (
            str(error).strip().splitlines()[0] if str(error).strip() else "an unreadable matrix"
        )
        problems.append(Problem(entry.place, "a matrix of features", reason))
        return None
    frames = int(shape.num_rows)
    shift = FRAME_SHIFT
    if duration is not None and frames > 0:
        try:
            shift = _frame_shift(float(duration.rest), frames)
        except ValueError:
            problems.append(Problem(duration.place, "UTTERANCE SECONDS", repr(duration.rest)))
    return Features(
        type="given",
        num_frames=frames,
        num_features=int(shape.num_cols),
        frame_shift=shift,
        sampling_rate=sampling_rate,
        start=0.0,
        duration=round(frames * shift, 6),
        storage_type="kaldiio",
        # As lhotse's reader of Kaldi archives wants it: the path with the offset, and no key.
        storage_path=storage_path,
        storage_key="",
        recording_id=key,
        channels=0,
    )


def _frame_shift(seconds: float, frames: int) -> float:
    """Of the usual frame shifts the one that fits best; an utterance lacks up to two frames at its
    ends.
    """
    return min(
        (0.01, 0.02, 0.03, 0.04, 0.005, 0.0125),
        key=lambda shift: abs((frames + 1) * shift - seconds),
    )
