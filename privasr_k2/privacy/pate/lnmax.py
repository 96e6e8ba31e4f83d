"""LNMax: the class with most votes after Laplace noise on every count [papernot2017].

One unit moves one vote from one class to another: two counts change by 1 each. (Where a vote is
given or not one count does: 1 / b stands for 2 / b below, and "once" for "twice".) With noise of
scale b an answer is (2 / b, 0)-private; its moments alpha(l) = l rdp(l + 1) are at most

    2 l (l + 1) / b^2                                                              [theorem 2],
    log((1 - q) ((1 - q) / (1 - e^(2/b) q))^l + q e^(2 l / b))                     [theorem 3],

the second where another than the likely outcome has at most the probability q < 1 / (e^(2/b) + 1).
Instead of the first, the divergence of the two changed counts themselves is taken, which is never
more than it or 2 / b: twice that of Laplace noise on one number [mironov2017, proposition 6],

    rdp(order) = 1 / (order - 1) log(order e^((order - 1) / b) / (2 order - 1)
                                     + (order - 1) e^(-order / b) / (2 order - 1)),

and with discrete Laplace noise, whose log probabilities change by 1 / b everywhere, twice

    rdp(order) = 1 / (order - 1) log((e^((order - 1) / b) + e^(-order / b)) / (1 + e^(-1 / b))).

[mironov2017] I. Mironov, Rényi differential privacy, CSF 2017. Others: see
:mod:`privasr_k2.privacy.pate`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.privacy import checks, events, renyi
from privasr_k2.privacy.pate.best_order import NotForRelease, smallest_epsilon
from privasr_k2.privacy.pate.log_q import lnmax_log_q
from privasr_k2.privacy.pate.sensitivity import Change


def lnmax_event(
    *, scale: float, answers: int, discrete: bool, change: Change = Change.MOVES
) -> events.Event:
    """``answers`` answers of LNMax; each is (change.l1 / scale, 0)-private.

    Args:
        scale: b of the noise on each count, in votes.
        answers: how many are given at most, fixed before.
        discrete: whether the noise is discrete Laplace.
        change: what one unit changes in a query.
    """
    count = events.discrete_laplace(scale, 1) if discrete else events.laplace(scale)
    answer = events.composed(*[count] * change.counts)
    return events.repeated(answer, checks.whole("answers", answers, at_least=0))


def lnmax_rdp(
    orders: Sequence[float] | np.ndarray,
    *,
    scale: float,
    answers: int,
    discrete: bool,
    change: Change = Change.MOVES,
) -> np.ndarray:
    """The cost of ``answers`` answers to any votes, (A,) for A orders.

    It is at most answers change.l1 / scale.

    >>> lnmax_rdp([2.0, 1e6], scale=10.0, answers=10, discrete=False).round(4)
    array([0.1929, 2.    ])
    """
    event = lnmax_event(scale=scale, answers=answers, discrete=discrete, change=change)
    return renyi.rdp(event, checks.orders("orders", orders))


def theorem3_rdp(
    log_q: np.ndarray, order: float, *, scale: float, change: Change = Change.MOVES
) -> np.ndarray:
    """[papernot2017, theorem 3] as a divergence: (Q,), infinite where it does not hold.

    Args:
        log_q: (Q,) below 0.
        order: above 1; the paper's moment l is order - 1.
        scale: b of the noise.
    """
    epsilon = change.l1 / checks.number("scale", scale, above=0)
    holds = log_q < -np.logaddexp(epsilon, 0.0)
    kept = np.where(holds, log_q, -np.inf)
    log_keep = np.log1p(-np.exp(kept))
    likely = order * log_keep - (order - 1.0) * np.log1p(-np.exp(kept + epsilon))
    unlikely = kept + (order - 1.0) * epsilon
    bound = np.maximum(np.logaddexp(likely, unlikely) / (order - 1.0), 0.0)
    return np.where(holds, bound, np.inf)


def lnmax_epsilon(
    votes: ArrayLike,
    *,
    scale: float,
    discrete: bool,
    delta: float,
    orders: Sequence[float] | np.ndarray | None = None,
    change: Change = Change.MOVES,
) -> NotForRelease:
    """The cost of answers to these votes: the lesser of theorem 3 and the data-independent cost.

    Args:
        votes: (Q, C) whole numbers, Q answered queries, which were fixed before the first answer.
        scale: b of the noise on each count, in votes.
        discrete: whether the noise is discrete Laplace.
        orders: see :func:`~privasr_k2.privacy.pate.best_order.smallest_epsilon`.
        change: what one unit changes in a query.

    Raises:
        PrivacyError: counts, noise, delta or orders that cannot be used.

    >>> found = lnmax_epsilon([[250, 0, 0]] * 100, scale=20.0, discrete=False, delta=1e-5)
    >>> round(found.epsilon, 3), round(found.order, 1)
    (0.124, 63.6)
    """
    scale = checks.number("scale", scale, above=0)
    log_q = lnmax_log_q(votes, scale=scale, discrete=discrete)
    different, counts = np.unique(log_q, return_counts=True)

    def total(order: float) -> float:
        independent = lnmax_rdp([order], scale=scale, answers=1, discrete=discrete, change=change)
        dependent = theorem3_rdp(different, order, scale=scale, change=change)
        return float(np.minimum(dependent, independent) @ counts)

    return smallest_epsilon(total, delta=delta, orders=orders)
