from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import clipping
from privasr_k2.privacy.clipping import Clipped, Norm, clip_rows, grid_step

NORMS = st.sampled_from(["l1", "l2"])
# Every power of ten the library takes, and the numbers that are special in floating point.
BOUNDS = st.one_of(
    st.builds(lambda m, e: m * 10.0**e, st.floats(1.0, 9.99), st.integers(-249, 248)),
    st.sampled_from([1e-250, 1e250, 1.0, math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0), 0.1]),
)
ANYTHING = st.one_of(
    st.floats(width=64),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 1.0, 0.1]),
)


def clip_vector(vector: ArrayLike, *, bound: float, norm: Norm) -> Clipped:
    """One unit alone."""
    array = np.asarray(vector)
    found = clip_rows(array.reshape(1, -1), bound=bound, norm=norm)
    return replace(found, values=found.values.reshape(array.shape))


def exact_norm_is_within(
    vector: np.ndarray | list[Fraction], bound: float, norm: Norm, times: int = 1
) -> bool:
    """Whether norm(vector) <= times * bound in rational arithmetic."""
    exact = [Fraction(v) for v in np.ravel(vector).tolist()]
    limit = times * Fraction(bound)
    return sum(map(abs, exact)) <= limit if norm == "l1" else sum(v * v for v in exact) <= limit**2


def vectors(near: float) -> st.SearchStrategy[np.ndarray]:
    """Anything at all, and what lies near the bound."""
    values = st.one_of(ANYTHING, st.floats(-2.0, 2.0).map(lambda v: v * near))
    wide = hnp.arrays(np.float64, st.integers(0, 6), elements=values)
    narrow = hnp.arrays(np.float32, st.integers(0, 6), elements=st.floats(width=32))
    return st.one_of(wide, narrow)


@settings(deadline=None, max_examples=300)
@given(data=st.data(), bound=BOUNDS, norm=NORMS)
def test_no_norm_exceeds_the_bound_in_exact_arithmetic(
    data: st.DataObject, bound: float, norm: Norm
) -> None:
    vector = data.draw(vectors(bound))
    found = clip_vector(vector, bound=bound, norm=norm)
    assert exact_norm_is_within(found.values, bound, norm)
    # What was within the bound is left alone but for the grid.
    cleaned = np.where(np.isfinite(vector), vector, 0.0).astype(np.float64)
    assert found.zeroed == vector.size - np.isfinite(vector).sum()
    if not found.clipped:
        lost = np.abs(cleaned) - np.abs(found.values)
        assert (lost >= 0).all() and (lost < grid_step(bound)).all()
    else:
        assert not exact_norm_is_within(cleaned, bound * (1 - 1e-12), norm)


@settings(deadline=None, max_examples=300)
@given(
    data=st.data(), bound=BOUNDS, norm=NORMS, change=st.sampled_from(["add", "remove", "replace"])
)
def test_one_unit_moves_the_sum_by_at_most_the_bound(
    data: st.DataObject, bound: float, norm: Norm, change: str
) -> None:
    values = st.one_of(ANYTHING, st.floats(-3.0, 3.0).map(lambda v: v * bound))
    rows = data.draw(hnp.arrays(np.float64, (data.draw(st.integers(1, 8)), 3), elements=values))
    at = data.draw(st.integers(0, len(rows) - 1))
    other = data.draw(hnp.arrays(np.float64, (1, 3), elements=values))
    neighbour = {
        "add": np.insert(rows, [at], other, axis=0),
        "remove": np.delete(rows, at, axis=0),
        "replace": np.concatenate([rows[:at], other, rows[at + 1 :]]),
    }[change]
    sums = [clip_rows(r, bound=bound, norm=norm).values.sum(axis=0) for r in (rows, neighbour)]
    # A difference of floats may round: the norm is that of the exact difference.
    exact = [Fraction(a) - Fraction(b) for a, b in zip(*(s.tolist() for s in sums))]
    assert exact_norm_is_within(exact, bound, norm, 2 if change == "replace" else 1)


def test_plain_clipping_and_summing_in_floats_is_what_that_excludes() -> None:
    # The same check finds the textbook's way wanting: it is not satisfied by anything.
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 4))
    clipped = rows * np.minimum(1.0, 0.1 / np.linalg.norm(rows, axis=1, keepdims=True))
    too_long = 0
    for at in range(len(clipped)):
        sums = [r.sum(axis=0).tolist() for r in (clipped, np.delete(clipped, at, axis=0))]
        moved = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*sums, strict=True))
        too_long += moved > Fraction(0.1) ** 2
        both = (rows, np.delete(rows, at, 0))
        ours = [clip_rows(r, bound=0.1, norm="l2").values.sum(axis=0) for r in both]
        assert exact_norm_is_within(ours[0] - ours[1], 0.1, "l2")
    assert too_long > 50


def test_a_norm_that_exceeds_the_bound_only_before_rounding_is_clipped() -> None:
    # sqrt(1 + 2^-64) is 1 in floats.
    vector = np.array([1.0, 2.0**-32])
    assert np.linalg.norm(vector) == 1.0
    found = clip_vector(vector, bound=1.0, norm="l2")
    assert found.clipped == 1
    assert exact_norm_is_within(found.values, 1.0, "l2")
    assert not clip_vector([1.0, 2.0**-33], bound=1.0, norm="l2").clipped


@pytest.mark.parametrize("seed", range(20))
def test_a_norm_that_is_the_bound_stays_and_one_step_more_is_clipped(seed: int) -> None:
    # In steps of 2^-32: squares that add up to 2^64 exactly, and 1 more, which floats do not see.
    parts = [int(np.random.default_rng(seed).integers(2**28, 2**32))]
    while rest := 2**64 - sum(n * n for n in parts):
        parts.append(math.isqrt(rest))
    for vector, clipped in ((parts, 0), ([*parts, 1], 1)):
        found = clip_vector(np.array(vector) * 2.0**-32, bound=1.0, norm="l2")
        assert found.clipped == clipped
        assert exact_norm_is_within(found.values, 1.0, "l2")


def test_what_lies_on_the_bound_stays() -> None:
    np.testing.assert_array_equal(clip_rows(np.eye(5), bound=1.0, norm="l2").values, np.eye(5))
    found = clip_vector([0.75, -0.25], bound=1.0, norm="l1")
    assert found.values.tolist() == [0.75, -0.25]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_vectors_keep_their_direction_and_reach_the_bound(norm: Norm, dtype: type) -> None:
    vector = np.random.default_rng(1).normal(size=50_000).astype(dtype)
    found = clip_vector(vector, bound=0.3, norm=norm)
    order = 1 if norm == "l1" else 2
    # Half a step is lost a value: 50,000 of them are 6e-6 of the bound.
    reached = np.linalg.norm(found.values, ord=order)
    assert 0.3 * (1 - 1e-4) < reached <= 0.3
    wide = vector.astype(np.float64)
    expected = wide * 0.3 / np.linalg.norm(wide, ord=order)
    np.testing.assert_allclose(found.values, expected, atol=grid_step(0.3), rtol=1e-9)
    assert exact_norm_is_within(found.values, 0.3, norm)


def test_squares_that_overflow_or_vanish() -> None:
    huge = clip_vector([3e300, 4e300], bound=5.0, norm="l2").values
    np.testing.assert_allclose(huge, [3.0, 4.0], rtol=1e-9)
    largest = clip_vector(np.full(4, np.finfo(float).max), bound=2.0, norm="l2").values
    np.testing.assert_allclose(largest, np.ones(4), rtol=1e-9)
    tiny = clip_vector([3e-200, 4e-200], bound=1e-200, norm="l2").values
    np.testing.assert_allclose(tiny, [0.6e-200, 0.8e-200], rtol=1e-9)
    assert not clip_vector([5e-324, -5e-324], bound=1.0, norm="l2").values.any()


def test_values_that_are_not_finite_count_as_zero() -> None:
    rows = np.array([[np.nan, 1.0], [np.inf, -np.inf], [3.0, 0.0]])
    before = rows.copy()
    found = clip_rows(rows, bound=1.0, norm="l1")
    np.testing.assert_array_equal(rows, before)  # the argument is not changed
    np.testing.assert_allclose(found.values, [[0, 1], [0, 0], [1, 0]], atol=1e-9)
    assert (found.zeroed, found.clipped) == (3, 1)
    assert not np.signbit(clip_vector([-0.0, -1e-300], bound=1.0, norm="l2").values).any()


def test_a_result_shows_nothing_of_its_units() -> None:
    assert repr(clip_rows([[np.nan, 7.0]], bound=1.0, norm="l2")) == "Clipped()"


def test_sums_do_not_depend_on_the_order() -> None:
    rng = np.random.default_rng(5)
    clipped = clip_rows(rng.normal(size=(1000, 20)) * 1e3, bound=0.7, norm="l2").values
    total = clipped.sum(axis=0)
    for _ in range(5):
        np.testing.assert_array_equal(clipped[rng.permutation(1000)].sum(axis=0), total)


def test_no_units_no_values_and_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in [(0, 3), (3, 0), (0, 0)]:
        found = clip_rows(np.zeros(shape), bound=1.0, norm="l1")
        assert found.values.shape == shape and found.clipped == 0
    rows = np.random.default_rng(3).normal(size=(17, 5))
    rows[3, 2] = np.nan
    whole = clip_rows(rows, bound=1.0, norm="l2")
    monkeypatch.setattr(clipping, "_BLOCK", 12)
    parts = clip_rows(rows, bound=1.0, norm="l2")
    np.testing.assert_array_equal(parts.values, whole.values)
    assert (parts.zeroed, parts.clipped) == (whole.zeroed, whole.clipped) == (1, whole.clipped)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan, math.inf, 1e-300, 1e300, True, "1"])
def test_bounds_that_bound_nothing_are_refused(bound: float) -> None:
    with pytest.raises(PrivacyError, match="bound"):
        clip_vector([1.0], bound=bound, norm="l2")


@pytest.mark.parametrize(
    "rows", [[1.0, 2.0], [[[1.0]]], [["a"]], [[True]], [[1j]], [[1.0], [1.0, 2.0]]]
)
def test_what_is_no_matrix_of_numbers_is_refused(rows: object) -> None:
    with pytest.raises(PrivacyError, match="rows"):
        clip_rows(rows, bound=1.0, norm="l2")  # type: ignore[arg-type]


def test_too_many_units_for_exact_sums_and_unknown_norms_are_refused() -> None:
    with pytest.raises(PrivacyError, match="1048576"):
        clip_rows(np.zeros((2**20 + 1, 0)), bound=1.0, norm="l2")
    with pytest.raises(PrivacyError, match="l1 or l2"):
        clip_vector([1.0], bound=1.0, norm="l3")  # type: ignore[arg-type]
