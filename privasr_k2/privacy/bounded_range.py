r"""Mechanisms of bounded range: the exponential mechanism, and report-noisy-max with Gumbel noise.

A mechanism has range eta if the log ratios of its outcomes' chances, with a unit and without it,
all lie in one interval [t - eta, t] [durfee2019]. Since both sum to 1 the interval holds 0.

**The exponential mechanism** gives outcome i with P(i) = exp(u_i / b) / Z. Gumbel noise of scale b
on every u_i has its largest value at i with just that chance. If one unit changes u by d, then

    ln P(i) / P'(i) = d_i / b - ln Z / Z',    so that    eta = (max d - min d) / b.

Where a unit gives or takes a vote, d is 0 but for one class: eta = 1 / b. Where it moves a vote, d
is 1 at one class and -1 at another: eta = 2 / b. In the first case the log ratios take the two
values t and t - eta alone, and every t is approached by some counts: the bounds below are attained.

**The worst mechanism.** Let f be convex and y = P'(i) / P(i), which lies in [e^-t, e^(eta - t)] and
has mean 1 under P. The mean of f(y) is largest where y takes the two ends alone [dong2020]:

    t with probability p = (e^eta - e^t) / (e^eta - 1), else t - eta.

All Rényi and hockey-stick divergences are such means. With P and P' exchanged, t is eta - t.

**Rényi divergence.** p e^(m t) + (1 - p) e^(m (t - eta)), with m = order - 1, is largest where

    e^t = m / order (e^eta - e^(-m eta)) / (1 - e^(-m eta)),

and its logarithm is then never above m order eta^2 / 8 [cesar2021]: eta^2/8-zCDP.

**Composition.** Each answer may be to a question that follows from earlier answers, so that the
worst t may follow from the losses until now. The largest delta of k mechanisms at losses s is

    V_0(s) = max(0, 1 - e^(epsilon - s)),
    V_k(s) = max over t of p V_(k-1)(s + t) + (1 - p) V_(k-1)(s + t - eta),

the optimum of adaptive composition [dong2020]. V_k is a maximum of functions that are convex in
e^-s, hence convex in it: straight lines between points of a grid (in e^-s) are never below it. On
such lines the maximum over t within one step of the grid is that of c + a x + g / x, with x = e^t.
Thus :func:`profile` is an upper bound. By [zhu2022, theorem 10] a block of mechanisms may be
composed as one mechanism with this profile, for each block whatever happened before.

**Beside others.** An event of other kinds, with a fixed worst pair, costs most before the first of
these: an adversary who knows its loss chooses every t at least as well. So blocks of one eta may
be composed with such pairs. Mechanisms of *several* eta could alternate within a block: then only
one of the etas has blocks, and each other mechanism its own worst pair, a block of one.

[durfee2019] D. Durfee and R. Rogers, Practical differentially private top-k selection with
pay-what-you-get composition, NeurIPS 2019.
[dong2020] J. Dong, D. Durfee, R. Rogers, Optimal differential privacy composition for exponential
mechanisms, ICML 2020.
[cesar2021] M. Cesar and R. Rogers, Bounding, concentrating, and truncating: unifying privacy loss
composition for data analytics, ALT 2021.
[zhu2022] Y. Zhu, J. Dong, Y.-X. Wang, Optimal accounting of differential privacy via
characteristic function, AISTATS 2022.
"""

from __future__ import annotations

import math

import attrs
import numpy as np
from dp_accounting import dp_event as dp

from privasr_k2.privacy import checks

#: Mechanisms that are composed as one: more are tighter, and take longer.
BLOCK = 64
# Steps of the grid for one eta.
_STEPS = 16
#: No profile beyond it, where powers of e^eta are too large, and epsilon is far from any use.
LARGEST_ETA = 30.0
# Exponentials up to this are computed as they are, larger ones by their logarithms.
_LARGEST_LOG = 500.0


@attrs.frozen
class BoundedRangeDpEvent(dp.DpEvent):  # type: ignore[misc]
    """A mechanism whose log ratios all lie in one interval of length ``eta``."""

    eta: float


def bounded_range(eta: float) -> dp.DpEvent:
    """A mechanism of range ``eta``: the exponential one with eta = (max d - min d) / scale.

    d is what *adding or removing* one unit changes in the utilities. It is (eta, 0)-private.
    """
    return BoundedRangeDpEvent(checks.number("eta", eta, at_least=1e-12, at_most=1e12))


def rdp(eta: float, orders: np.ndarray) -> np.ndarray:
    """The largest Rényi divergence (A,) of a mechanism of range ``eta`` at (A,) orders above 1.

    >>> rdp(0.5, np.array([2.0, 8.0])).round(5), 0.5**2 / 8 * np.array([2.0, 8.0])
    (array([0.06186, 0.21219]), array([0.0625, 0.25  ]))
    """
    m = orders - 1
    # Both ends are log(1 - e^-x) apart from the peak; without cancellation for small x.
    gap = np.log(m / orders) + _log_one_minus(orders * eta) - _log_one_minus(m * eta)
    t = np.clip(eta + gap, 0.0, eta)
    p = np.expm1(t - eta) / math.expm1(-eta)
    small = np.minimum(m * eta, _LARGEST_LOG)
    moment = p * np.expm1(small * (t / eta)) + (1 - p) * np.expm1(small * (t / eta - 1))
    with np.errstate(divide="ignore"):
        large = np.logaddexp(np.log(p) + m * t, np.log1p(-p) + m * (t - eta))
    found = np.where(m * eta < _LARGEST_LOG, np.log1p(moment), large) / m
    return np.minimum(np.maximum(found, 0.0), np.minimum(orders * eta**2 / 8, eta))


def _log_one_minus(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(-np.expm1(-x)))


def profile(eta: float, count: int, epsilons: np.ndarray) -> np.ndarray:
    """The largest delta (E,) of ``count`` mechanisms of range ``eta``, at each of (E,) epsilons.

    Each may be chosen by what the earlier ones gave. An upper bound that is attained but for the
    width of a grid; for one mechanism (e^(eta/2) - e^(epsilon/2))^2 / (e^eta - 1).

    Args:
        eta: at most :data:`LARGEST_ETA`.
        count: 1 or more; the time grows with its square.
        epsilons: rising; may be negative.

    >>> profile(0.5, 1, np.array([0.0, 0.25])).round(4), round(math.tanh(0.5 / 4), 4)
    (array([0.1244, 0.0351]), 0.1244)
    """
    if count == 1:
        return _of_one(eta, epsilons)
    end, step = count * eta, eta / _STEPS
    losses = np.arange(-count * _STEPS, count * _STEPS + 1) * step
    values = _of_one(eta, -losses)
    for _ in range(count - 1):
        values = _before(values, losses[-1], eta, step)
    # At -s, with lines in e^epsilon between the points.
    at = np.clip(np.searchsorted(-losses[::-1], epsilons, side="right") - 1, 0, len(losses) - 2)
    left = -losses[::-1][at]
    share = np.clip(np.expm1(epsilons - left) / math.expm1(step), 0.0, 1.0)
    deltas = values[::-1]
    between = deltas[at] * (1 - share) + deltas[at + 1] * share
    return _within(end, epsilons, between)


def _of_one(eta: float, epsilons: np.ndarray) -> np.ndarray:
    inside = np.clip(epsilons, -eta, eta)
    rest = np.exp(inside) * np.expm1((eta - inside) / 2) ** 2 / math.expm1(eta)
    return _within(eta, epsilons, rest)


def _within(end: float, epsilons: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """``deltas`` between -end and end; beyond it they are 0, or 1 - e^epsilon."""
    outside = np.where(epsilons >= end, 0.0, _spent(-epsilons))
    return np.where(np.abs(epsilons) < end, deltas, outside)


def _spent(losses: np.ndarray) -> np.ndarray:
    """max(0, 1 - e^-s)."""
    return -np.expm1(-np.maximum(losses, 0.0))


def _before(values: np.ndarray, end: float, eta: float, step: float) -> np.ndarray:
    """V_k from V_(k-1) on one grid; outside of it a loss is lost, or as large as can be."""
    beyond = _spent(end + step * np.arange(1, _STEPS + 1))
    all_values = np.concatenate([np.zeros(_STEPS), values, beyond])
    # Within a cell, r behind its left end: value - slope (1 - e^-r).
    slope = (all_values[:-1] - all_values[1:]) / -math.expm1(-step)
    size, whole = len(values), math.expm1(eta)
    best = np.zeros(size)
    for cell in range(_STEPS):
        up, down = slice(cell + _STEPS, cell + _STEPS + size), slice(cell, cell + size)
        left = math.exp(cell * step)
        a = (all_values[down] - slope[down]) - (all_values[up] - slope[up])
        g = left * (slope[up] * (whole + 1) - slope[down])
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where((a < 0) & (g < 0), np.sqrt(g / a), left)
        for t in (np.clip(np.log(x) - cell * step, 0.0, step), 0.0, step):
            lower, p = np.expm1(-t), np.expm1(eta - cell * step - t) / whole
            p = p * np.exp(cell * step + t)
            ahead = all_values[up] + slope[up] * lower
            behind = all_values[down] + slope[down] * lower
            np.maximum(best, p * ahead + (1 - p) * behind, out=best)
    return best
