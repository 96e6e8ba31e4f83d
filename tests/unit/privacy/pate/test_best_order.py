from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.pate.best_order import smallest_epsilon


def gaussian(sigma: float, order: float) -> float:
    return order / (2 * sigma**2)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 30.0, 3e3])
def test_the_search_finds_what_a_very_fine_grid_finds(sigma: float) -> None:
    found = smallest_epsilon(lambda order: gaussian(sigma, order), delta=1e-6, orders=None)
    fine = 1.0 + np.geomspace(0.0101, 1e6, 40_000)
    epsilon, order = compute_epsilon(fine, [gaussian(sigma, o) for o in fine], 1e-6)
    assert found.epsilon == pytest.approx(epsilon, rel=1e-4)
    assert found.order == pytest.approx(order, rel=0.1)
    assert found.rdp == pytest.approx(gaussian(sigma, found.order))


def test_given_orders_are_used_and_no_others() -> None:
    found = smallest_epsilon(lambda order: order / 2, delta=1e-5, orders=[3.0, 5.0, 8.0])
    assert found.order == 5.0
    assert smallest_epsilon(lambda order: order / 2, delta=1e-5, orders=[3.0]).order == 3.0


@pytest.mark.parametrize("orders", [[2.0, 3.0], [8.0, 16.0, 32.0]])
def test_an_optimum_at_the_edge_is_refused(orders: list[float]) -> None:
    with pytest.raises(PrivacyError, match="at the edge"):
        smallest_epsilon(lambda order: order / 2, delta=1e-5, orders=orders)


def test_a_cost_too_large_to_be_converted_is_refused() -> None:
    huge = smallest_epsilon(lambda order: 1e9 * order, delta=1e-5, orders=None)
    assert huge.epsilon == pytest.approx(1e9, rel=1e-3) and 1 < huge.order < 1.001
    with pytest.raises(PrivacyError, match="no protection"):
        smallest_epsilon(lambda _: math.inf, delta=1e-5, orders=None)


def test_no_cost_is_epsilon_0() -> None:
    assert smallest_epsilon(lambda _: 0.0, delta=1e-5, orders=None).epsilon == 0.0


def test_what_is_no_number_is_no_epsilon() -> None:
    with pytest.raises(PrivacyError, match="NaN"):
        smallest_epsilon(lambda order: math.nan if order > 5 else 1.0, delta=1e-5, orders=None)


@pytest.mark.parametrize(
    "orders", [[2, 3], np.array([2, 4]), [1.0, 2.0], [2.0, math.nan], [], [[2.0]]]
)
def test_bad_orders_are_refused(orders: list[float]) -> None:
    with pytest.raises(PrivacyError, match="orders"):
        smallest_epsilon(lambda order: order, delta=1e-5, orders=orders)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_bad_deltas_are_refused(delta: float) -> None:
    with pytest.raises(PrivacyError, match="delta"):
        smallest_epsilon(lambda order: order, delta=delta, orders=None)
