r"""Sparse vector: which of many counts stay at a threshold; only those that do not are paid for.

A run draws a noisy threshold z = T + rho and goes through counts f_1, f_2, ... A count *passes*
where f_i + nu_i >= z, and the run ends at the first one that does not. All noise is discrete
Laplace, of scale b_1 for rho and b_2 for every nu_i [dwork2009, lyu2017]. With G(x) = P(nu >= x)
and L(x) = P(nu < x) the run ends at k with the chance

    P(k) = sum over z of P(z) prod over i < k of G(z - f_i) L(z - f_k).

f_i may follow from where earlier runs ended. P' is the same with f'_i = f_i - d_i. Three facts: a
step of z changes ln P(z) by 1 / b_1 at most, a step of x ln L(x) by 1 / b_2, and G falls.

**One way.** One unit gives or takes its part of *all* counts: d_i is 0 or 1 throughout.

- In P'(k) put z - 1 for z: G(z - 1 - f_i + d_i) >= G(z - f_i), L(z - 1 - f_k + d_k) >=
  e^(-1/b_2) L(z - f_k) and P(z - 1) >= e^(-1/b_1) P(z). So ln P / P' <= 1 / b_1 + 1 / b_2.
- As they stand, G(z - f_i) >= G(z - f_i + d_i) and L(z - f_k) >= e^(-1/b_2) L(z - f_k + d_k). So
  ln P / P' >= -1 / b_2.

The run has the range eta = 1 / b_1 + 2 / b_2 (:mod:`privasr_k2.privacy.bounded_range`).

**Either way.** d_i is -1, 0 or 1. With z - 1 for z, L(z - 1 - f_k + d_k) >= e^(-2/b_2) L(z - f_k),
and the same holds with P and P' exchanged: the run is (1 / b_1 + 2 / b_2, 0)-private.

A run that never ends has P = sum of P(z) prod of G, within the same bounds.

**What it is worth.** One end costs as much as nine answers by Gumbel noise of the same scale,
while noise alone ends runs, too. With 250 teachers, a vote given or not, epsilon 8 and delta 1e-5,
1,000 runs have noise of scale 28.7. Of 30,000 counts of 187 votes (75 %) with the threshold at
131, noise ends 534 runs on average, so that 466 counts, 1.6 %, may be others. A public model with
which teachers agree so often needs no votes. Therefore recipe ``pate`` has no such mechanism.

[dwork2009] C. Dwork et al., On the complexity of differentially private data release, STOC 2009.
[lyu2017] M. Lyu, D. Su, N. Li, Understanding the sparse vector technique for differential privacy,
VLDB 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.privacy import checks, events
from privasr_k2.privacy.discrete import DiscreteLaplaceNoise, whole_numbers

#: What becomes of a count.
PASSED, ENDED, NOT_ASKED = 1, 0, -1


@dataclass(frozen=True, kw_only=True)
class SparseVector:
    """Says which counts pass a threshold, until so many have not.

    Args:
        threshold: T, a whole number, chosen without looking at the counts.
        threshold_scale: b_1, in counts.
        count_scale: b_2.
        most: runs, hence counts that may end one; 1 or more, fixed before.

    >>> SparseVector(threshold=9, threshold_scale=10.0, count_scale=20.0, most=3).event(
    ...     one_way=True) == events.repeated(events.bounded_range(0.2), 3)
    True
    """

    threshold: int
    threshold_scale: float
    count_scale: float
    most: int

    def __post_init__(self) -> None:
        checks.whole("threshold", self.threshold, at_least=-(2**60), at_most=2**60)
        checks.whole("most", self.most, at_least=1)
        for name in ("threshold_scale", "count_scale"):
            checks.number(name, getattr(self, name), at_least=1e-9, at_most=1e12)

    def event(self, *, one_way: bool) -> events.Event:
        """Event of all runs.

        Args:
            one_way: whether adding one unit raises some counts by 1 and lowers none; else it may
                raise some and lower others, by 1.
        """
        cost = 1 / self.threshold_scale + 2 / self.count_scale
        run = events.bounded_range(cost) if one_way else events.pure(cost)
        return events.repeated(run, self.most)

    def passed(self, counts: ArrayLike) -> np.ndarray:
        """(Q,) :data:`PASSED`, :data:`ENDED` or, behind the last run, :data:`NOT_ASKED`.

        The noise is fresh at every call, and so are the runs: one call is what the event is for.

        Args:
            counts: (Q,) whole numbers up to 2^60 in size, in the order in which they are asked.

        Raises:
            PrivacyError: floats, or numbers too large.

        >>> some = SparseVector(threshold=50, threshold_scale=0.1, count_scale=0.1, most=1)
        >>> some.passed([90, 80, 10, 90])
        array([ 1,  1,  0, -1])
        """
        values = whole_numbers("counts", counts, largest=2**60).astype(np.int64)
        noisy = DiscreteLaplaceNoise(self.count_scale).add(values)
        found, start = np.full(len(values), NOT_ASKED), 0
        for _ in range(self.most):
            at = DiscreteLaplaceNoise(self.threshold_scale).add([self.threshold])[0]
            below = np.flatnonzero(noisy[start:] < at)
            found[start : start + int(below[0]) if len(below) else None] = PASSED
            if not len(below):
                break
            start += int(below[0]) + 1
            found[start - 1] = ENDED
        return found
