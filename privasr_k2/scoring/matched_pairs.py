"""The matched-pairs sentence-segment test, MAPSSWE: do two systems differ?

Errors within an utterance depend on each other, because a wrong word spoils its neighbours. Two
words that both systems have right separate segments whose errors are taken as independent. With
errors ``a_i`` and ``b_i`` of the systems in segment i and ``d_i = a_i - b_i``,

    z = mean(d) / sqrt(variance(d) / n),    p = 2 (1 - Phi(|z|)),

variance with n - 1 below [gillick1989]. Segments in which both systems are right do not count.

NIST's sc_stats (2.4.10) gives the same segments, errors and z for the same alignments. Where all
differences are equal and not 0 it prints z = 0 and p = 1, and we give none; it looks p up in a
table, with z cut off after two decimals. sclite aligns with other costs (substitutions 4,
insertions and deletions 3), so that its alignments, and a few segments, may differ from ours.

[gillick1989] L. Gillick and S. J. Cox, Some statistical issues in the comparison of speech
recognition algorithms, ICASSP 1989.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from privasr_k2.scoring.align import Pair, align

MIN_CORRECT = 2
"""Words that both systems have right, one after the other, that end a segment."""


@dataclass(frozen=True)
class MatchedPairs:
    """The outcome of the test.

    Attributes:
        segments: segments with an error (n). The normal approximation is rough below about 50.
        errors_a, errors_b: errors of the first and of the second system in them.
        z: standardized mean difference; above 0 where the first system makes more errors. ``None``
            where the differences do not vary and are not all 0, or with fewer than two segments.
        p_value: two-sided, between 0 and 1; ``None`` as ``z``.
    """

    segments: int
    errors_a: int
    errors_b: int
    z: float | None
    p_value: float | None


def compare(
    refs: Iterable[Sequence[str]], hyps_a: Iterable[Sequence[str]], hyps_b: Iterable[Sequence[str]]
) -> MatchedPairs:
    """Test two systems on the same utterances.

    Raises:
        ValueError: not as many references as hypotheses.

    >>> refs = ["a b c d e f g".split()] * 2
    >>> result = compare(refs, ["a x c d e f y".split(), "a x c d e f g".split()], refs)
    >>> result.segments, result.errors_a, result.errors_b
    (3, 3, 0)
    """
    refs = list(refs)
    slots_a, slots_b = (
        [errors_by_slot(align(*pair)) for pair in zip(refs, hyps, strict=True)]
        for hyps in (hyps_a, hyps_b)
    )
    return compare_slots(slots_a, slots_b)


def compare_slots(
    slots_a: Iterable[Sequence[int]],
    slots_b: Iterable[Sequence[int]],
    counted_a: Iterable[Sequence[int]] | None = None,
    counted_b: Iterable[Sequence[int]] | None = None,
) -> MatchedPairs:
    """:func:`compare` with the (2U + 1,) errors of :func:`errors_by_slot` of each utterance.

    Args:
        slots_a, slots_b: all errors of the systems, which part segments.
        counted_a, counted_b: those of them that are tested, such as the errors of names, in as
            many slots; all of them where it is ``None``. Segments without one do not count.

    Raises:
        ValueError: not as many utterances, or slots in one, as the other.

    >>> slots = [0, 1, 0, 0, 0, 0, 0, 1, 0]
    >>> compare_slots([slots], [[0] * 9], [[0, 1, *[0] * 7]], [[0] * 9]).segments
    1
    """
    slots_a, slots_b = list(slots_a), list(slots_b)
    counted = (slots_a if counted_a is None else counted_a,
               slots_b if counted_b is None else counted_b)  # fmt: skip
    utterances = zip(slots_a, slots_b, *counted, strict=True)
    segments = [pair for slots in utterances for pair in _segments(*slots)]
    return mapsswe(np.array(segments, dtype=np.int64).reshape(-1, 2))


def segment_errors(pairs_a: Sequence[Pair], pairs_b: Sequence[Pair]) -> list[tuple[int, int]]:
    """Cut one utterance into segments and count both systems' errors in each.

    Returns:
        ``(errors_a, errors_b)`` for each segment where at least one of them is above 0.

    >>> ref = "a b c d".split()
    >>> segment_errors(align(ref, "x b c y".split()), align(ref, "a b c y".split()))
    [(1, 0), (1, 1)]
    >>> segment_errors(align(ref, "x b d".split()), align(ref, "a b c y".split()))
    [(2, 1)]
    """
    slots = errors_by_slot(pairs_a), errors_by_slot(pairs_b)
    return _segments(*slots, *slots)


def _segments(
    slots_a: Sequence[int],
    slots_b: Sequence[int],
    counted_a: Sequence[int],
    counted_b: Sequence[int],
) -> list[tuple[int, int]]:
    segments: list[tuple[int, int]] = []
    open_a = open_b = correct_words = 0
    slots = zip(slots_a, slots_b, counted_a, counted_b, strict=True)
    for slot, (errors_a, errors_b, of_a, of_b) in enumerate(slots):
        if errors_a == 0 and errors_b == 0:
            correct_words += slot % 2  # words stand at the odd slots
            continue
        if correct_words >= MIN_CORRECT and open_a + open_b:
            segments.append((open_a, open_b))
            open_a = open_b = 0
        open_a, open_b, correct_words = open_a + of_a, open_b + of_b, 0
    if open_a + open_b:
        segments.append((open_a, open_b))
    return segments


def errors_by_slot(pairs: Sequence[Pair]) -> list[int]:
    """Errors at 2U + 1 slots: before the first word, at it, before the next, ..., at the end."""
    slots = [0]
    for ref, hyp in pairs:
        if ref is None:
            slots[-1] += 1
        else:
            slots += [int(ref != hyp), 0]
    return slots


def mapsswe(errors: np.ndarray) -> MatchedPairs:
    """The test itself, on the (n, 2) errors of the two systems in n segments."""
    n = len(errors)
    errors_a, errors_b = (int(e) for e in errors.sum(axis=0)) if n else (0, 0)
    differences = errors[:, 0] - errors[:, 1]  # (n,)
    if not differences.any():
        return MatchedPairs(n, errors_a, errors_b, z=0.0, p_value=1.0)
    variance = float(differences.var(ddof=1)) if n > 1 else 0.0
    if variance == 0.0:
        return MatchedPairs(n, errors_a, errors_b, z=None, p_value=None)
    z = float(differences.mean()) / math.sqrt(variance / n)
    return MatchedPairs(n, errors_a, errors_b, z=z, p_value=math.erfc(abs(z) / math.sqrt(2.0)))
