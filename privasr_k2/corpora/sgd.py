"""Schema-Guided Dialogue [Rastogi et al. 2020]: what users say to an assistant, with gold slots.

The folder holds ``train.jsonl.gz``, ``dev.jsonl.gz`` and ``test.jsonl.gz``, a dialogue a line:
``{"dialogue", "services", "turns": [{"text", "slots": [[start, end, slot], ...]}, ...]}``, places
in characters. A dialogue is a user of its own. Slots of :data:`NAMES` are gold entities. Text only;
``speech=synthetic`` has some users spoken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from privasr_k2.constraints import Checked, Positive, one_of
from privasr_k2.corpora import voices
from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.layouts import shown
from privasr_k2.corpora.spoken_numbers import spoken
from privasr_k2.corpora.spoken_part import SpokenPart
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data.problems import FORM, Problem, report
from privasr_k2.errors import DataError
from privasr_k2.fileio import parse_record, read_lines

if TYPE_CHECKING:
    from lhotse import CutSet

ROLES = ("train", "dev", "test")
_PEOPLE = "actors artist cast contact_name directed_by director doctor_name receiver recipient_name"
_PLACES = (
    "area city city_of_event destination destination_airport destination_city from from_city "
    "from_location location origin origin_airport origin_city pickup_city pickup_location to "
    "to_city to_location where_to"
)
_BUSINESSES = "dentist_name hotel_name property_name restaurant_name stylist_name theater_name"
NAMES = {
    **dict.fromkeys((*_PEOPLE.split(), "recipient_account_name", "starring"), "PER"),
    **dict.fromkeys(_PLACES.split(), "LOC"),
    **dict.fromkeys(_BUSINESSES.split(), "ORG"),
    **dict.fromkeys(("album", "movie_name", "song_name", "title"), "MISC"),
}
"""Slot -> class of its values. ``event_name`` is none: half of it is entries of a calendar."""


@dataclass(frozen=True)
class SgdConfig(Checked):
    """Settings of ``conf/corpora.yaml#sgd``; hours limit synthetic speech only."""

    speech: Annotated[str, one_of("none", "synthetic")]
    seed: int
    max_hours_train: Positive
    max_hours_dev: Positive
    max_hours_test: Positive
    conditions: voices.Ranges


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of ``train``, ``dev`` and ``test``."""
    from lhotse import CutSet

    options = given.settings(SgdConfig)
    cuts = {role: make_cuts(of_role) for role, of_role in utterances(given).items()}
    if options.speech == "none":
        return cuts
    hours = {role: getattr(options, f"max_hours_{role}") for role in ROLES}
    part = SpokenPart("sgd", hours, options.conditions, options.seed, whole_speakers=True)
    by_role = {role: [*of_role] for role, of_role in cuts.items()}
    spoken = part.speak(by_role, given.out_dir / "audio", given.num_jobs)
    return {role: CutSet.from_cuts(of_role) for role, of_role in spoken.items()}


def utterances(given: CorpusInput, most_users: int = 0) -> dict[str, Iterator[Utterance]]:
    """What users say, by role; of each role the first users alone where ``most_users`` is not 0.

    Raises:
        DataError: a missing file, or, where a role is read, its lines that are no dialogues.
    """
    folder = given.folder().absolute()
    if missing := [role for role in ROLES if not (folder / f"{role}.jsonl.gz").is_file()]:
        expected = f"train.jsonl.gz, dev.jsonl.gz and test.jsonl.gz, no {missing[0]}"
        raise DataError(folder, expected, shown(folder), "correct --corpus-dir")
    return {role: _turns(folder / f"{role}.jsonl.gz", role, most_users) for role in ROLES}


def _turns(path: Path, role: str, most_users: int) -> Iterator[Utterance]:
    problems: list[Problem] = []
    for number, line in islice(read_lines(path), most_users or None):
        place = f"{path}:{number}"
        dialogue = parse_record(line, place, way_out="mend the line")
        try:
            yield from _of_dialogue(dialogue, role, place)
        except (KeyError, TypeError, ValueError, IndexError):
            expected = '{"dialogue", "turns": [{"text", "slots": [[start, end, slot]]}]}'
            problems.append(Problem(place, expected, repr(line[:60]), FORM))
    report(problems, place=path, way_out="mend the lines")


def _of_dialogue(dialogue: dict[str, Any], role: str, place: str) -> Iterator[Utterance]:
    # An id of a dialogue may stand in several parts.
    user = f"{role}-{dialogue['dialogue']}"
    for turn, said in enumerate(dialogue["turns"]):
        text = str(said["text"])
        names = [(int(a), int(b), NAMES[slot]) for a, b, slot in said["slots"] if slot in NAMES]
        if CORPUS.normalize(text):
            custom = {"entities": entities(text, names), "document": user}
            yield Utterance(f"{user}-{turn:02d}", text, user, role, custom=custom, place=place)


def entities(text: str, names: Sequence[tuple[int, int, str]]) -> list[list[Any]]:
    """``[first, last_exclusive, class]`` in tokens of names whose places are characters.

    A token that a name touches belongs to it; of names that share tokens the first stays.

    Raises:
        ValueError: a place outside the text.

    >>> entities("Is it in San Jose?", [(9, 17, "LOC")])
    [[3, 5, 'LOC']]
    """
    tokens = [match.span() for match in re.finditer(r"\S+", text)]
    found: list[list[Any]] = []
    for start, end, label in sorted(names):
        if not 0 <= start < end <= len(text):
            raise ValueError(f"{start} to {end} of {len(text)} characters")
        first = sum(stop <= start for _, stop in tokens)
        last = sum(begin < end for begin, _ in tokens)
        if first < last and (not found or first >= found[-1][1]):
            found.append([first, last, label])
    return found


# Spoken figures are longer than their estimated duration allows.
CORPUS = Corpus(
    name="sgd",
    read=read,
    normalize=spoken,
    license="CC BY-SA 4.0",
    max_characters_per_second=1000.0,
)
