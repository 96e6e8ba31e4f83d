"""Theorem 6 with the orders of proposition 10: what a clear vote costs [papernot2018].

A mechanism whose Rényi divergence of order alpha is at most alpha / sigma^2 (GNMax; the threshold
check with sigma = sqrt(2) sigma_1) and which gives another than its likely outcome with probability
at most q costs at order alpha

    1 / (alpha - 1) log((1 - q) A^(alpha - 1) + q B^(alpha - 1)),
    A = (1 - q) / (1 - (q e^eps2)^((mu2 - 1) / mu2)),    B = e^eps1 / q^(1 / (mu1 - 1)),

where eps1 = mu1 / sigma^2 and eps2 = mu2 / sigma^2 are its divergences at two other orders. Both A
and B are smallest at mu2 = sigma u and mu1 = mu2 + 1, with u = sqrt(log 1/q) [proposition 10]. Put
in, they become

    A = (1 - q) / (1 - exp(-(u - 1 / sigma)^2)),    log B = 2 u / sigma + 1 / sigma^2.

It holds where alpha <= mu1, mu2 > 1, and q is so small that the expression grows with q:

    log q <= (mu2 - 1) eps2 - mu2 log(mu1 / (mu1 - 1) mu2 / (mu2 - 1)),

which is 2 u - 1 / sigma >= sigma log((mu2 + 1) / (mu2 - 1)). Elsewhere, and where it is smaller,
the data-independent alpha / sigma^2 is taken. What is bounded is the divergence of the answer on
the data at hand from that on any neighbouring data; the same bound at the neighbour may be larger.
It is therefore private.

References: see :mod:`privasr_k2.privacy.pate`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privasr_k2.privacy import checks

# Stands for every smaller log_q, -inf among them, which has no finite orders mu1 and mu2.
_SMALLEST_LOG_Q = -1e200


@dataclass(frozen=True)
class Theorem6:
    """The parts of the bound that do not depend on the order, for Q queries; made by
    :func:`theorem6`.

    Attributes:
        sigma: divergences of order alpha are at most alpha / sigma^2 without looking at the data.
        u: (Q,) sqrt(-log_q).
        log_keep: (Q,) log(1 - q).
        log_rest: (Q,) log(1 - exp(-(u - 1 / sigma)^2)).
        log_b: (Q,) log B.
        mu1: (Q,) the largest order; 0 where the theorem does not hold at any order.
    """

    sigma: float
    u: np.ndarray
    log_keep: np.ndarray
    log_rest: np.ndarray
    log_b: np.ndarray
    mu1: np.ndarray

    def unchecked(self, order: float) -> np.ndarray:
        """The theorem's expression at one order, whether it is a bound or not: (Q,)."""
        likely = order * self.log_keep - (order - 1.0) * self.log_rest
        ratio = (order - 1.0) * self.log_b - self.u**2 - likely
        # As logaddexp, which takes three times as long; infinite where it overflows, and then not
        # used.
        with np.errstate(over="ignore"):
            np.log1p(np.exp(ratio, out=ratio), out=ratio)
        return np.maximum((likely + ratio) / (order - 1.0), 0.0)

    def rdp(self, order: float) -> np.ndarray:
        """Return the cost of each query at one order: (Q,), at most order / sigma^2."""
        independent = order / self.sigma / self.sigma
        bound = np.minimum(self.unchecked(order), independent)
        return np.where(order <= self.mu1, bound, independent)


def theorem6(log_q: np.ndarray, *, sigma: float) -> Theorem6:
    """The theorem for queries with outcomes as unlikely as ``log_q``.

    Args:
        log_q: (Q,) below 0.
        sigma: above 0; see the module.

    >>> theorem6(np.array([-5.0, -0.5]), sigma=10.0).rdp(3.0).round(5)
    array([0.00868, 0.03   ])
    """
    sigma = checks.number("sigma", sigma, above=0)
    log_q = np.maximum(log_q, _SMALLEST_LOG_Q)
    u = np.sqrt(-log_q)
    mu2 = sigma * u
    possible = mu2 > 1.0
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_rest = _log_one_minus_exp(-((u - 1.0 / sigma) ** 2))
        grows = 2.0 * u - 1.0 / sigma >= sigma * np.log1p(2.0 / (mu2 - 1.0))
        log_b = 2.0 * u / sigma + 1.0 / sigma / sigma
    return Theorem6(
        sigma=sigma,
        u=u,
        log_keep=_log_one_minus_exp(log_q),
        log_rest=np.where(possible, log_rest, 0.0),
        log_b=log_b,
        mu1=np.where(possible & grows, mu2 + 1.0, 0.0),
    )


def _log_one_minus_exp(x: np.ndarray) -> np.ndarray:
    """log(1 - e^x) for x of 0 or below, without cancellation at either end."""
    return np.where(x > -0.5, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))
