"""What readers check of a corpus's folders before lhotse reads them: names, audio, transcripts.

lhotse leaves out what it does not find, with a warning at most, or fails without naming the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.corpora.lhotse_manifests import call_recipe, cuts_of
from privasr_k2.corpora.utterances import Utterance
from privasr_k2.data.audio import read_headers
from privasr_k2.data.problems import Problem, report
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    from lhotse import CutSet


def shown(folder: Path) -> str:
    """The first names in a folder, for messages."""
    return ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "an empty folder"


def audio_problems(audio: Mapping[Path, str], num_jobs: int) -> list[Problem]:
    """Audio that cannot be read.

    Args:
        audio: path -> what is expected of it, as ``audio for ID``.
    """
    headers = read_headers(audio, num_jobs).items()
    found = ((path, header.problem) for path, header in headers)
    return [Problem(str(path), audio[path], why) for path, why in found if why is not None]


def transcript_places(part: Path, num_jobs: int, problems: list[Problem]) -> dict[str, str]:
    """Utterance -> ``file:line`` of ``<speaker>/<chapter>/*.trans.txt``, with FLAC files beside.

    Args:
        problems: what lhotse would leave out or fail on is added.
    """
    places: dict[str, str] = {}
    for transcript in sorted(part.glob("*/*/*.trans.txt")):
        for number, line in read_lines(transcript):
            place, words = f"{transcript}:{number}", line.split()
            if len(words) < 2:
                problems.append(Problem(place, "an utterance id and its words", repr(line)))
            elif words[0] in places:
                found = f"{words[0]!r} again, after {places[words[0]]}"
                problems.append(Problem(place, "an id that stands once", found))
            else:
                places[words[0]] = place
    names = {part.joinpath(*name.split("-")[:-1], f"{name}.flac"): name for name in places}
    problems += audio_problems({p: f"audio for {n}" for p, n in names.items()}, num_jobs)
    for path in sorted(part.glob("*/*/*.flac")):
        if path not in names:
            problems.append(Problem(str(path), "its transcript in a .trans.txt beside it", "none"))
    return places


def cuts_of_transcripts(
    prepare: Callable[..., Any], folder: Path, roles: Mapping[str, Sequence[str]], num_jobs: int
) -> dict[str, CutSet]:
    """Role -> the cuts of its parts that are there, by a recipe of lhotse for such transcripts.

    Args:
        roles: role -> names of parts, each a folder.

    Raises:
        DataError: all that :func:`transcript_places` finds, or no part of train or test.
    """
    from lhotse import CutSet

    problems: list[Problem] = []
    found = {
        role: {part: transcript_places(folder / part, num_jobs, problems) for part in parts}
        for role, parts in roles.items()
    }
    report(problems, place=folder, way_out="complete transcripts and audio, or remove both")
    places = {part: of_part for parts in found.values() for part, of_part in parts.items()}
    there = {role: [part for part in parts if places[part]] for role, parts in roles.items()}
    if missing := [role for role in ("train", "test") if not there[role]]:
        expected = f"utterances in a folder of {' and of '.join(missing)}: {roles[missing[0]][0]}"
        way_out = "give the folder that holds it, with <speaker>/<chapter>/*.trans.txt"
        raise DataError(folder, expected, shown(folder), way_out)
    cuts = {}
    for role, parts in there.items():
        made = call_recipe(prepare, folder, dataset_parts=parts, num_jobs=num_jobs)
        read = (cuts_of(made[part], part.replace("-", "_"), places[part]) for part in parts)
        if parts:
            cuts[role] = CutSet.from_cuts(cut for of_part in read for cut in of_part)
    return cuts


def without_transcripts(folder: Path, option: str = "unlabelled") -> list[Utterance]:
    """All FLAC files below the folder of an option, which names the part; speakers are first."""
    paths = sorted(folder.rglob("*.flac"))
    if not paths:
        expected = "SPEAKER-CHAPTER-NUMBER.flac, in any folders"
        raise DataError(folder, expected, "none", f"correct {option}=DIR")
    speakers = (path.stem.split("-")[0] for path in paths)
    return [Utterance(p.stem, "", s, option, p.absolute()) for p, s in zip(paths, speakers)]
