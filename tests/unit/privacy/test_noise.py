from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import noise
from privasr_k2.privacy.clipping import clip_rows
from privasr_k2.privacy.noise import GaussianNoise, LaplaceNoise
from privasr_k2.randomness import NoiseStream, noise_stream

# Tests alone fix a secret: so the draws, and what is concluded from them, are always the same.
SECRET = b"only for tests, 32 bytes or more"
GAUSSIAN = GaussianNoise(noise_multiplier=1.5, l2_sensitivity=2.0)
LAPLACE = LaplaceNoise(scale=3.0, l1_sensitivity=2.0)
BOTH = pytest.mark.parametrize("mechanism", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
Mechanism = GaussianNoise | LaplaceNoise


def _stream(*names: str | int) -> NoiseStream:
    return noise_stream(SECRET, "test_noise", *names)


@BOTH
def test_results_lie_on_a_grid_that_follows_from_the_scale_alone(mechanism: Mechanism) -> None:
    assert mechanism.grid == 2.0**-7  # 3 is between 2 and 4: 2 / 256
    values = np.random.default_rng(1).normal(size=1000) * 100
    steps = mechanism.add(values, _stream(1)) / mechanism.grid
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert len(np.unique(steps % 4)) == 4


@BOTH
def test_shape_type_and_repetition(mechanism: Mechanism) -> None:
    values = np.random.default_rng(2).normal(size=(4, 5)).astype(np.float32)
    before = values.copy()
    found = mechanism.add(values, _stream(2))
    assert found.shape == (4, 5) and found.dtype == np.float64
    np.testing.assert_array_equal(values, before)
    np.testing.assert_array_equal(mechanism.add(values.astype(np.float64), _stream(2)), found)
    assert (mechanism.add(values, _stream(3)) != found).mean() > 0.9
    assert mechanism.add(np.array(1.0), _stream(2)).shape == ()
    assert mechanism.add(np.empty((0, 3)), _stream(2)).shape == (0, 3)
    # A stream moves on.
    stream = _stream(2)
    assert (mechanism.add(values, stream) != mechanism.add(values, stream)).mean() > 0.9


@BOTH
def test_blocks_share_no_noise(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_BLOCK", 64)
    found = mechanism.add(np.zeros(1000), _stream(4))
    blocks = found[:960].reshape(15, 64)
    assert len(np.unique(blocks, axis=0)) == 15
    expected = 3.0 * (1 if mechanism is GAUSSIAN else math.sqrt(2))
    assert found.std() == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_odd_and_even_counts(count: int) -> None:
    assert GAUSSIAN.add(np.zeros(count), _stream(5)).shape == (count,)


@settings(deadline=None, max_examples=100)
@given(offset=st.integers(-(2**20), 2**20), steps=st.integers(-(2**25), 2**25) | st.just(2**49))
def test_moving_the_input_by_whole_grids_moves_the_result_by_as_much(
    offset: int, steps: int
) -> None:
    # So the noise does not depend on the input: neither on its size nor on its low bits.
    for mechanism in (GAUSSIAN, LAPLACE):
        near = np.full(8, 0.0 if steps == 2**49 else offset * 2.0**-26)
        far = near + steps * mechanism.grid
        assert ((far - near) == steps * mechanism.grid).all()
        moved = mechanism.add(far, _stream(6)) - mechanism.add(near, _stream(6))
        np.testing.assert_array_equal(moved, np.full(8, steps * mechanism.grid))


def test_a_zero_has_no_sign() -> None:
    coarse = GaussianNoise(noise_multiplier=1.0, l2_sensitivity=1.0)
    for sign in (0.0, -0.0, -1e-300):
        found = coarse.add(np.full(100_000, sign), _stream(7))
        zeros = found[found == 0]
        assert len(zeros) > 50 and not np.signbit(zeros).any()


ANYTHING = st.one_of(
    st.floats(width=64), st.sampled_from([math.nan, math.inf, 1e308, -5e-324]), st.floats(-2, 2)
)


@settings(deadline=None, max_examples=100)
@given(data=st.data(), change=st.sampled_from(["add", "remove", "replace"]))
def test_one_unit_moves_the_noisy_sum_by_the_sensitivity_and_a_rounding(
    data: st.DataObject, change: str
) -> None:
    rows = data.draw(hnp.arrays(np.float64, (data.draw(st.integers(1, 6)), 4), elements=ANYTHING))
    other = data.draw(hnp.arrays(np.float64, (1, 4), elements=ANYTHING))
    neighbour = {
        "add": np.concatenate([rows, other]),
        "remove": rows[1:],
        "replace": np.concatenate([other, rows[1:]]),
    }[change]
    times = 2 if change == "replace" else 1
    for mechanism, norm, order in ((GAUSSIAN, "l2", 2), (LAPLACE, "l1", 1)):
        sensitivity = GAUSSIAN.l2_sensitivity if norm == "l2" else LAPLACE.l1_sensitivity
        limits = {"bound": sensitivity, "norm": norm}
        sums = [clip_rows(r, **limits).values.sum(axis=0) for r in (rows, neighbour)]
        # The same noise on both: what is left is the units, and half a grid on each side.
        moved = np.subtract(*(mechanism.add(total, _stream(8)) for total in sums))
        rounding = np.linalg.norm(np.full(4, mechanism.grid), ord=order)
        assert np.linalg.norm(moved, ord=order) <= times * sensitivity + rounding


@BOTH
def test_generators_that_can_be_guessed_are_refused(mechanism: Mechanism) -> None:
    for generator in (np.random.default_rng(1), np.random.RandomState(1), np.random, None, 7):
        with pytest.raises(PrivacyError, match="NoiseStream"):
            mechanism.add(np.zeros(3), generator)  # type: ignore[arg-type]


@BOTH
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, 2.0**50])
def test_values_that_were_not_clipped_are_refused_and_not_shown(
    mechanism: Mechanism, value: float
) -> None:
    with pytest.raises(PrivacyError, match="clip") as raised:
        mechanism.add(np.array([0.0, value, 123.456]), _stream(9))
    assert "123" not in str(raised.value) and "nan" not in str(raised.value)


@BOTH
@pytest.mark.parametrize(
    "vector",
    [np.arange(3), np.array([True]), np.array(["a"]), np.zeros(2, complex), [None], [1, 2]],
)
def test_what_is_no_array_of_floats_is_refused(mechanism: Mechanism, vector: Any) -> None:
    with pytest.raises(PrivacyError, match="vector"):
        mechanism.add(vector, _stream(9))


@pytest.mark.skipif(np.finfo(np.longdouble).bits == 64, reason="no longer double here")
def test_longer_floats_are_refused() -> None:
    with pytest.raises(PrivacyError, match="vector"):
        GAUSSIAN.add(np.zeros(2, np.longdouble), _stream(9))


@pytest.mark.parametrize("bad", [0, 0.0, -1.0, math.nan, math.inf, "1", True])
def test_noise_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(PrivacyError, match="noise_multiplier"):
        GaussianNoise(noise_multiplier=bad, l2_sensitivity=1.0)
    with pytest.raises(PrivacyError, match="l2_sensitivity"):
        GaussianNoise(noise_multiplier=1.0, l2_sensitivity=bad)
    with pytest.raises(PrivacyError, match="scale"):
        LaplaceNoise(scale=bad, l1_sensitivity=1.0)
    with pytest.raises(PrivacyError, match="l1_sensitivity"):
        LaplaceNoise(scale=1.0, l1_sensitivity=bad)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_scales_at_the_ends_of_the_floats_are_refused(size: float) -> None:
    with pytest.raises(PrivacyError, match="sigma"):
        GaussianNoise(noise_multiplier=1.0, l2_sensitivity=size)
    with pytest.raises(PrivacyError, match="sigma"):
        GaussianNoise(noise_multiplier=size, l2_sensitivity=size)  # overflows or vanishes
    with pytest.raises(PrivacyError, match="scale"):
        LaplaceNoise(scale=size, l1_sensitivity=1.0)


@pytest.mark.parametrize("size", [1e-250, 1e-5, 1.0, 1e250])
def test_scales_of_every_size_work(size: float) -> None:
    found = LaplaceNoise(scale=size, l1_sensitivity=size).add(np.zeros(2000), _stream(10)) / size
    assert found.std() == pytest.approx(math.sqrt(2), rel=0.1)
