from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from scipy.stats import norm

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.audit.intervals import clopper_pearson
from privasr_k2.privacy.audit.membership import at_low_fpr, auc_interval, roc

DELTA, CONFIDENCE = 1e-5, 1 - 1e-7


def _scores(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Projections of a noised sum on the directions of 20,000 members and of as many others."""
    noise = sigma * np.random.default_rng(6).normal(size=(2, 20_000))
    return 1 + noise[0], noise[1]


def test_sound_broken_and_without_noise() -> None:
    claim = get_epsilon_gaussian(2.0, DELTA)
    areas, points = [], []
    for sigma in (2.0, 0.2, 0.0):
        scores = _scores(sigma)
        areas.append(auc_interval(roc(*scores), confidence=CONFIDENCE))
        point = at_low_fpr(*scores, fpr=0.01, confidence=CONFIDENCE)
        assert point is not None
        points.append(point)
    # A private model: tpr <= e^claim fpr + delta.
    most = math.exp(claim) * points[0].fpr_high + DELTA
    assert points[0].tpr.low < most
    assert points[1].tpr.low > math.exp(claim) * points[1].fpr_high + DELTA
    assert points[2].true_positives == 20_000
    # The exact area of two normals one apart.
    exact = norm.cdf(1 / (2.0 * math.sqrt(2)))
    assert areas[0].low < exact < areas[0].high < areas[1].low
    assert areas[2].high == 1


def test_a_small_curve_by_hand() -> None:
    # Falling: member 4; member and non-member 3; non-member 2; member 1.
    curve = roc([4, 3, 1], [3, 2])
    np.testing.assert_array_equal(curve.thresholds, [np.inf, 4, 3, 2, 1])
    np.testing.assert_array_equal(curve.tpr, np.array([0, 1, 2, 2, 3]) / 3)
    np.testing.assert_array_equal(curve.fpr, np.array([0, 0, 1, 2, 2]) / 2)
    # Pairs: 4 beats both, 3 ties and beats, 1 loses both: (2 + 1.5 + 0) / 6.
    assert curve.auc == pytest.approx(3.5 / 6)


def test_infinite_scores_have_their_place() -> None:
    curve = roc([np.inf, np.inf, -np.inf], [np.inf, 0.0])
    np.testing.assert_array_equal(curve.thresholds, [np.inf, np.inf, 0.0, -np.inf])
    np.testing.assert_array_equal(curve.true_positives, [0, 2, 2, 3])
    np.testing.assert_array_equal(curve.false_positives, [0, 1, 2, 2])


def test_scores_that_tell_nothing_have_half_the_area() -> None:
    assert roc([1.0] * 7, [1.0] * 3).auc == 0.5


def test_the_interval_of_the_area_is_hoeffdings() -> None:
    found = auc_interval(roc(range(100), range(50)), confidence=0.95)
    width = math.sqrt(math.log(40) / 100)
    assert (found.low, found.high) == (0.75 - width, min(1.0, 0.75 + width))


def test_a_low_point_by_hand() -> None:
    members, others = np.arange(1000) + 0.5, np.arange(500.0)
    point = at_low_fpr(members, others, fpr=0.01, confidence=0.9)
    assert point is not None
    # Five of the 500 may exceed the threshold: 495 ... 499 do exceed 494.
    assert (point.threshold, point.false_positives, point.non_members) == (494, 5, 500)
    assert (point.true_positives, point.members) == (506, 1000)
    assert point.tpr == clopper_pearson(506, 1000, confidence=0.9)
    # One-sided at 0.1, as the upper end of a two-sided one at 0.2.
    assert point.fpr_high == pytest.approx(clopper_pearson(5, 500, confidence=0.8).high, rel=1e-12)


def test_no_point_where_there_are_too_few_non_members() -> None:
    members = np.arange(10_000.0)
    assert at_low_fpr(members, np.arange(999.0), fpr=0.001, confidence=0.95) is None
    point = at_low_fpr(members, np.arange(1000.0), fpr=0.001, confidence=0.95)
    assert point is not None
    assert point.false_positives == 1


def test_ties_among_non_members_are_no_false_positives() -> None:
    point = at_low_fpr([2.0, 1.0, 1.0], [1.0] * 50 + [0.0] * 50, fpr=0.1, confidence=0.95)
    assert point is not None
    assert (point.threshold, point.true_positives, point.false_positives) == (1.0, 1, 0)
    # The threshold was still chosen among the largest eleven.
    assert point.fpr_high == pytest.approx(clopper_pearson(10, 100, confidence=0.9).high, rel=1e-12)


@pytest.mark.parametrize(
    ("members", "others", "place"),
    [
        ([], [1.0], "member_scores"),
        ([1.0], [], "non_member_scores"),
        ([1.0, np.nan], [1.0], "member_scores[1]"),
        ([1.0], [np.nan], "non_member_scores[0]"),
        ([[1.0]], [1.0], "member_scores"),
        ([True], [1.0], "member_scores"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(
    members: object, others: object, place: str
) -> None:
    for measure in (
        lambda: roc(members, others),  # type: ignore[arg-type]
        lambda: at_low_fpr(members, others, fpr=0.1, confidence=0.95),  # type: ignore[arg-type]
    ):
        with pytest.raises(PrivacyError) as raised:
            measure()
        assert raised.value.place == place


@pytest.mark.parametrize(("fpr", "confidence"), [(0.0, 0.9), (1.0, 0.9), (0.1, 0.0), (0.1, 1.0)])
def test_impossible_options_are_refused(fpr: float, confidence: float) -> None:
    with pytest.raises(PrivacyError):
        at_low_fpr([1.0], [0.0], fpr=fpr, confidence=confidence)
