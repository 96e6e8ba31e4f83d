"""AMI's headset recordings through ``lhotse.recipes.prepare_ami``."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.ami_nxt import Timed, entity_times
from privasr_k2.corpora.lhotse_manifests import call_recipe, cuts_of
from privasr_k2.data.audio import read_headers
from privasr_k2.data.problems import Problem, report
from privasr_k2.text.normalize import normalize_english

if TYPE_CHECKING:
    from lhotse import CutSet, SupervisionSegment

HEADSETS = "*.Headset-?.wav"
_MARK = "zero or negative duration"
_SLACK = 1e-3
"""Seconds; lhotse rounds the times of words."""
_PARTITION = "full-corpus-asr"

log = logging.getLogger(__name__)


def headset_cuts(
    raw_dir: Path, annotations: Path, headsets: Sequence[Path], num_jobs: int
) -> CutSet:
    """A cut for each sentence of a segment; ``part`` is train, dev or test.

    Args:
        raw_dir: holds the audio.
        annotations: the manual annotations, read before without a problem.
        headsets: the files of ``raw_dir`` that :data:`HEADSETS` matches.

    Raises:
        DataError: unreadable audio, or what lhotse would mistake or fail on.
    """
    from lhotse import CutSet
    from lhotse.recipes import prepare_ami

    problems = [*_audio_problems(raw_dir, headsets, num_jobs), *_stray_files(annotations)]
    report(problems, place=raw_dir, way_out="complete the download, or choose --set speech=none")
    logging.getLogger().addFilter(_is_no_mark)
    try:
        manifests = call_recipe(
            prepare_ami, raw_dir, annotations, partition=_PARTITION, normalize_text="none"
        )
    finally:
        logging.getLogger().removeFilter(_is_no_mark)
    entities = entity_times(annotations)
    made = []
    for part, of_part in manifests.items():
        for supervision in of_part["supervisions"]:
            key = (supervision.recording_id, supervision.channel)
            if key in entities:
                supervision.custom = {"entities": _spans(supervision, entities[key])}
        made += [c for c in cuts_of(of_part, part) if normalize_english(c.supervisions[0].text)]
    return CutSet.from_cuts(made)


def _is_no_mark(record: logging.LogRecord) -> bool:
    """Punctuation marks, which lhotse leaves out, each with a warning: they last no time."""
    return _MARK not in record.getMessage()


def _audio_problems(raw_dir: Path, headsets: Sequence[Path], num_jobs: int) -> list[Problem]:
    from lhotse.recipes.ami import PARTITIONS

    problems, numbers = [], defaultdict(list)
    for path, header in read_headers(headsets, num_jobs).items():
        if header.problem is not None:
            problems.append(Problem(str(path), "audio", header.problem))
        elif header.num_channels != 1:
            problems.append(Problem(str(path), "one channel", str(header.num_channels)))
        numbers[path.parent.parent].append(int(path.stem[-1]))
    for folder, there in numbers.items():
        # lhotse counts the files that are there, and takes the count for the headset's number.
        if sorted(there) != [*range(len(there))]:
            expected = f"headsets 0 to {max(there)} in audio/"
            problems.append(Problem(str(folder), expected, " ".join(map(str, sorted(there)))))
    for part, meetings in PARTITIONS[_PARTITION].items():
        if not {folder.name for folder in numbers} & {*meetings}:
            expected = f"headsets of a meeting of {part}, such as {meetings[0]}"
            problems.append(Problem(str(raw_dir), expected, "none"))
    return problems


def _stray_files(annotations: Path) -> list[Problem]:
    return [
        Problem(str(path), f"only MEETING.AGENT.{name}.xml in {name}/", path.name)
        for name in ("segments", "words")
        for path in sorted((annotations / name).iterdir())
        if path.name.count(".") != 3 or not path.name.endswith(f".{name}.xml")
    ]


def _spans(supervision: SupervisionSegment, entities: Sequence[Timed]) -> list[list]:
    """``[first, last_exclusive, label]`` of the entities inside, in tokens of the text."""
    first, last = supervision.start - _SLACK, supervision.end + _SLACK
    spans = []
    for start, end, label in entities:
        places = [
            number
            for number, word in enumerate(supervision.alignment["word"])
            if start - _SLACK <= word.start and word.end <= end + _SLACK
        ]
        if places and first <= start and end <= last:
            spans.append([places[0], places[-1] + 1, label])
    return spans
