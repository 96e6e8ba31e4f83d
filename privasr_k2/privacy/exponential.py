r"""The exponential mechanism on whole numbers, drawn exactly: report-noisy-max with Gumbel noise.

    P(i) = exp(u_i / b) / sum over j of exp(u_j / b)

Gumbel noise of scale b on every u_i, as real numbers, has its largest value at i with this chance.
Noise in floating point has not: only some floats are the logarithm of the logarithm of a random
number of 53 bits, and far differences come out too seldom or never. No noise is drawn here. One
uniform number U in [0, 1) decides a query: the first i with U S < c_i wins, c_i being the sum of
the weights w_j = exp(-(max u - u_j) / b) up to i, and S that of all. It is a real number of which
bits are drawn as they are needed:

- With 53 bits U is known but for 2^-53. In float64 w_j errs by at most (9 w_j + 1/2) 2^-53
  (division, and numpy's exp right to 4 units in the last place), and sums of C weights add C S
  2^-53. So where U S is further than 4 (C + 8) S 2^-53 from every c_i, the real numbers are in the
  same order.
- Elsewhere, which happens to one draw in 10^9 at 500 classes, 64 more bits are drawn, and all is
  computed again with as many decimals, rounded correctly, until the order is certain.

So the chances are those above, with nothing added to delta. Not proven: the error of numpy's exp
(tests compare it with 50-digit arithmetic), and that ChaCha20 cannot be told from randomness. That
some draws take longer is not covered.

What it costs, and why: :mod:`privasr_k2.privacy.bounded_range`.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.privacy import checks, events
from privasr_k2.privacy.discrete import whole_numbers
from privasr_k2.privacy.noise import unpredictable
from privasr_k2.randomness import NoiseStream

# Differences are exact as floats.
_LARGEST = 2**51
_BITS, _MORE_BITS = 53, 64
# Values that are looked at together: a few arrays of 8 MB.
_BLOCK = 1_000_000


@dataclass(frozen=True)
class ExponentialMechanism:
    """Chooses one of several classes, the likelier the larger its utility is.

    Args:
        scale: b, in whole numbers of utility; above 0.

    >>> ExponentialMechanism(4.0).event(spread=1)
    BoundedRangeDpEvent(eta=0.25)
    """

    scale: float

    def __post_init__(self) -> None:
        checks.number("scale", self.scale, at_least=1e-9, at_most=1e12)

    def event(self, *, spread: float) -> events.Event:
        """Event of one choice.

        Args:
            spread: the largest max d - min d, where one unit changes utilities by d: 1 where one
                count changes by 1, 2 where one rises and another one falls.
        """
        return events.bounded_range(checks.number("spread", spread, above=0) / self.scale)

    def chances(self, utilities: ArrayLike) -> np.ndarray:
        """The chances (..., C) of C classes, as floats: for plans and tests.

        >>> ExponentialMechanism(4.0).chances([8, 4, 0]).round(3)
        array([0.665, 0.245, 0.09 ])
        """
        values = np.asarray(utilities, dtype=np.float64)
        weights = np.exp((values - values.max(axis=-1, keepdims=True)) / self.scale)
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def choose(self, utilities: ArrayLike, sizes: np.ndarray, stream: NoiseStream) -> np.ndarray:
        """(Q,) the chosen class of each query, from 0.

        Args:
            utilities: whole numbers up to 2^51 in size, of all classes of all queries one after the
                other; private.
            sizes: (Q,) classes of each query, 1 or more; public.
            stream: of :func:`privasr_k2.randomness.noise_stream`, for these utilities alone; is
                moved on.

        Raises:
            PrivacyError: floats, numbers too large, or a generator that can be guessed.

        >>> from privasr_k2.randomness import new_secret, noise_stream
        >>> drawn = noise_stream(new_secret(), "doctest")
        >>> ExponentialMechanism(0.01).choose([1, 5, 3, 9, 2], np.array([3, 2]), drawn)
        array([1, 0])
        """
        stream = unpredictable(stream)
        values = whole_numbers("utilities", utilities, largest=_LARGEST).astype(np.int64)
        drawn = stream.uniform(len(sizes))
        chosen = np.zeros(len(sizes), dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        for size in np.unique(sizes).tolist():
            places = np.flatnonzero(sizes == size)
            for some in np.array_split(places, -(-len(places) * size // _BLOCK)):
                rows = values[starts[some][:, None] + np.arange(size)]
                chosen[some], unsure = self._choose(rows, drawn[some])
                for place in np.flatnonzero(unsure).tolist():
                    chosen[some[place]] = self._decide(
                        rows[place].tolist(), int(drawn[some[place]] * 2.0**_BITS), stream
                    )
        return chosen

    def _choose(self, rows: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(R,) classes of (R, C) utilities, and where floats do not tell."""
        below = rows.max(axis=1, keepdims=True) - rows
        sums = np.cumsum(np.exp(-(below / self.scale)), axis=1)
        total, classes = sums[:, -1], rows.shape[1]
        distances = (drawn * total)[:, None] - sums[:, :-1]
        tolerance = 4.0 * (classes + 8) * 2.0**-_BITS * total
        return (distances >= 0).sum(axis=1), (np.abs(distances) <= tolerance[:, None]).any(axis=1)

    def _decide(self, row: list[int], drawn: int, stream: NoiseStream) -> int:
        """As :meth:`_choose` for one query, with as many bits as it takes.

        With p decimals a weight errs by 2 * 10^-p at most, and the sums of C by 4 C^2 10^-p.
        """
        bits = _BITS
        while True:
            bits += _MORE_BITS
            drawn = (drawn << _MORE_BITS) + int.from_bytes(stream.random_bytes(8), "little")
            with decimal.localcontext(decimal.Context(prec=bits // 3 + 20)) as context:
                scale, top = decimal.Decimal(self.scale), max(row)
                weights = [(-(decimal.Decimal(top - u) / scale)).exp() for u in row]
                sums = list(accumulate(weights))
                error = 4 * len(row) ** 2 * decimal.Decimal(10) ** -context.prec
                least = sums[-1] * drawn / 2**bits - error
                most = sums[-1] * (drawn + 1) / 2**bits + error
                for i, until in enumerate(sums[:-1]):
                    if most < until - error:
                        return i
                    if least < until + error:  # not certain
                        break
                else:
                    return len(row) - 1
