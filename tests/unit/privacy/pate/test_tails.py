from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.pate import tails

NOISES = [0.05, 0.3, 1.0, 7.5, 300.0]
DISCRETE = [tails.discrete_gaussian, tails.discrete_laplace, tails.discrete_gaussian_alone]
ALL = [tails.gaussian, tails.laplace, *DISCRETE]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("make", DISCRETE)
def test_both_sides_of_a_whole_number_add_up_to_1(
    make: Callable[..., tails.LogTail], noise: float
) -> None:
    # P[d >= 0] + P[d >= 1] = P[d >= 0] + P[d <= -1].
    assert np.exp(make(noise)(np.array([0.0, 1.0]))).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("make", [tails.gaussian, tails.laplace])
def test_half_of_continuous_noise_is_above_0(
    make: Callable[..., tails.LogTail], noise: float
) -> None:
    assert make(noise)(np.array([0.0]))[0] == pytest.approx(np.log(0.5))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("make", ALL)
def test_wider_gaps_are_closed_less_often(make: Callable[..., tails.LogTail], noise: float) -> None:
    found = make(noise)(np.arange(2000.0))
    assert np.isfinite(found).all() and (np.diff(found) < 0).all()


@pytest.mark.parametrize("make", ALL)
def test_gaps_come_in_any_order(make: Callable[..., tails.LogTail]) -> None:
    gaps = np.array([5.0, 0.0, 90.0, 5.0])
    alone = [make(3.0)(gaps[i : i + 1])[0] for i in range(4)]
    np.testing.assert_allclose(make(3.0)(gaps), alone, rtol=1e-12)


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("make", ALL)
def test_bad_noise_is_refused(make: Callable[..., tails.LogTail], noise: float) -> None:
    with pytest.raises(PrivacyError):
        make(noise)
