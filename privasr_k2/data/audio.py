"""Audio files checked by header and tail, in the formats of libsndfile; the samples of cuts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privasr_k2.errors import DataError

if TYPE_CHECKING:
    from lhotse.cut import Cut

_TAIL_SECONDS = 0.5
_UNKNOWN_SIZE = 0x7FFFF000
"""Sizes from this on are placeholders of programs that write WAV into a pipe."""


@dataclass(frozen=True)
class AudioHeader:
    """The header of an audio file; numbers are 0 where a ``problem`` prevents reading it."""

    num_samples: int
    sampling_rate: int
    num_channels: int
    problem: str | None = None


def read_header(path: Path) -> AudioHeader:
    """The header of one audio file, with a ``problem`` if it cannot be read."""
    import soundfile

    # Not Path.is_file, which raises where a name is too long for the system.
    if not os.path.isfile(path):
        return AudioHeader(0, 0, 0, "no such file")
    try:
        info = soundfile.info(str(path))
    except soundfile.LibsndfileError as error:
        return AudioHeader(0, 0, 0, _why_unreadable(path, error))
    if info.frames == 0:
        return AudioHeader(0, 0, 0, "a file without samples")
    return AudioHeader(info.frames, info.samplerate, info.channels)


def read_headers(paths: Iterable[Path], num_jobs: int = 1) -> dict[Path, AudioHeader]:
    """The headers of many files, each read once, by threads."""
    unique = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(max(1, num_jobs)) as pool:
        return dict(zip(unique, pool.map(read_header, unique)))


def audio_problem(path: Path) -> str | None:
    """Why a file cannot be read to its end, or ``None``; libraries tell what their readers said."""
    return read_header(path).problem or missing_samples(path)


def missing_samples(path: Path) -> str | None:
    """Why the end of a file cannot be decoded, or ``None``.

    Only the last half second is decoded, and sizes in WAV and SPHERE headers are compared with the
    file's, so that a thousand hours take minutes.
    """
    import soundfile

    short = _shorter_than_header(path)
    if short is not None:
        return short
    try:
        with soundfile.SoundFile(str(path)) as file:
            tail = min(file.frames, int(_TAIL_SECONDS * file.samplerate))
            file.seek(file.frames - tail)
            decoded = len(file.read(tail, dtype="int16", always_2d=True))
    except soundfile.LibsndfileError as error:
        return f"a truncated or damaged file ({_reason(error)})"
    missing = tail - decoded
    return f"a truncated file: {missing} samples are missing at its end" if missing else None


def _shorter_than_header(path: Path) -> str | None:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(1024)
    promised = 0
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        riff = int.from_bytes(head[4:8], "little")
        promised = riff + 8 if riff < _UNKNOWN_SIZE else 0
    elif head[:7] == b"NIST_1A":
        fields = sphere_fields(head)
        width = int(fields.get("sample_n_bytes", 2)) * int(fields.get("channel_count", 1))
        if fields.get("sample_coding", "pcm") == "pcm":
            promised = 1024 + int(fields.get("sample_count", 0)) * width
    # One byte of padding at the end is often left out.
    message = f"a truncated file: {promised} bytes by its header, {size} there"
    return message if size + 1 < promised else None


def sphere_fields(head: bytes) -> dict[str, str]:
    """The fields of a NIST SPHERE header.

    >>> sphere_fields(b"NIST_1A\\n   1024\\nsample_count -i 7\\nend_head\\n")
    {'sample_count': '7'}
    """
    fields = {}
    for line in head.decode("ascii", errors="replace").splitlines()[2:]:
        if line.strip() == "end_head":
            break
        name, _, rest = line.partition(" ")
        _, _, value = rest.strip().partition(" ")
        fields[name] = value.strip()
    return fields


def _why_unreadable(path: Path, error: Exception) -> str:
    with path.open("rb") as file:
        head = file.read(1024)
    if not head:
        return "an empty file"
    if head[:7] == b"NIST_1A" and "shorten" in sphere_fields(head).get("sample_coding", ""):
        return (
            "SPHERE compressed with shorten: unpack it with 'w_decode -o pcm' or 'sph2pipe -f wav'"
        )
    return f"no readable audio ({_reason(error)})"


def _reason(error: Exception) -> str:
    return (getattr(error, "error_string", None) or str(error)).strip().rstrip(".")


def no_audio(cut: Cut) -> DataError:
    """The error of a cut whose audio is wanted and not there."""
    found, way_out = "text only", "give a corpus with audio"
    if (cut.custom or {}).get("text_only"):
        way_out = "have the text spoken (--set speech=synthetic), or run a recipe of text only"
    elif cut.has_features:
        found, way_out = "features only", "take its own features: --feature given"
        way_out += " (of the verb: --set kind=given speed_perturb=false)"
    return DataError(cut.id, "audio", found, way_out)


def load_samples(cut: Cut) -> np.ndarray:
    """Samples of a cut's first channel, (S,) float32; of a mixture their sum.

    Raises:
        DataError: no audio, or a file that cannot be read.
    """
    import soundfile
    from lhotse.audio import AudioLoadingError, DurationMismatchError
    from lhotse.cut import MixedCut

    if not cut.has_recording:
        raise no_audio(cut)
    try:
        return np.asarray(cut.load_audio()[0], dtype=np.float32)
    except (AudioLoadingError, DurationMismatchError, soundfile.LibsndfileError, OSError) as error:
        parts = [track.cut for track in cut.tracks] if isinstance(cut, MixedCut) else [cut]
        sources = [part.recording.sources[0] for part in parts if part.has_recording]
        problems = {
            source.source: audio_problem(Path(source.source)) if source.type == "file" else None
            for source in sources
        }
        place = next((place for place, problem in problems.items() if problem), sources[0].source)
        found = problems[place] or f"an error: {str(error).strip().splitlines()[0]}"
        way_out = "replace the file, or leave it out"
        raise DataError(place, f"the audio of {cut.id}", found, way_out) from error
