r"""The best of a random number of runs: what a search on private data costs [papernot2022].

A run gives an output whose score all may see: the score on private dev is part of the run, or a
function of its output. K runs with noise of their own are made, the best one is released, and K is
not. K is drawn from a distribution that was fixed before, with generating function f(x) = E[x^K]:

    negative binomial without 0    f(x) = ((1 - (1 - gamma) x)^-s - 1) / (gamma^-s - 1)
    logarithmic, s = 0             f(x) = log(1 - (1 - gamma) x) / log gamma
    Poisson                        f(x) = exp(mean (x - 1)); of no run nothing is released

With F(y) the chance that a run is y or worse, the best one is y with chance f(F(y)) - f(F(y)-):
about f'(F) times that of a run. The ratio of f' with a unit to f' without it is what the search
adds. If runs are (order, epsilon)- and (order', epsilon')-Rényi private, it is at most

    epsilon + (1 + s) ((1 - 1 / order') epsilon' + log(1 / gamma) / order')
            + log(E K) / (order - 1)                                        [theorem 2],

for every order' of 1 or more, and for Poisson, if runs are (log(1 + 1 / (order - 1)), d)-private,

    epsilon + mean d + log(mean) / (order - 1)                              [theorem 6].

Divergences rise with the order: a bound at a higher order is one, too. Runs that are (e, 0)-private
make a search that is ((2 + s) e, 0)-private: both orders go to infinity.

How many runs there are tells nothing then. *A fixed number of runs* is another mechanism, whose
costs add up; so is a search that ends when a run is good enough.

[papernot2022] N. Papernot and T. Steinke, Hyperparameter tuning with Rényi differential privacy,
ICLR 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs
import numpy as np
from dp_accounting import dp_event as dp
from scipy.optimize import brentq

#: Orders at which the divergence of a run is looked at, besides those that are asked for.
RUN_ORDERS = 1 + np.logspace(-2, 5, 113)
_LEAST_LOG_GAMMA = -600.0


@attrs.frozen
class SearchDpEvent(dp.DpEvent):  # type: ignore[misc]
    """The best of K runs of ``parts``; made by :func:`privasr_k2.privacy.events.search`.

    Attributes:
        parts: the events of a run, and how often each occurs.
        mean: of K.
        shape: s; None for Poisson.
    """

    parts: tuple[tuple[dp.DpEvent, int], ...]
    mean: float
    shape: float | None

    @property
    def event(self) -> dp.DpEvent:
        """One run."""
        return flat(self.parts)


def flat(counts: Iterable[tuple[dp.DpEvent, int]]) -> dp.DpEvent:
    """The composition of events that occur so often."""
    events = [leaf if n == 1 else dp.SelfComposedDpEvent(leaf, n) for leaf, n in counts]
    return events[0] if len(events) == 1 else dp.ComposedDpEvent(events)


def search_rdp(
    event: SearchDpEvent, orders: np.ndarray, at_orders: np.ndarray, at_run_orders: np.ndarray
) -> np.ndarray:
    """Upper bounds (A,) on the divergence of the best of K runs.

    Args:
        orders: (A,) above 1.
        at_orders: (A,) divergences of one run at them.
        at_run_orders: its divergences at :data:`RUN_ORDERS`.

    >>> orders, found = np.array([20.0]), SearchDpEvent((), 10.0, 1.0)
    >>> search_rdp(found, orders, orders / 200, RUN_ORDERS / 200).round(3)
    array([0.639])
    """
    every, where = np.unique(np.concatenate([orders, RUN_ORDERS]), return_index=True)
    values = np.concatenate([at_orders, at_run_orders])[where]
    if event.shape is None:
        closeness = -np.log1p(-1 / every)  # log(1 + 1 / (order - 1))
        found = values + event.mean * np.array([_delta(every, values, e) for e in closeness])
    else:
        spread = values * (1 - 1 / every) - log_gamma(event.mean, event.shape) / every
        at_order_1 = -log_gamma(event.mean, event.shape)
        found = values + (1 + event.shape) * min(float(spread.min()), at_order_1)
    found = found + math.log(event.mean) / (every - 1)
    rising = np.minimum.accumulate(found[::-1])[::-1]
    return np.maximum(rising[np.searchsorted(every, orders)], 0.0)


def _delta(orders: np.ndarray, values: np.ndarray, epsilon: float) -> float:
    """The smallest delta at ``epsilon`` of these divergences [canonne2020, proposition 12]."""
    logs = (orders - 1) * (values - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return min(1.0, math.exp(min(float(logs.min()), 0.0)))


def log_gamma(mean: float, shape: float) -> float:
    """log gamma of the negative binomial distribution without 0 that has this mean, above 1.

    The mean is s (1 - gamma) / (gamma (1 - gamma^s)), for s = 0 (1 / gamma - 1) / log(1 / gamma).

    >>> round(math.exp(log_gamma(10.0, 1.0)), 9)
    0.1
    """

    def excess(log: float) -> float:
        rest = -math.expm1(log)
        share = -log if shape == 0 else -math.expm1(shape * log) / shape
        return math.log(rest) - math.log(share) - log - math.log(mean)

    return float(brentq(excess, _LEAST_LOG_GAMMA, -1e-12, xtol=1e-15, rtol=1e-14))
