"""Which word errors are those of names."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.scoring.align import Pair, align
from privasr_k2.scoring.counts import ErrorCounts, count_pairs
from privasr_k2.scoring.matched_pairs import errors_by_slot
from privasr_k2.scoring.name_errors import divide, inside_slots, spans_of, words_inside


def _slow(pairs: tuple[Pair, ...], inside: list[bool]) -> tuple[ErrorCounts, ErrorCounts]:
    """The definition, pair by pair, with the reference words beside each insertion looked for."""
    counts = {True: ErrorCounts(), False: ErrorCounts()}
    words = [n for n, (ref, _) in enumerate(pairs) if ref is not None]
    for at, pair in enumerate(pairs):
        if pair[0] is not None:
            lies = inside[words.index(at)]
        else:
            before = max((n for n in words if n < at), default=None)
            behind = min((n for n in words if n > at), default=None)
            beside = [n for n in (before, behind) if n is not None]
            named = [n for n in beside if inside[words.index(n)]]
            wrong = [n for n in named if pairs[n][0] != pairs[n][1]]
            lies = len(named) == 2 or bool(wrong)
        counts[lies] += count_pairs([pair])
    return counts[True], counts[False]


@pytest.mark.parametrize("seed", range(20))
def test_both_kinds_of_errors_are_those_of_the_definition_and_add_up(seed: int) -> None:
    generator = np.random.default_rng(seed)
    letters = list("abcd")
    ref, hyp = (generator.choice(letters, generator.integers(0, 12)).tolist() for _ in range(2))
    inside = (generator.random(len(ref)) < 0.5).tolist()
    pairs = align(ref, hyp)
    found = tuple(count_pairs(of) for of in divide(pairs, inside))
    assert found == _slow(pairs, inside)
    assert found[0] + found[1] == count_pairs(pairs)
    slots = zip(errors_by_slot(pairs), inside_slots(pairs, inside), strict=True)
    assert sum(errors for errors, lies in slots if lies) == found[0].errors


def test_another_number_of_words_is_refused() -> None:
    with pytest.raises(ValueError, match="3 words inside or outside names, but 1 words"):
        inside_slots([("a", "a")], [True, False, True])


def test_spans_tell_which_words_lie_inside() -> None:
    classes = [{"PER"}, set(), {"ORG", "LOC"}, {"ORG"}]
    spans = spans_of(classes)
    assert spans == [(0, 1, "PER"), (2, 3, "LOC"), (2, 4, "ORG")]
    assert words_inside(spans, 4) == [bool(of) for of in classes]
    assert spans_of([set(), set()]) == [] and words_inside([], 2) == [False, False]
