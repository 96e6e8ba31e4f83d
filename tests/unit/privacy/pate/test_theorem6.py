from __future__ import annotations

import math

import numpy as np
import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.pate.theorem6 import theorem6


def as_in_the_paper(log_q: float, order: float, sigma: float) -> float:
    """Theorem 6 and proposition 10 as they are written, or order / sigma^2."""
    q, independent = math.exp(log_q), order / sigma**2
    mu2 = sigma * math.sqrt(-log_q)
    mu1 = mu2 + 1
    if order > mu1 or mu2 <= 1:
        return independent
    eps1, eps2 = mu1 / sigma**2, mu2 / sigma**2
    if q > math.exp((mu2 - 1) * eps2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
        return independent
    a = (1 - q) / (1 - (q * math.exp(eps2)) ** ((mu2 - 1) / mu2))
    b = math.exp(eps1) / q ** (1 / (mu1 - 1))
    return min(
        math.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1), independent
    )


def test_it_is_theorem_6_where_that_can_be_computed_as_written() -> None:
    log_q = np.linspace(-8, -0.05, 200)
    compared = set()
    for sigma in (1.0, 3.0, 40.0):
        for order in (1.5, 3.0, 10.0):
            ours = theorem6(log_q, sigma=sigma).rdp(order)
            direct = [as_in_the_paper(float(value), order, sigma) for value in log_q]
            np.testing.assert_allclose(ours, direct, rtol=1e-9, atol=1e-13)
            compared |= set(np.sign(order / sigma**2 - ours).tolist())
    assert compared == {0.0, 1.0}  # both branches were seen


# Where theorem 6 begins to be of use: the authors' -log_q at orders 1.1, 2.5, 32, 250.
BEGINNINGS = {1.5: [2.8, 2.6, 427, None], 15: [4.8, 4.0, 4.7, 275], 1500: [9.6, 8.8, 6.0, 4]}


@pytest.mark.parametrize("sigma", BEGINNINGS)
def test_it_begins_where_the_authors_say(sigma: float) -> None:
    for order, beginning in zip((1.1, 2.5, 32.0, 250.0), BEGINNINGS[sigma], strict=True):
        if beginning is not None:
            log_q = -beginning - np.log([1, 2, 4, 8])
            costs = theorem6(log_q, sigma=sigma).rdp(order)
            assert (np.diff(costs) < 0).all()
            above = np.log(np.exp(-beginning) + np.array([0.1, 0.2, 0.3, 0.4]))
            costs = theorem6(above, sigma=sigma).rdp(order)
            assert costs == pytest.approx(order / sigma**2)


def test_a_likelier_change_never_costs_less() -> None:
    log_q = -np.geomspace(1e-3, 1e6, 5000)
    for sigma in (0.3, 2.0, 40.0, 1e4):
        for order in (1.05, 2.0, 8.0, 60.0, 1e4):
            costs = theorem6(log_q, sigma=sigma).rdp(order)
            assert (np.diff(costs) <= 1e-15 / (order - 1)).all()
            assert (costs >= 0).all() and (costs <= order / sigma**2 * (1 + 1e-12)).all()


def test_outcomes_that_never_change_cost_nothing_and_those_by_lot_the_whole() -> None:
    costs = theorem6(np.array([-np.inf, np.log(0.9)]), sigma=2.0).rdp(3.0)
    assert costs.tolist() == [0.0, 0.75]


@pytest.mark.filterwarnings("error")
def test_hardly_any_noise_is_no_division_by_zero() -> None:
    costs = theorem6(np.array([-np.inf, -1e180, -1e3, -0.5]), sigma=1e-170).rdp(3.0)
    assert np.isposinf(costs).all()


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan])
def test_bad_noise_is_refused(sigma: float) -> None:
    with pytest.raises(PrivacyError, match="sigma"):
        theorem6(np.array([-1.0]), sigma=sigma)


def test_the_condition_on_q_is_kept_where_it_matters() -> None:
    # Where the condition fails the bound is nearly always above order / sigma^2; not here.
    sigma, order, log_q = 0.28849782206595864, 1.8376776400682924, -(3.4662657168071083**2)
    bound = theorem6(np.array([log_q]), sigma=sigma)
    assert sigma * math.sqrt(-log_q) + 1 > order
    assert bound.unchecked(order)[0] < order / sigma**2 * (1 - 1e-5)
    assert bound.rdp(order)[0] == pytest.approx(order / sigma**2, rel=1e-12)
    assert as_in_the_paper(log_q, order, sigma) == order / sigma**2
