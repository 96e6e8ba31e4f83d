"""Scores of names in one part with their intervals, and the names of scored utterances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from privasr_k2 import randomness
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl
from privasr_k2.scoring.bootstrap import Interval, ratio_interval
from privasr_k2.scoring.entities import Entities, score_entities
from privasr_k2.scoring.entity_scores import ALL, OUTSIDE, EntityScore
from privasr_k2.scoring.name_errors import words_inside
from privasr_k2.scoring.results import UTTERANCES_FILE, ScoredUtterance, ScoreOptions

Ratios = Callable[[str], "tuple[Sequence[int], Sequence[int]]"]
"""Name of a class -> numerators and denominators of all speakers."""


def score_names(
    part: str, scored: Iterable[ScoredUtterance], entities: Entities, options: ScoreOptions
) -> EntityScore | None:
    """Count the words of entities in one part, with intervals over speakers.

    Returns:
        ``None`` where no utterance is annotated.

    Raises:
        DataError: as :func:`privasr_k2.scoring.entities.score_entities`.
    """
    scores = score_entities(((u.id, u.speaker, u.pairs) for u in scored), entities)
    return None if scores is None else with_intervals(part, scores, options)


def with_intervals(part: str, scores: EntityScore, options: ScoreOptions) -> EntityScore:
    """The same counts with intervals, all of them on the same draws of speakers."""
    words = scores.words_of_speakers()

    def recall(name: str) -> tuple[Sequence[int], Sequence[int]]:
        counts = scores.of_speakers(name)
        return [of.hits for of in counts], [of.ref_words for of in counts]

    def wer(name: str) -> tuple[Sequence[int], Sequence[int]]:
        counts = scores.errors_of(name)
        return [of.errors for of in counts], [of.ref_words for of in counts]

    def false_alarms(name: str) -> tuple[Sequence[int], Sequence[int]]:
        return [of.false_alarms for of in scores.of_speakers(name)], words

    def intervals(names: Iterable[str], ratios: Ratios) -> dict[str, Interval | None]:
        found = {}
        for name in names:
            numerators, denominators = ratios(name)
            found[name] = ratio_interval(
                np.array(numerators, dtype=np.int64),
                np.array(denominators, dtype=np.int64),
                randomness.stream(options.seed, "score", part),
                num_replicates=options.num_replicates,
                confidence=options.confidence,
            )
        return found

    names = (ALL, *scores.classes)
    return replace(
        scores,
        intervals=intervals(names, recall),
        error_intervals=intervals((*names, OUTSIDE), wer),
        false_alarm_intervals=intervals(names, false_alarms),
    )


def read_inside(folder: Path) -> dict[str, dict[str, list[bool] | None]]:
    """Whether each scored word lies inside a name: part -> id -> (U,).

    ``None`` stands for utterances that are not annotated, and for all of older results.

    Raises:
        DataError: the file is not what ``wer`` writes.
    """
    path = folder / UTTERANCES_FILE
    inside: dict[str, dict[str, list[bool] | None]] = {}
    for record in read_jsonl(path):
        try:
            spans, num_words = record.get("entities"), len(record["ref"].split())
            flags = None if spans is None else words_inside(spans, num_words)
            inside.setdefault(record["part"], {})[record["id"]] = flags
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            raise DataError(path, "what wer writes", repr(error), "run wer again") from error
    return inside
