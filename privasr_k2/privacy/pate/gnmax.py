"""GNMax: the class with most votes after Gaussian noise on every count [papernot2018].

One unit changes the counts by s in L2: by sqrt(2) where a vote moves from one class to another, by
1 where it is given or not (:mod:`privasr_k2.privacy.pate.sensitivity`). So the costs are

    GNMax                    order s^2 / (2 sigma^2)           an answered query [proposition 8]
    threshold check          order / (2 threshold_sigma^2)     an asked query: one count
    noisy posterior vectors  order s^2 largest_weight^2 / (2 sigma^2)            a vector

Confident-GNMax first checks whether the largest count and noise reach a threshold. ``answers`` in
its event is a cap that was fixed before: the number of answers depends on noisy checks, and is
covered up to that cap.

The functions that see votes give costs that depend on them, :class:`NotForRelease`. They hold for
queries that were fixed before: where earlier answers choose a query, other answers would have led
to other votes, whose costs are not in the sum.

References: see :mod:`privasr_k2.privacy.pate`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, events
from privasr_k2.privacy.pate.best_order import NotForRelease, smallest_epsilon
from privasr_k2.privacy.pate.log_q import gnmax_log_q, threshold_log_q
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.privacy.pate.theorem6 import theorem6

ROOT2 = 2.0**0.5


def gnmax_event(
    *, sigma: float, answers: int, discrete: bool, change: Change = Change.MOVES
) -> events.Event:
    """``answers`` answers of GNMax.

    Args:
        sigma: standard deviation of the noise on each count, in votes.
        answers: how many are given at most.
        discrete: whether the noise is discrete Gaussian: then one or two whole numbers change by 1.
        change: what one unit changes in a query.

    >>> gnmax_event(sigma=40.0, answers=100, discrete=False) == events.repeated(
    ...     events.gaussian(40.0 / 2**0.5), 100)
    True
    """
    sigma = checks.number("sigma", sigma, above=0)
    if discrete:
        count = events.discrete_gaussian(sigma, 1)
        answer = events.composed(*[count] * change.counts)
    else:
        answer = events.gaussian(sigma / change.l2)
    return events.repeated(answer, checks.whole("answers", answers, at_least=0))


def confident_gnmax_event(
    *,
    sigma: float,
    answers: int,
    threshold_sigma: float,
    asked: int,
    discrete: bool,
    change: Change = Change.MOVES,
) -> events.Event:
    """At most ``answers`` answers to ``asked`` queries that passed a noisy threshold.

    Args:
        sigma: standard deviation of the noise on each count of an answered query.
        answers: a cap fixed before. Not the number of answers given: that depends on noise.
        threshold_sigma: standard deviation of the noise of the check.
        asked: how many queries are checked at most, fixed before; ``answers`` or more.
        discrete: whether both noises are discrete Gaussian.
        change: what one unit changes in a query; the largest count changes by 1 either way.
    """
    asked = checks.whole("asked", asked, at_least=0)
    answers = checks.whole("answers", answers, at_least=0, at_most=asked)
    threshold_sigma = checks.number("threshold_sigma", threshold_sigma, above=0)
    one_count = events.discrete_gaussian(threshold_sigma, 1)
    check = one_count if discrete else events.gaussian(threshold_sigma)
    answering = gnmax_event(sigma=sigma, answers=answers, discrete=discrete, change=change)
    return events.composed(answering, events.repeated(check, asked))


def posteriors_event(
    *, sigma: float, largest_weight: float, vectors: int, change: Change = Change.MOVES
) -> events.Event:
    """Sums of the teachers' posteriors, each times its weight, with Gaussian noise.

    Two distributions over classes are at most sqrt(2) apart in L2, and one from nothing at most 1.
    Where there is a vector for each frame, a query is a frame and not an utterance.

    Args:
        sigma: standard deviation of the noise on each entry.
        largest_weight: of any teacher, fixed without looking at the data; 1 / teachers for a mean.
        vectors: how many are released.
        change: what one unit changes in a query.
    """
    sigma = checks.number("sigma", sigma, above=0)
    sensitivity = change.l2 * checks.number("largest_weight", largest_weight, above=0)
    step = events.gaussian(sigma / sensitivity)
    return events.repeated(step, checks.whole("vectors", vectors, at_least=0))


def gnmax_epsilon(
    votes: ArrayLike,
    *,
    sigma: float,
    discrete: bool,
    delta: float,
    orders: Sequence[float] | np.ndarray | None = None,
    change: Change = Change.MOVES,
) -> NotForRelease:
    """The cost of answers to these votes: per query the lesser of theorem 6 and proposition 8.

    Args:
        votes: (Q, C) whole numbers, Q answered queries. 16 bits a count are enough and save memory.
        sigma: standard deviation of the noise on each count, in votes.
        discrete: whether the noise is discrete Gaussian.
        orders: see :func:`~privasr_k2.privacy.pate.best_order.smallest_epsilon`.
        change: what one unit changes in a query.

    Raises:
        PrivacyError: counts, noise, delta or orders that cannot be used.

    >>> found = gnmax_epsilon([[100, 0, 0]] * 1000, sigma=12.0, discrete=False, delta=1e-5)
    >>> round(found.epsilon, 3), round(found.order, 1)
    (0.512, 17.4)
    """
    log_q = gnmax_log_q(votes, sigma=sigma, discrete=discrete)
    costs = GaussianCosts(log_q, sigma=ROOT2 / change.l2 * sigma, at_most=len(log_q))
    return smallest_epsilon(costs.total, delta=delta, orders=orders)


def confident_gnmax_epsilon(
    votes: ArrayLike,
    *,
    sigma: float,
    answers: int,
    threshold: float,
    threshold_sigma: float,
    discrete: bool,
    delta: float,
    orders: Sequence[float] | np.ndarray | None = None,
    change: Change = Change.MOVES,
) -> NotForRelease:
    """The cost of asking all these queries and giving at most ``answers`` answers.

    Every check is in the sum, and the ``answers`` dearest answers: whichever are answered, it is
    never more. [papernot2018] adds what was answered, or weighs each query with its chance to be
    answered; neither bounds what other outcomes of the checks would have cost.

    Args:
        votes: (Q, C) whole numbers of all Q queries that were asked, answered or not.
        answers: the cap on answers that was fixed before; 0 to Q.
        threshold, threshold_sigma: of the check and its noise, in votes.
        sigma, discrete, delta, orders, change: as of :func:`gnmax_epsilon`.

    Raises:
        PrivacyError: counts, noise, numbers of answers, delta or orders that cannot be used.
    """
    log_q = gnmax_log_q(votes, sigma=sigma, discrete=discrete)
    cap = _cap(answers, len(log_q))
    answering = GaussianCosts(log_q, sigma=ROOT2 / change.l2 * sigma, at_most=cap)
    largest = np.asarray(votes).max(axis=1)
    log_q = threshold_log_q(largest, threshold=threshold, sigma=threshold_sigma, discrete=discrete)
    checking = GaussianCosts(log_q, sigma=ROOT2 * threshold_sigma, at_most=len(log_q))

    def total(order: float) -> float:
        return checking.total(order) + answering.total(order)

    return smallest_epsilon(total, delta=delta, orders=orders)


class GaussianCosts:
    """Sums of :mod:`theorem 6 <privasr_k2.privacy.pate.theorem6>` over (Q,) queries of ``log_q``.

    A query costs at most order / sigma^2, sigma being by 1 / sqrt(2) of what one unit changes in
    L2; ``at_most`` may be answered.
    """

    def __init__(self, log_q: np.ndarray, *, sigma: float, at_most: int) -> None:
        self._at_most = at_most
        different, self._counts = np.unique(log_q, return_counts=True)
        self._bound = theorem6(different, sigma=sigma)

    def total(self, order: float) -> float:
        """The sum of the ``at_most`` largest costs at one order."""
        return largest_sum(self._bound.rdp(order), self._counts, self._at_most)


def largest_sum(costs: np.ndarray, counts: np.ndarray, at_most: int) -> float:
    """The sum of the ``at_most`` largest costs, of which each occurs ``counts`` times.

    >>> largest_sum(np.array([1.0, 5.0, 2.0]), np.array([9, 2, 3]), 4)
    14.0
    """
    if at_most >= counts.sum():
        return float(costs @ counts)
    falling = np.argsort(-costs, kind="stable")
    before = np.cumsum(counts[falling]) - counts[falling]
    taken = np.clip(at_most - before, 0, counts[falling])
    return float(costs[falling] @ taken)


def _cap(answers: int, asked: int) -> int:
    cap = checks.whole("answers", answers, at_least=0)
    if cap > asked:
        expected = f"at most as many as were asked ({asked})"
        raise PrivacyError("answers", expected, str(cap), "give votes of all asked queries")
    return cap
