from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.randomness import stream
from privasr_k2.scoring import bootstrap
from privasr_k2.scoring.bootstrap import (
    MIN_CLUSTERS,
    difference_of,
    difference_over_speakers,
    interval_over_speakers,
    ratio_difference,
    ratio_interval,
)
from privasr_k2.scoring.counts import ErrorCounts


def _speakers(errors: list[int], words: int = 100) -> list[ErrorCounts]:
    return [ErrorCounts(hits=words - e, substitutions=e) for e in errors]


def _interval(
    counts: list[ErrorCounts], seed: int = 1, replicates: int = 4000
) -> bootstrap.Interval:
    found = interval_over_speakers(
        counts, stream(seed, "t"), num_replicates=replicates, confidence=0.95
    )
    assert found is not None
    return found


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    speakers = _speakers(list(range(2, 40, 3)))
    assert _interval(speakers, 1) == _interval(speakers, 1)
    assert _interval(speakers, 1) != _interval(speakers, 2)


def test_it_agrees_with_the_normal_approximation_where_that_holds() -> None:
    # Equal words: the rate is a mean over speakers, whose standard error is known.
    errors = np.random.default_rng(3).binomial(100, 0.2, size=200)
    found = _interval(_speakers(errors.tolist()), replicates=10_000)
    mean, standard_error = errors.mean() / 100, errors.std() / 100 / np.sqrt(200)
    assert found.low == pytest.approx(mean - 1.96 * standard_error, abs=0.1 * standard_error)
    assert found.high == pytest.approx(mean + 1.96 * standard_error, abs=0.1 * standard_error)


def test_speakers_who_are_alike_leave_no_doubt() -> None:
    assert _interval(_speakers([7] * 6)) == bootstrap.Interval(0.07, 0.07, 0.95)


def test_six_speakers_with_words_are_drawn_from_and_five_are_not() -> None:
    assert MIN_CLUSTERS == 6
    five, silent = _speakers([3, 8, 1, 9, 4]), ErrorCounts(insertions=2)
    for counts in ([], five[:1], five, [*five, silent, silent]):
        assert interval_over_speakers(counts, stream(1), num_replicates=10, confidence=0.95) is None
    six = [*five, *_speakers([5])]
    found = _interval(six)
    assert 0.01 < found.low < 0.05 < found.high < 0.09
    draws = {"num_replicates": 999, "confidence": 0.95}
    other = _speakers([13, 18, 11, 19, 14, 15])
    assert difference_over_speakers(five, other[:5], stream(1), **draws) is None
    drawn = difference_over_speakers(six, other, stream(1), **draws)
    assert drawn is not None and (drawn.low, drawn.high) == pytest.approx((-0.1, -0.1))


def test_a_difference_of_five_has_a_value_and_no_p() -> None:
    differences, words = np.array([3, 1, 2, 4, 2, 0]), np.array([10, 10, 10, 10, 10, 50])
    draws = {"num_replicates": 999, "confidence": 0.95}
    six = ratio_difference(differences, words, stream(1, "d"), **draws)
    assert six is not None and six.value == pytest.approx(0.12)
    assert six.interval is not None and six.p_value is not None and six.p_value < 0.05
    for kept in (words[:5], words * [1, 1, 1, 1, 1, 0]):  # the sixth has nothing to draw
        few = ratio_difference(differences[: len(kept)], kept, stream(1, "d"), **draws)
        assert few is not None and few.value == pytest.approx(0.24)
        assert (few.interval, few.p_value) == (None, None)


def test_replicates_without_words_are_left_out() -> None:
    counts = [ErrorCounts(insertions=1)] * 9 + _speakers([10] * 6)
    found = _interval(counts, replicates=20_000)  # about 9 have no words
    assert np.isfinite([found.low, found.high]).all()


def test_blocks_of_draws_do_not_change_the_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    speakers = _speakers([1, 5, 9, 30, 12, 2])
    whole = _interval(speakers, replicates=101)
    monkeypatch.setattr(bootstrap, "_BLOCK", 18)
    assert _interval(speakers, replicates=101) == whole


@pytest.mark.parametrize(("replicates", "confidence"), [(0, 0.9), (10, 1.0), (10, 0.0)])
def test_impossible_options_are_refused(replicates: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="must"):
        interval_over_speakers(
            _speakers([1, 2]), stream(1), num_replicates=replicates, confidence=confidence
        )


def _difference(ours: list[int], theirs: list[int], seed: int = 1) -> bootstrap.Interval:
    both = (_speakers(ours), _speakers(theirs))
    found = difference_over_speakers(*both, stream(seed, "d"), num_replicates=4000, confidence=0.95)
    assert found is not None
    return found


def test_what_is_hard_for_both_systems_is_no_part_of_their_difference() -> None:
    theirs = list(range(2, 80, 3))
    ours = [e - 1 for e in theirs]
    found = _difference(ours, theirs)
    assert (found.low, found.high) == pytest.approx((-0.01, -0.01))
    apart = _interval(_speakers(ours))
    assert apart.high - apart.low > 0.1


def test_the_difference_the_other_way_round_has_the_other_sign() -> None:
    rng = np.random.default_rng(4)
    ours, theirs = rng.integers(0, 50, size=(2, 30)).tolist()
    there, back = _difference(ours, theirs), _difference(theirs, ours)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))


def test_a_difference_needs_the_same_words_of_the_same_speakers() -> None:
    options = {"num_replicates": 9, "confidence": 0.9}
    with pytest.raises(ValueError, match="same reference words"):
        difference_over_speakers(
            _speakers([1, 2]), _speakers([1, 2], 99), stream(1, "d"), **options
        )
    with pytest.raises(ValueError, match="same reference words"):
        difference_over_speakers(_speakers([1, 2]), _speakers([1, 2, 3]), stream(1, "d"), **options)
    one = _speakers([1])
    assert difference_over_speakers(one, one, stream(1, "d"), **options) is None


def test_the_interval_of_a_share_is_that_of_its_errors_turned_round() -> None:
    hits, words = np.array([9, 5, 7, 10, 3, 8]), np.array([10, 10, 20, 10, 5, 12])
    errors = [
        ErrorCounts(hits=int(h), deletions=int(w - h)) for h, w in zip(hits, words, strict=True)
    ]
    found = ratio_interval(hits, words, stream(1, "t"), num_replicates=999, confidence=0.9)
    mirrored = interval_over_speakers(errors, stream(1, "t"), num_replicates=999, confidence=0.9)
    assert found is not None and mirrored is not None
    assert (found.low, found.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low))
    assert (
        ratio_interval(
            hits, words * [0, 1, 1, 1, 1, 1], stream(1, "t"), num_replicates=9, confidence=0.9
        )
        is None
    )


def test_a_difference_has_the_p_value_of_its_draws() -> None:
    differences, words = np.array([3, -1, 2, 1, 0, -2]), np.array([10, 10, 20, 10, 5, 9])
    found = ratio_difference(
        differences, words, stream(3, "d"), num_replicates=2000, confidence=0.95
    )
    assert found is not None and found.value == pytest.approx(3 / 64)
    rng = np.random.default_rng(5)
    drawn = rng.integers(0, 6, size=(20_000, 6))
    rates = differences[drawn].sum(axis=1) / words[drawn].sum(axis=1)
    assert found.p_value == pytest.approx(2 * np.mean(rates <= 0), abs=0.03)
    assert found.interval.low == pytest.approx(np.quantile(rates, 0.025), abs=0.02)
    turned = ratio_difference(
        -differences, words, stream(3, "d"), num_replicates=2000, confidence=0.95
    )
    assert turned is not None and turned.p_value == found.p_value
    assert (
        ratio_difference(differences, words * 0, stream(3, "d"), num_replicates=9, confidence=0.95)
        is None
    )


def test_p_values_of_differences_are_above_0_and_at_most_1() -> None:
    assert difference_of(0.5, np.full(99, 0.5), 0.95).p_value == 0.02
    assert difference_of(0.0, np.zeros(99), 0.95).p_value == 1.0
    assert difference_of(0.1, np.array([-0.1, 0.1, 0.1]), 0.95).p_value == 1.0
    assert difference_of(0.1, np.repeat([-0.1, 0.1], [4, 95]), 0.95).p_value == 0.1
