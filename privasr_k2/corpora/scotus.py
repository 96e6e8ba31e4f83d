"""Oral arguments before the Supreme Court of the United States: text of thousands of speakers.

The folder holds ``adapt.tsv.gz``, ``dev.tsv.gz`` and ``test.tsv.gz`` with the columns speaker,
hearing and text (a turn). The parts have other people and other hearings. A client of federated
training is a speaker. Names are as transcribed: a few people stand under two spellings, and a
guarantee then holds for each spelling. Text only; ``speech=synthetic`` has some people spoken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from privasr_k2.constraints import Checked, Positive, one_of
from privasr_k2.corpora import voices
from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.layouts import shown
from privasr_k2.corpora.spoken_numbers import spoken
from privasr_k2.corpora.spoken_part import SpokenPart
from privasr_k2.corpora.utterances import Utterance, make_cuts, split_turn
from privasr_k2.data.problems import FORM, Problem, report
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    from lhotse import CutSet

_ROLES = ("adapt", "dev", "test")
_COLUMNS = ("speaker", "hearing", "text")


@dataclass(frozen=True)
class ScotusConfig(Checked):
    """Settings of ``conf/corpora.yaml#scotus``; hours limit synthetic speech only."""

    speech: Annotated[str, one_of("none", "synthetic")]
    seed: int
    max_hours_adapt: Positive
    max_hours_dev: Positive
    max_hours_test: Positive
    conditions: voices.Ranges


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of ``adapt``, ``dev`` and ``test``."""
    from lhotse import CutSet

    folder, options = given.folder().absolute(), given.settings(ScotusConfig)
    if missing := [role for role in _ROLES if not (folder / f"{role}.tsv.gz").is_file()]:
        expected = "adapt.tsv.gz, dev.tsv.gz and test.tsv.gz"
        raise DataError(
            folder, f"{expected}, no {missing[0]}", shown(folder), "correct --corpus-dir"
        )
    cuts = {role: make_cuts(_pieces(folder / f"{role}.tsv.gz", role)) for role in _ROLES}
    if options.speech == "none":
        return cuts
    hours = {role: getattr(options, f"max_hours_{role}") for role in _ROLES}
    part = SpokenPart("scotus", hours, options.conditions, options.seed, whole_speakers=True)
    by_role = {role: [*of_role] for role, of_role in cuts.items()}
    spoken = part.speak(by_role, given.out_dir / "audio", given.num_jobs)
    return {role: CutSet.from_cuts(of_role) for role, of_role in spoken.items()}


def _pieces(path: Path, role: str) -> Iterator[Utterance]:
    """Turns, cut at punctuation where they are longer than some 15 s."""
    problems: list[Problem] = []
    for number, line in read_lines(path):
        place, row = f"{path}:{number}", line.split("\t")
        if number == 1 and tuple(row) == _COLUMNS:
            continue
        if number == 1 or len(row) != len(_COLUMNS) or not all(row):
            expected = f"the columns {' '.join(_COLUMNS)}"
            problems.append(Problem(place, expected, repr(line[:60]), FORM))
            continue
        speaker, hearing, text = row
        for piece, tokens in enumerate(split_turn(text.split())):
            words = " ".join(tokens)
            if CORPUS.normalize(words):
                identity = f"{speaker}-{hearing}-{number:05d}-{piece:02d}"
                custom = {"document": hearing}
                yield Utterance(identity, words, speaker, role, custom=custom, place=place)
    report(problems, place=path, way_out="mend the table")


# Spoken figures are longer than their estimated duration allows.
CORPUS = Corpus(
    name="scotus",
    read=read,
    normalize=spoken,
    license="CC BY-NC 4.0 (Oyez)",
    max_characters_per_second=1000.0,
    needed_roles=("adapt", "dev", "test"),
)
