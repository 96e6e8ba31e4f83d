from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.scoring.align import align
from privasr_k2.scoring.matched_pairs import (
    MatchedPairs,
    compare,
    compare_slots,
    errors_by_slot,
    mapsswe,
    segment_errors,
)


def _segments(ref: str, hyp_a: str, hyp_b: str) -> list[tuple[int, int]]:
    words = ref.split()
    return segment_errors(align(words, hyp_a.split()), align(words, hyp_b.split()))


@pytest.mark.parametrize(
    ("ref", "hyp_a", "hyp_b", "expected"),
    [
        ("a b c d e", "a b c d e", "a b c d e", []),
        ("a b c d", "x b d", "a b c d", [(2, 0)]),  # one right word between: one segment
        ("a b c d", "x b c y", "a b c d", [(1, 0), (1, 0)]),  # two right words between: two
        ("a b c d", "x b c y", "a z c d", [(2, 1)]),  # the other system is wrong between: one
        ("a b c d", "x b q c y", "a b c d", [(3, 0)]),  # an insertion parts the two right words
        ("a b c d", "q a b c d q", "a b c d", [(1, 0), (1, 0)]),  # insertions at both ends
        ("a b", "q a b q", "a b", [(1, 0), (1, 0)]),  # two right words are enough
        ("a", "q a q", "a", [(2, 0)]),  # one is not
        ("", "q", "q r", [(1, 2)]),
        ("", "", "", []),
    ],
)
def test_segments(ref: str, hyp_a: str, hyp_b: str, expected: list[tuple[int, int]]) -> None:
    assert _segments(ref, hyp_a, hyp_b) == expected
    assert _segments(ref, hyp_b, hyp_a) == [(b, a) for a, b in expected]


def test_a_hand_computed_p_value() -> None:
    # d = 1 1 1 0: mean 3/4, variance 1/4, z = 0.75 / sqrt(0.25 / 4) = 3; 2 (1 - Phi(3)) = 0.0026998
    result = mapsswe(np.array([[1, 0], [2, 1], [1, 0], [1, 1]]))
    assert (result.segments, result.errors_a, result.errors_b) == (4, 5, 2)
    assert result.z == pytest.approx(3.0)
    assert result.p_value == pytest.approx(0.0026998, abs=1e-7)


def test_the_order_of_the_systems_changes_the_sign_only() -> None:
    errors = np.random.default_rng(1).integers(0, 4, size=(60, 2))
    there, back = mapsswe(errors), mapsswe(errors[:, ::-1])
    assert there.p_value == back.p_value
    assert there.z is not None
    assert back.z is not None
    assert there.z == -back.z


def test_a_system_compared_with_itself_is_no_different() -> None:
    ref, hyp = ["a", "b", "c", "d"], ["a", "x", "c", "d"]
    assert compare([ref], [hyp], [hyp]) == MatchedPairs(1, 1, 1, z=0.0, p_value=1.0)
    assert compare([], [], []) == MatchedPairs(0, 0, 0, z=0.0, p_value=1.0)


@pytest.mark.parametrize("errors", [[[1, 0]], [[1, 0], [1, 0]]])
def test_without_variance_there_is_no_p_value(errors: list[list[int]]) -> None:
    result = mapsswe(np.array(errors))
    assert result.z is None
    assert result.p_value is None


def test_equal_systems_are_called_different_as_rarely_as_promised() -> None:
    rng = np.random.default_rng(5)
    p_values = [mapsswe(rng.poisson(1.5, size=(80, 2))).p_value for _ in range(1000)]
    rejected = np.mean([p is not None and p < 0.05 for p in p_values])
    assert 0.03 < rejected < 0.075


def test_every_utterance_needs_both_hypotheses() -> None:
    with pytest.raises(ValueError, match="zip"):
        compare([["a"]], [["a"]], [])


@pytest.mark.parametrize("seed", range(10))
def test_errors_that_are_not_tested_still_part_segments(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ref, slots, counted = list("abcdefghij"), [], []
    for _ in range(2):
        errors = [errors_by_slot(align(ref, [w for w in ref if generator.random() < 0.7]))
                  for _ in range(20)]  # fmt: skip
        slots.append(errors)
        counted.append([[e * int(generator.integers(2)) for e in of] for of in errors])
    found = compare_slots(*slots, *counted)
    expected = []
    for a, b, of_a, of_b in zip(*slots, *counted, strict=True):
        wrong = [n for n in range(len(a)) if a[n] or b[n]]
        runs: list[list[int]] = []
        for n in wrong:
            right = sum(m % 2 for m in range(runs[-1][-1] + 1, n)) if runs else 0
            if not runs or right >= 2:
                runs.append([])
            runs[-1].append(n)
        expected += [(sum(of_a[n] for n in run), sum(of_b[n] for n in run)) for run in runs]
    expected = [pair for pair in expected if any(pair)]
    assert found == mapsswe(np.array(expected).reshape(-1, 2))
    assert found.segments < compare_slots(*slots).segments
