"""The public list of all units, of which some may have no data: what no deal may depend on.

A line names a speaker, or, as Kaldi's ``utt2spk``, an utterance and its speaker. Who is listed is
public; whether somebody on it has data is what a guarantee hides.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines, write_text

SPEAKER, UTTERANCE = "speaker", "utterance"


def file_name(unit: str) -> str:
    """The name of a roster's file beside the sides of ``split_speech``."""
    return f"roster_{unit}.txt"


def read_roster(path: Path, unit: str) -> dict[str, str]:
    """Unit to the person behind it; a speaker is one.

    Args:
        unit: ``speaker``, or ``utterance``, whose lines name the speaker, too.

    Raises:
        DataError: no name, a name twice, or an utterance without its speaker.
    """
    persons: dict[str, str] = {}
    for number, line in read_lines(path):
        name, speaker = line.strip(), line.strip()
        if unit == UTTERANCE:
            name, _, speaker = (part.strip() for part in name.partition(" "))
        if not name:
            continue
        if not speaker:
            way_out = "add the speaker, as in Kaldi's utt2spk"
            raise DataError(f"{path}:{number}", "an utterance and its speaker", line, way_out)
        if name in persons:
            raise DataError(f"{path}:{number}", f"every {unit} once", line, "remove one of them")
        persons[name] = speaker
    if not persons:
        way_out = "list everybody who may have data, a line each"
        raise DataError(path, f"the names of all {unit}s", "none", way_out)
    return persons


def read_speakers(path: Path) -> tuple[list[str], dict[str, str] | None]:
    """The speakers of a roster of either kind, sorted, and of ``utt2spk`` utterance to speaker.

    Raises:
        DataError: as :func:`read_roster`.
    """
    lines = [line.split() for _, line in read_lines(path) if line.strip()]
    if lines and all(len(words) == 2 for words in lines):
        persons = read_roster(path, UTTERANCE)
        return sorted(set(persons.values())), persons
    return sorted(read_roster(path, SPEAKER)), None


def read_units(path: Path, unit: str) -> dict[str, str]:
    """As :func:`read_roster`; speakers may be listed by ``utt2spk``, too."""
    if unit == SPEAKER:
        return {name: name for name in read_speakers(path)[0]}
    return read_roster(path, unit)


def write_roster(path: Path, persons: Mapping[str, str], unit: str) -> None:
    """Write what :func:`read_roster` reads."""
    lines = (name if unit == SPEAKER else f"{name} {persons[name]}" for name in sorted(persons))
    write_text(path, "".join(f"{line}\n" for line in lines))
