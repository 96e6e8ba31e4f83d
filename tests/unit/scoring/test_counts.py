from __future__ import annotations

import pytest

from privasr_k2.scoring.align import align
from privasr_k2.scoring.counts import ErrorCounts, count_errors, count_pairs, total


def test_a_hand_counted_example() -> None:
    # the->a, sat->None, None->down
    counts = count_errors(["the", "cat", "sat", "on", "it"], ["a", "cat", "on", "it", "down"])
    assert counts == ErrorCounts(hits=3, substitutions=1, insertions=1, deletions=1)
    assert (counts.errors, counts.ref_words, counts.hyp_words) == (3, 5, 5)
    assert counts.rate == pytest.approx(0.6)
    assert counts.percent == pytest.approx(60.0)


def test_rates_of_sums_are_not_averages_of_rates() -> None:
    short, long = count_errors(["a"], ["b"]), count_errors(["a"] * 9, ["a"] * 9)
    assert (short + long).rate == pytest.approx(0.1)
    assert sum([short, long]) == total([short, long]) == short + long


@pytest.mark.parametrize(("hyp", "insertions"), [([], 0), (["a", "b"], 2)])
def test_without_reference_words_there_is_no_rate(hyp: list[str], insertions: int) -> None:
    counts = count_errors([], hyp)
    assert counts == ErrorCounts(insertions=insertions)
    assert counts.rate is None
    assert counts.percent is None


def test_nothing_recognized_is_all_deleted() -> None:
    assert count_errors(["a", "b", "c"], []) == ErrorCounts(deletions=3)


def test_plain_values_and_back() -> None:
    counts = ErrorCounts(4, 3, 2, 1)
    assert counts.to_dict() == {"hits": 4, "substitutions": 3, "insertions": 2, "deletions": 1}
    assert ErrorCounts.from_dict(counts.to_dict()) == counts


def test_counts_come_from_the_alignment_that_is_shown() -> None:
    ref, hyp = ["a", "b", "a", "b"], ["b", "a", "b", "a"]
    pairs = align(ref, hyp)
    counts = count_pairs(pairs)
    assert counts.hits == sum(r == h for r, h in pairs)
    assert count_errors(ref, hyp) == counts


def test_negative_counts_and_other_values_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        ErrorCounts(hits=-1)
    with pytest.raises(TypeError):
        ErrorCounts() + 1  # type: ignore[operator]
