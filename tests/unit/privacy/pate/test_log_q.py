from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfc

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.pate import log_q
from privasr_k2.privacy.pate.log_q import gnmax_log_q, lnmax_log_q, threshold_log_q

VOTES = np.random.default_rng(1).multinomial(60, [0.6, 0.2, 0.1, 0.1], size=500)


def gaps(votes: list[int]) -> list[int]:
    largest, *others = sorted(votes, reverse=True)
    return [largest - other for other in others]


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), min_size=2, max_size=6).filter(any), st.floats(1.0, 100.0))
def test_it_is_proposition_7_of_papernot2018(votes: list[int], sigma: float) -> None:
    direct = min(0.5 * sum(erfc(gap / (2 * sigma)) for gap in gaps(votes)), 1 - 1 / len(votes))
    found = gnmax_log_q([votes], sigma=sigma, discrete=False)[0]
    assert found == pytest.approx(np.log(direct), rel=1e-10)


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), min_size=2, max_size=6).filter(any), st.floats(0.5, 100.0))
def test_it_is_lemma_4_of_papernot2017(votes: list[int], scale: float) -> None:
    terms = [(2 + gap / scale) / (4 * np.exp(gap / scale)) for gap in gaps(votes)]
    direct = min(sum(terms), 1 - 1 / len(votes))
    found = lnmax_log_q([votes], scale=scale, discrete=False)[0]
    assert found == pytest.approx(np.log(direct), rel=1e-10)


def test_tiny_probabilities_do_not_vanish() -> None:
    # The tail of the normal distribution: log(exp(-x^2 / 2) / (x sqrt(2 pi))) for large x.
    x = 1000 / (5 * np.sqrt(2))
    tail = -(x**2) / 2 - np.log(x * np.sqrt(2 * np.pi))
    for votes, expected in (([1000, 0], tail), ([1000, 0, 0], tail + np.log(2))):
        found = gnmax_log_q([votes], sigma=5.0, discrete=False)[0]
        assert found == pytest.approx(expected, rel=1e-7)


def test_no_probability_exceeds_that_of_a_draw_by_lot() -> None:
    assert gnmax_log_q([[7] * 10], sigma=3.0, discrete=False)[0] == pytest.approx(np.log(0.9))
    assert lnmax_log_q([[7] * 10], scale=3.0, discrete=False)[0] == pytest.approx(np.log(0.9))


def test_blocks_and_table_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gnmax_log_q(VOTES, sigma=5.0, discrete=False)
    monkeypatch.setattr(log_q, "_BLOCK", 12)
    np.testing.assert_allclose(gnmax_log_q(VOTES, sigma=5.0, discrete=False), whole, rtol=1e-14)
    monkeypatch.setattr(log_q, "_LARGEST_TABLE", 3)
    np.testing.assert_allclose(gnmax_log_q(VOTES, sigma=5.0, discrete=False), whole, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64", "float32", "float64"])
def test_the_type_of_the_counts_does_not_matter(dtype: str) -> None:
    typed = VOTES.astype(dtype)
    found = [gnmax_log_q(votes, sigma=5.0, discrete=False) for votes in (typed, VOTES)]
    np.testing.assert_array_equal(*found)


def test_counts_near_the_end_of_their_type_do_not_overflow() -> None:
    narrow, wide = np.array([[127, 0, 127]], dtype=np.int8), [[127, 127, 0]]
    found = [gnmax_log_q(votes, sigma=20.0, discrete=False)[0] for votes in (narrow, wide)]
    assert found[0] == found[1]


def test_the_order_of_classes_does_not_matter() -> None:
    found = [gnmax_log_q(votes, sigma=5.0, discrete=False) for votes in (VOTES, VOTES[:, ::-1])]
    np.testing.assert_allclose(*found, rtol=1e-13)


def test_the_check_is_symmetric_about_the_threshold_and_at_most_a_half() -> None:
    found = threshold_log_q(np.array([60, 70, 80]), threshold=70, sigma=8.0, discrete=False)
    assert found[0] == found[2] < found[1]
    assert found[1] == pytest.approx(np.log(0.5))
    assert np.exp(found[0]) == pytest.approx(0.5 * erfc(10 / 8 / np.sqrt(2)))


@pytest.mark.parametrize(
    ("votes", "named"),
    [
        ([[3, 0], [0, 0]], r"votes\[1\]: expected at least one vote"),
        ([[3.5, 0]], r"votes\[0\]: expected whole numbers of votes"),
        ([[np.nan, 0]], r"votes\[0\]"),
        ([[3, -1]], r"votes\[0\]: expected counts of 0 or more"),
        ([3, 1], "shape"),
        (np.empty((0, 3)), "one query or more"),
        ([[3]], "two or more classes"),
        ([["a", "b"]], "whole numbers of votes"),
    ],
)
def test_bad_votes_are_refused(votes: list[list[object]], named: str) -> None:
    with pytest.raises(PrivacyError, match=named):
        gnmax_log_q(votes, sigma=1.0, discrete=False)
    with pytest.raises(PrivacyError, match=named):
        lnmax_log_q(votes, scale=1.0, discrete=False)


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan, np.inf, "1"])
def test_bad_noise_is_refused(noise: float) -> None:
    with pytest.raises(PrivacyError, match="sigma"):
        gnmax_log_q([[3, 0]], sigma=noise, discrete=False)
    with pytest.raises(PrivacyError, match="scale"):
        lnmax_log_q([[3, 0]], scale=noise, discrete=False)
    with pytest.raises(PrivacyError, match="sigma"):
        threshold_log_q(np.array([3]), threshold=2, sigma=noise, discrete=False)
    with pytest.raises(PrivacyError, match="threshold"):
        threshold_log_q(np.array([3]), threshold=np.nan, sigma=1.0, discrete=False)


def test_discrete_noise_is_as_continuous_noise_where_it_is_wide() -> None:
    # A gap that is closed exactly is half lost with continuous noise: half a vote further out.
    for gap in (0, 3, 40):
        votes, fewer = [gap + 40, 40], [max(gap - 1, 0) + 40, 40]
        [wide] = gnmax_log_q([votes], sigma=100.0, discrete=True)
        around = gnmax_log_q([votes, fewer], sigma=100.0, discrete=False)
        assert wide == pytest.approx(around.mean(), abs=1e-2)
        wide, narrow = (lnmax_log_q([votes], scale=100.0, discrete=d)[0] for d in (True, False))
        assert wide == pytest.approx(narrow, abs=1e-2)


def test_a_discrete_check_knows_only_whole_thresholds() -> None:
    def log_q(threshold: float) -> list[float]:
        found = threshold_log_q(np.arange(60, 81), threshold=threshold, sigma=8.0, discrete=True)
        return found.tolist()

    assert log_q(69.5) == log_q(70.0) != log_q(70.5)
    # Largest counts of 69 and 70 both need noise on one side of 0: equally unlikely to end up on
    # the other.
    assert log_q(70.0)[9] == log_q(70.0)[10] < np.log(0.5)
    assert log_q(70.0) == log_q(70.0 - 1e-9)
