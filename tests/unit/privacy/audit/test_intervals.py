from __future__ import annotations

import math

import numpy as np
import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit.intervals import (
    bound_from_counts,
    clopper_pearson,
    epsilon_lower,
    lower_end,
    upper_end,
)

COUNTS = {
    "true_positives": 30, "positives": 40, "false_positives": 5, "negatives": 50,
    "delta": 1e-5, "confidence": 0.95, "method": "fixed rule",
}  # fmt: skip


def test_ends_without_a_success_and_without_a_failure() -> None:
    assert lower_end(0, 10, error=0.05) == 0
    assert upper_end(10, 10, error=0.05) == 1
    # (1 - high)^10 = 0.05 and low^10 = 0.05
    assert upper_end(0, 10, error=0.05) == pytest.approx(1 - 0.05**0.1, rel=1e-12)
    assert lower_end(10, 10, error=0.05) == pytest.approx(0.05**0.1, rel=1e-12)


def test_successes_and_failures_change_places() -> None:
    k = np.arange(21)
    low, high = lower_end(k, 20, error=0.01), upper_end(20 - k, 20, error=0.01)
    np.testing.assert_allclose(low, 1 - high, rtol=0, atol=1e-14)


def test_two_sided_intervals() -> None:
    # 10 of 100 at 95 %: (4.90 %, 17.62 %), as in any table of exact binomial limits.
    found = clopper_pearson(10, 100, confidence=0.95)
    assert (round(found.low, 4), round(found.high, 4)) == (0.049, 0.1762)
    # Each end has half of the error.
    found = clopper_pearson(3, 20, confidence=0.9)
    assert found.low == lower_end(3, 20, error=0.05)
    assert found.high == pytest.approx(float(upper_end(3, 20, error=0.05)), rel=1e-12)


def test_a_perfect_rule_by_hand() -> None:
    # Both ends at an error of 0.025: tpr_low = 0.025^(1/n), fpr_high = 1 - 0.025^(1/n).
    counts = {"true_positives": 100, "positives": 100, "false_positives": 0, "negatives": 100}
    found = bound_from_counts(**COUNTS | counts | {"delta": 0.01})  # type: ignore[arg-type]
    end = 0.025**0.01
    assert found.epsilon_lower == pytest.approx(math.log((end - 0.01) / (1 - end)), rel=1e-12)
    assert found.largest_possible == found.epsilon_lower
    assert found.trials == 200


def test_the_opposite_answer_shows_as_much() -> None:
    # Never a false positive among few, always among many: "not there" is the telling answer.
    setting = {"positives": 1000, "negatives": 1000, "delta": 0.0, "confidence": 0.95}
    one = epsilon_lower(500, 10, **setting)
    other = epsilon_lower(1000 - 10, 1000 - 500, **setting)
    assert one == pytest.approx(float(other), rel=1e-12)
    assert one > 3


def test_what_could_have_been_shown_does_not_depend_on_what_was() -> None:
    poor = bound_from_counts(**(COUNTS | {"true_positives": 0, "false_positives": 50}))  # type: ignore[arg-type]
    best = bound_from_counts(**(COUNTS | {"true_positives": 40, "false_positives": 0}))  # type: ignore[arg-type]
    assert poor.epsilon_lower == 0
    assert poor.largest_possible == best.largest_possible == best.epsilon_lower


def test_a_rule_that_is_worse_than_guessing_shows_nothing() -> None:
    setting = {"positives": 50, "negatives": 50, "delta": 0.0, "confidence": 0.95}
    found = epsilon_lower(np.array([0, 10, 50]), np.array([50, 40, 50]), **setting)
    assert not found.any()


def test_a_large_delta_leaves_nothing() -> None:
    found = bound_from_counts(**(COUNTS | {"delta": 0.9}))  # type: ignore[arg-type]
    assert found.epsilon_lower == 0


def test_more_confidence_or_delta_never_shows_more() -> None:
    def bound(**changed: float) -> float:
        return bound_from_counts(**(COUNTS | changed)).epsilon_lower  # type: ignore[arg-type]

    by_confidence = [bound(confidence=c) for c in (0.5, 0.9, 0.99, 0.9999, 1 - 1e-9)]
    by_delta = [bound(delta=d) for d in (0.0, 1e-5, 0.01, 0.1, 0.5)]
    assert by_confidence == sorted(by_confidence, reverse=True)
    assert by_delta == sorted(by_delta, reverse=True)
    assert by_confidence[0] > by_confidence[-1]
    assert by_delta[0] > by_delta[-1]


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"positives": 0, "true_positives": 0}, "positives"),
        ({"negatives": 0, "false_positives": 0}, "negatives"),
        ({"true_positives": 41}, "true_positives"),
        ({"false_positives": 51}, "false_positives"),
        ({"true_positives": -1}, "true_positives"),
        ({"true_positives": 3.0}, "true_positives"),
        ({"delta": -1e-9}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 95}, "confidence"),
    ],
)
def test_counts_that_do_not_fit_are_refused(changed: dict[str, object], place: str) -> None:
    with pytest.raises(PrivacyError) as raised:
        bound_from_counts(**(COUNTS | changed))  # type: ignore[arg-type]
    assert raised.value.place == place


def test_an_interval_of_no_trials_is_refused() -> None:
    with pytest.raises(PrivacyError, match=r"^trials"):
        clopper_pearson(0, 0, confidence=0.95)
    with pytest.raises(PrivacyError, match=r"^successes"):
        clopper_pearson(2, 1, confidence=0.95)
