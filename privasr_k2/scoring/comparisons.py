"""Several systems on the same utterances: every pair tested, with p-values that allow for many tests.

Of m tests of systems that do not differ, one in twenty falls below 0.05 all the same. Holm's p-values
[holm1979] keep the chance that any equal pair is called different below the level, whatever the tests have to
do with each other. With the p-values in increasing order p_1 <= ... <= p_m,

    adjusted_i = min(1, max_{j <= i} (m - j + 1) p_j).

The family is every comparison of a table: all pairs of systems in all parts.

[holm1979] S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
Statistics 6, 1979.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.scoring.align import align
from privasr_k2.scoring.bootstrap import Interval, difference_over_speakers
from privasr_k2.scoring.matched_pairs import MatchedPairs, compare_slots, errors_by_slot
from privasr_k2.scoring.results import PartScore, Score, read_scored_words

Words = tuple[str, ...]
PartWords = Mapping[str, tuple[Words, Words]]
"""Id -> (reference, hypothesis) of one part."""

_SAME = "score both systems on the same data"


@dataclass(frozen=True)
class Comparison:
    """Two systems on one part.

    Attributes:
        first: index of a system among those that were compared.
        second: index of another, later one.
        part: its name.
        test: MAPSSWE, of the first against the second system.
        adjusted_p: Holm's p-value, ``None`` where the test has none.
        difference: error rate of the first system minus that of the second; ``None`` without reference words.
        interval: of that difference over speakers, both systems on the same draws; ``None`` where fewer than
            two speakers have reference words.
    """

    first: int
    second: int
    part: str
    test: MatchedPairs
    adjusted_p: float | None
    difference: float | None
    interval: Interval | None


def compare_all(scores: Sequence[Score]) -> tuple[Comparison, ...]:
    """Compare every pair of systems in every part.

    Args:
        scores: two or more, of the same role, scored with the same options.

    Returns:
        part by part, the pairs in the order of ``scores``.

    Raises:
        DataError: fewer than two systems, or other roles, parts, options, utterances, references or speakers.
    """
    if len(scores) < 2:
        raise DataError("--in-scores", "two or more folders that score wrote", str(len(scores)), "name more")
    for score in scores[1:]:
        _check_alike(score, scores[0])
    words = [read_scored_words(score.place) for score in scores]
    found = []
    for part in scores[0].parts:
        of_part = [of_system.get(part, {}) for of_system in words]
        for score, ours in zip(scores[1:], of_part[1:], strict=True):
            check_same_references(score, ours, scores[0], of_part[0], part)
        ids = list(of_part[0])
        slots = [[errors_by_slot(align(*of_system[name])) for name in ids] for of_system in of_part]
        for first, second in combinations(range(len(scores)), 2):
            found.append((first, second, part, compare_slots(slots[first], slots[second])))
    adjusted = holm([test.p_value for *_, test in found])
    return tuple(
        Comparison(a, b, part, test, p, *_difference(scores[a], scores[b], part))
        for (a, b, part, test), p in zip(found, adjusted, strict=True)
    )


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values, in the order given.

    Args:
        p_values: of the whole family. ``None``, a test without a p-value, counts as a comparison like any
            other, and stays ``None``.

    >>> [round(p, 3) for p in holm([0.03, 0.01, 0.02])]
    [0.04, 0.03, 0.04]
    >>> holm([0.03, None])
    [0.06, None]
    """
    values = np.array([1.0 if p is None else p for p in p_values])
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1.0)
    return [None if p is None else float(a) for p, a in zip(p_values, adjusted, strict=True)]


def check_same_references(score: Score, ours: PartWords, other: Score, theirs: PartWords, part: str) -> None:
    """Refuse to compare systems that were not scored on the same utterances with the same references.

    Raises:
        DataError: naming the folder of ``score``.
    """
    if {name: ref for name, (ref, _) in ours.items()} != {name: ref for name, (ref, _) in theirs.items()}:
        expected = f"the utterances and references of {other.place} in {part}"
        raise DataError(score.place, expected, "others", _SAME)


def _check_alike(score: Score, other: Score) -> None:
    ours, theirs = list(score.parts), list(other.parts)
    if (score.role, score.unit, ours) != (other.role, other.unit, theirs):
        expected = f"{other.unit}s of the role {other.role} in {', '.join(theirs)}, as {other.place}"
        found = f"{score.unit}s of the role {score.role} in {', '.join(ours)}"
        raise DataError(score.place, expected, found, _SAME)
    if score.options != other.options:
        expected = f"the options of {other.place}: {other.options}"
        raise DataError(score.place, expected, str(score.options), "score both systems with the same options")
    for part, result in score.parts.items():
        if _ref_words(result) != _ref_words(other.parts[part]):
            raise DataError(score.place, f"the speakers of {other.place} in {part}", "others", _SAME)


def _ref_words(result: PartScore) -> dict[str, int]:
    return {name: counts.ref_words for name, counts in result.speakers.items()}


def _difference(score: Score, other: Score, part: str) -> tuple[float | None, Interval | None]:
    ours, theirs = score.parts[part], other.parts[part]
    interval = difference_over_speakers(
        list(ours.speakers.values()),
        [theirs.speakers[name] for name in ours.speakers],
        stream(score.options.seed, "compare", part),
        num_replicates=score.options.num_replicates,
        confidence=score.options.confidence,
    )
    words = ours.counts.ref_words
    return (ours.counts.errors - theirs.counts.errors) / words if words else None, interval
