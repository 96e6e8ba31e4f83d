"""From costs at Rényi orders to the epsilon of the best order, which is not for release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.renyi import epsilon_from_rdp

# Orders less 1: where the search begins, and how far it goes.
_FIRST, _LAST, _LOWEST = 0.01, 100.0, 1e-9
_COARSE, _FINE = 49, 65

Curve = Callable[[float], float]


@dataclass(frozen=True)
class NotForRelease:
    """A cost that was computed from private votes: it may itself tell of a unit.

    It holds for these votes, not for all data, and becomes arbitrarily small without noise, since
    clear votes then have one outcome. So it is no event, goes into no ledger, and nothing that is
    released may be chosen by it.

    Attributes:
        epsilon: at ``delta`` and the best order.
        order: of the Rényi divergence at which epsilon is smallest.
        rdp: the divergence of that order.
    """

    epsilon: float
    delta: float
    order: float
    rdp: float


def smallest_epsilon(
    curve: Curve, *, delta: float, orders: Sequence[float] | np.ndarray | None
) -> NotForRelease:
    """The smallest epsilon over all orders.

    Args:
        curve: total divergence at an order; 0 or above.
        orders: above 1, as floats; ``None`` searches from 1.01 to 101 and further, then finely
            around the best. One order alone is taken as it is.

    Raises:
        PrivacyError: orders of integers or of 1 and below, or the best is the first or the last of
            several.

    >>> found = smallest_epsilon(lambda order: order / 2, delta=1e-5, orders=None)
    >>> round(found.epsilon, 2), round(found.order, 1)
    (4.73, 5.4)
    """
    delta = checks.delta(delta)
    if orders is None:
        return _search(curve, delta)
    checked = np.sort(checks.orders("orders", orders))
    best = _best(curve, checked, delta)
    if len(checked) > 1 and best.epsilon > 0 and best.order in (checked[0], checked[-1]):
        found = f"{best.order:g}, at the edge of {checked[0]:g} to {checked[-1]:g}"
        way_out = "give smaller and larger orders, or none to have them chosen"
        raise PrivacyError("orders", "the best order to lie inside", found, way_out)
    return best


def _search(curve: Curve, delta: float) -> NotForRelease:
    low, high = _FIRST, _LAST
    while True:
        steps = np.geomspace(low, high, _COARSE)
        coarse = _best(curve, 1.0 + steps, delta)
        at = int(np.flatnonzero(1.0 + steps == coarse.order)[0])
        if coarse.epsilon == 0:
            return coarse
        if np.isinf(coarse.epsilon) or low < _LOWEST:
            found = f"{coarse.epsilon:.3g}"
            raise PrivacyError("epsilon", "a number", found, "add more noise: no protection")
        if at == 0:
            low, high = low / 1000.0, steps[1]
        elif at == len(steps) - 1:
            low, high = steps[-2], high * 1000.0
        else:
            return _best(curve, 1.0 + np.geomspace(steps[at - 1], steps[at + 1], _FINE), delta)


def _best(curve: Curve, orders: np.ndarray, delta: float) -> NotForRelease:
    divergences = np.array([curve(float(order)) for order in orders])
    if np.isnan(divergences).any():
        raise PrivacyError("divergence", "numbers", "NaN", "check noise and votes")
    epsilons = epsilon_from_rdp(orders, divergences, delta)
    at = int(np.argmin(epsilons))
    return NotForRelease(float(epsilons[at]), delta, float(orders[at]), float(divergences[at]))
