from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import discrete, events, renyi
from privasr_k2.privacy.clipping import Norm, clip_rows
from privasr_k2.privacy.discrete import DiscreteGaussianNoise, DiscreteLaplaceNoise, FixedPointGrid

LAPLACE, GAUSSIAN = DiscreteLaplaceNoise(2.0), DiscreteGaussianNoise(2.0)
BOTH = pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
Mechanism = DiscreteLaplaceNoise | DiscreteGaussianNoise


def test_they_describe_themselves() -> None:
    assert LAPLACE.event(3) == events.discrete_laplace(2.0, 3)
    assert LAPLACE.vector_event(l1_sensitivity=3.0) == events.laplace_vector(2 / 3)
    assert GAUSSIAN.event(3) == events.discrete_gaussian(2.0, 3)
    assert GAUSSIAN.vector_event(l2_sensitivity=3.0) == events.concentrated(9 / 8)


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 1e6])
@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_opendp_s_own_map_of_its_sampler_agrees_with_the_event(
    scale: float, sensitivity: int
) -> None:
    laplace = discrete._sampler("make_laplace", scale)
    claimed = DiscreteLaplaceNoise(scale).vector_event(l1_sensitivity=sensitivity)
    assert renyi.pure_epsilon(claimed) == pytest.approx(laplace.map(sensitivity))
    gaussian = discrete._sampler("make_gaussian", scale)
    claimed = DiscreteGaussianNoise(scale).vector_event(l2_sensitivity=sensitivity)
    assert claimed.rho == pytest.approx(gaussian.map(float(sensitivity)))


@BOTH
def test_shapes_and_types(mechanism: Mechanism) -> None:
    unsigned, empty = np.array([1, 2], np.uint8), np.zeros((0, 3), int)
    for counts in ([[1, 2, 3], [4, 5, 6]], unsigned, np.array(7), [], empty):
        found = mechanism.add(counts)
        assert found.shape == np.shape(counts) and found.dtype == np.int64


@BOTH
def test_every_call_draws_afresh(mechanism: Mechanism) -> None:
    zeros = np.zeros(200, int)
    assert (mechanism.add(zeros) != mechanism.add(zeros)).any()
    assert not zeros.any()


@BOTH
def test_large_counts_keep_their_last_digit(mechanism: Mechanism) -> None:
    # Beyond 2^53 a float would not.
    for size in (2**62, -(2**62), 2**53 + 1):
        moved = mechanism.add(np.full(200, size)) - size
        assert 0 < np.abs(moved).max() < 200
        assert len(np.unique(moved % 2)) == 2


@BOTH
def test_the_sampler_is_given_the_counts_as_they_are(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discrete, "_sampler", lambda *_: lambda counts: counts)
    counts = [2**53 + 1, -(2**53) - 1, 2**62 - 1, 2**62, -(2**62), 0]
    assert mechanism.add(counts).tolist() == counts


def test_results_beyond_the_integers_stay_at_their_ends() -> None:
    largest = DiscreteLaplaceNoise(2.0**50).add(np.full(100, 2**62))
    assert (largest > 2**61).all()
    # The sampler itself saturates and does not wrap around.
    ends = np.array(discrete._sampler("make_laplace", 1e18)([2**63 - 1] * 200))
    assert (ends == 2**63 - 1).mean() > 0.2 and (ends > 0).mean() > 0.9


NO_INTEGERS = [[1.0, 2.0], [0.5], [-0.0], [math.nan], [math.inf], [True, False], ["a"], [None]]
TOO_LARGE = [np.array([2**62 + 1]), np.array([-(2**62) - 1]), np.array([2**64 - 1], np.uint64)]


@BOTH
@pytest.mark.parametrize("counts", [*NO_INTEGERS, *TOO_LARGE, [2**70]])
def test_what_is_no_array_of_integers_is_refused(mechanism: Mechanism, counts: Any) -> None:
    with pytest.raises(PrivacyError, match="counts"):
        mechanism.add(counts)


@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf, 2.0**51, "1", True])
def test_noise_that_is_none_or_covers_all_integers_is_refused(scale: Any) -> None:
    with pytest.raises(PrivacyError, match="scale"):
        DiscreteLaplaceNoise(scale)
    with pytest.raises(PrivacyError, match="sigma"):
        DiscreteGaussianNoise(scale)


def test_events_refuse_sensitivities_that_are_none() -> None:
    for made in (LAPLACE, GAUSSIAN):
        for sensitivity in (0, -1, 1.0):
            with pytest.raises(PrivacyError, match="sensitivity"):
                made.event(sensitivity)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="l1_sensitivity"):
        LAPLACE.vector_event(l1_sensitivity=0)
    with pytest.raises(PrivacyError, match="l2_sensitivity"):
        GAUSSIAN.vector_event(l2_sensitivity=-1)


ANYTHING = st.one_of(
    st.floats(width=64),
    st.sampled_from([math.nan, math.inf, 1e308, -5e-324, -0.0]),
    st.floats(-2, 2),
)


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    data=st.data(),
    norm=st.sampled_from(["l1", "l2"]),
    bound=st.floats(0.1, 10.0),
    exponent=st.integers(-10, 1),
    change=st.sampled_from(["add", "remove", "replace"]),
)
def test_one_unit_moves_what_the_sampler_is_given_by_at_most_the_sensitivity(
    data: st.DataObject,
    norm: Norm,
    bound: float,
    exponent: int,
    change: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(discrete, "_sampler", lambda *_: lambda counts: counts)
    grid = FixedPointGrid(2.0**exponent)
    rows = data.draw(hnp.arrays(np.float64, (data.draw(st.integers(1, 6)), 3), elements=ANYTHING))
    other = data.draw(hnp.arrays(np.float64, (1, 3), elements=ANYTHING))
    neighbour = {
        "add": np.concatenate([rows, other]),
        "remove": rows[1:],
        "replace": np.concatenate([other, rows[1:]]),
    }[change]
    clipped = (clip_rows(r, bound=bound, norm=norm).values for r in (rows, neighbour))
    given_to_sampler = [LAPLACE.add(grid.steps(values).sum(axis=0)) for values in clipped]
    moved = [abs(m) for m in np.subtract(*given_to_sampler).tolist()]
    limit = Fraction(grid.in_steps(bound)) * (2 if change == "replace" else 1)
    if norm == "l1":
        assert sum(moved) <= limit
    else:
        assert sum(m * m for m in moved) <= limit**2


@settings(deadline=None, max_examples=200)
@given(
    contributions=hnp.arrays(np.float64, 4, elements=st.floats(-1e6, 1e6)),
    exponent=st.integers(-20, 10),
)
def test_the_grid_makes_no_norm_larger(contributions: np.ndarray, exponent: int) -> None:
    grid = FixedPointGrid(2.0**exponent)
    steps = grid.steps(contributions)
    exact = [abs(Fraction(v)) / Fraction(grid.step) for v in contributions.tolist()]
    for made, real in zip(np.abs(steps).tolist(), exact, strict=True):
        assert real - 1 < made <= real
    np.testing.assert_array_equal(grid.steps(grid.values(steps)), steps)


def test_the_grid_takes_float32_integers_and_zeros_with_a_sign() -> None:
    grid = FixedPointGrid(0.5)
    narrow = np.array([0.9, -0.9, -0.0, 1.5], np.float32)
    np.testing.assert_array_equal(grid.steps(narrow), [1, -1, 0, 3])
    np.testing.assert_array_equal(grid.steps([3, -2]), [6, -4])
    assert grid.in_steps(3.0) == 6.0
    # The largest that is taken, and 4 million of them.
    assert grid.steps([2.0**39]).tolist() == [2**40]
    assert grid.steps([2.0**39])[0] * 2**22 == 2**62


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, 2.0**39 * 1.001])
def test_values_off_the_grid_are_refused_and_not_shown(value: float) -> None:
    with pytest.raises(PrivacyError, match="contributions") as raised:
        FixedPointGrid(0.5).steps([123.25, value])
    assert "123" not in str(raised.value)


@pytest.mark.parametrize("step", [0, -1.0, 0.3, 1e-3, 3, math.nan, math.inf, 2.0**-1000, True])
def test_steps_that_are_no_power_of_two_are_refused(step: Any) -> None:
    with pytest.raises(PrivacyError, match="step"):
        FixedPointGrid(step)


def test_what_no_grid_can_hold_is_refused() -> None:
    for contributions in (["a"], [True], [1j]):
        with pytest.raises(PrivacyError, match="contributions"):
            FixedPointGrid(1.0).steps(contributions)
    with pytest.raises(PrivacyError, match="steps"):
        FixedPointGrid(1.0).values([0.5])
    with pytest.raises(PrivacyError, match="sensitivity"):
        FixedPointGrid(1.0).in_steps(0)
