"""Which systems of recipe ``classlm`` are compared, and the tests.

Every system with M1 of sanitized text; M1 to M4 of sanitized text with those of original text; within a
setting M2 with M1; an adapted model with the same one that was not adapted, and with the one that had the
same text from the beginning; an exact mixture with the static one of the same models; the mixture of all with
every other system that sees as much original text as it or less: those of sanitized text, of the smallest
adaptation text, and mixed.
Error rates are compared by MAPSSWE, the recall of entities of M2 with that of M1 by drawing speakers again.
Holm's correction is over all comparisons by MAPSSWE, and over all of the recall.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.scoring.bootstrap import (
    Difference,
    Interval,
    difference_of,
    difference_over_speakers,
    ratio_difference,
    speaker_draws,
)
from privasr_k2.scoring.classlm_results import (
    ADAPT,
    DIRECT,
    MIXED,
    ORIGINAL,
    SANITIZED,
    Measured,
    System,
    setting_of,
)
from privasr_k2.scoring.comparisons import holm
from privasr_k2.scoring.entities import ALL
from privasr_k2.scoring.matched_pairs import MatchedPairs, compare_slots

Pair = tuple[System, System]
BASE = System(SANITIZED, "M1")
BEST = System(MIXED, "M1_M2_M4")


@dataclass(frozen=True)
class Tested:
    """Two systems' error rates.

    Attributes:
        test: MAPSSWE, of the first against the second system.
        adjusted_p: Holm's p-value; ``None`` where the test has none.
        difference: error rate of the first minus that of the second; ``None`` without reference words.
        interval: of the difference over speakers.
    """

    test: MatchedPairs
    adjusted_p: float | None
    difference: float | None
    interval: Interval | None


@dataclass(frozen=True)
class RecallTested:
    """Two systems' recall of entities: the difference, its p-value before and after Holm's correction."""

    found: Difference
    adjusted_p: float | None


def smallest_size(systems: Collection[System]) -> float:
    """The smallest adaptation in per cent; 0 where there is none."""
    return min((system.size for system in systems if system.kind == ADAPT), default=0.0)


def rivals(systems: Collection[System]) -> list[System]:
    """What the mixture of all is to be better than: what sees as much original text or less."""
    size = smallest_size(systems)
    kept = (SANITIZED, MIXED, setting_of(ADAPT, size), setting_of(DIRECT, size))
    return [system for system in systems if system.setting in kept and system != BEST]


def word_and_class(systems: Collection[System]) -> list[Pair]:
    """(M2, M1) of each setting, adapted by the same equation."""
    classes = sorted((system for system in systems if system.model == "M2"), key=lambda system: system.order)
    pairs = [(system, system._replace(name=system.name.replace("M2", "M1", 1))) for system in classes]
    return [pair for pair in pairs if pair[1] in systems]


def exact_and_static(systems: Collection[System]) -> list[Pair]:
    """(exact mixture, static mixture of the same models, measured or not)."""
    pairs = [(system, system._replace(name=system.one_pass)) for system in systems]
    return sorted((pair for pair in pairs if pair[0] != pair[1]), key=lambda pair: pair[0].order)


def pairs_of(systems: Collection[System]) -> list[Pair]:
    """All pairs to compare, each once, sorted as the systems are."""
    wanted: list[Pair] = [(system, BASE) for system in systems]
    for system in systems:
        plain = system.model
        if system.kind == SANITIZED:
            wanted.append((system, System(ORIGINAL, plain)))
        if system.kind == ADAPT:
            wanted.append((system, System(SANITIZED, plain)))
            wanted.append((system, System(setting_of(DIRECT, system.size), plain)))
    wanted += word_and_class(systems) + exact_and_static(systems)
    if BEST in systems:
        wanted += [(BEST, system) for system in rivals(systems)]
    found: dict[frozenset[System], Pair] = {}
    for first, second in sorted(wanted, key=lambda pair: (pair[0].order, pair[1].order)):
        if first != second and second in systems:
            found.setdefault(frozenset((first, second)), (first, second))
    return list(found.values())


def compare_rates(systems: Mapping[System, Measured]) -> dict[Pair, Tested]:
    """MAPSSWE for all pairs."""
    tests = {}
    for first, second in pairs_of(systems):
        ours, theirs = systems[first].slots, systems[second].slots
        tests[first, second] = compare_slots(ours.values(), (theirs[name] for name in ours))
    adjusted = holm([test.p_value for test in tests.values()])
    return {
        pair: Tested(test, p, *_difference(systems[pair[0]], systems[pair[1]]))
        for (pair, test), p in zip(tests.items(), adjusted, strict=True)
    }


def _difference(ours: Measured, theirs: Measured) -> tuple[float | None, Interval | None]:
    a, b, options = ours.result, theirs.result, ours.score.options
    if list(a.speakers) != list(b.speakers):
        raise DataError(ours.score.place, f"the speakers of {theirs.score.place}", "others", "score again")
    interval = difference_over_speakers(
        list(a.speakers.values()),
        list(b.speakers.values()),
        stream(options.seed, "compare", "classlm"),
        num_replicates=options.num_replicates,
        confidence=options.confidence,
    )
    words = a.counts.ref_words
    return (a.counts.errors - b.counts.errors) / words if words else None, interval


def compare_recall(systems: Mapping[System, Measured]) -> dict[Pair, RecallTested]:
    """The recall of entities of all classes, M2 against M1; nothing where speakers were not counted apart."""
    found: dict[Pair, Difference] = {}
    for first, second in word_and_class(systems):
        ours, theirs = systems[first].result.entities, systems[second].result.entities
        if ours is None or theirs is None or not (ours.speakers and theirs.speakers):
            continue
        options, place = systems[first].score.options, systems[first].score.place
        a, b = ours.of_speakers(ALL), theirs.of_speakers(ALL)
        words = [counts.ref_words for counts in a]
        if list(ours.speakers) != list(theirs.speakers) or [c.ref_words for c in b] != words:
            raise DataError(place, f"the entities of {systems[second].score.place}", "others", "score again")
        difference = ratio_difference(
            np.array([x.hits - y.hits for x, y in zip(a, b, strict=True)], dtype=np.int64),
            np.array(words, dtype=np.int64),
            stream(options.seed, "recall", "classlm"),
            num_replicates=options.num_replicates,
            confidence=options.confidence,
        )
        if difference is not None:
            found[first, second] = difference
    adjusted = holm([difference.p_value for difference in found.values()])
    return {
        pair: RecallTested(difference, p)
        for (pair, difference), p in zip(found.items(), adjusted, strict=True)
    }


def increase_difference(systems: Mapping[System, Measured]) -> Difference | None:
    """How much more sanitizing adds to the errors of M1 than to those of M2, on the same draws of speakers.

    The value is E(M1, sanitized) / E(M1, original) - E(M2, sanitized) / E(M2, original), E the errors.

    Returns:
        ``None`` where one of the four is missing or without errors, or there are fewer than two speakers.
    """
    four = [System(setting, model) for model in ("M1", "M2") for setting in (SANITIZED, ORIGINAL)]
    if any(system not in systems for system in four):
        return None
    speakers = [systems[system].result.speakers for system in four]
    options = systems[BASE].score.options
    errors = np.array(
        [[of[name].errors for of in speakers] for name in speakers[0]], dtype=np.int64
    )  # (S, 4)
    if len(errors) < 2 or not errors.sum(axis=0)[[1, 3]].all():
        return None
    rng = stream(options.seed, "increase", "classlm")
    sums = np.concatenate(
        [drawn @ errors for drawn in speaker_draws(len(errors), rng, options.num_replicates)]
    )
    sums = sums[(sums[:, 1] > 0) & (sums[:, 3] > 0)]
    if not len(sums):
        return None
    [value] = _increases(errors.sum(axis=0, keepdims=True))
    return difference_of(float(value), _increases(sums), options.confidence)


def _increases(sums: np.ndarray) -> np.ndarray:
    return sums[:, 0] / sums[:, 1] - sums[:, 2] / sums[:, 3]
