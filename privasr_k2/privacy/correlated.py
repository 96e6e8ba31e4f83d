"""Gaussian noise on one sum a round, correlated over rounds: for cohorts that cannot be sampled.

Rounds give sums x (T, P); what a round does may depend on all that was released before. A strategy
C (:mod:`privasr_k2.privacy.strategies`) measures y = C x + sigma z, z independent standard normal.
Round t releases x_t + sigma w_t, where w = D z with D C = I, D[t] using only what is measured by
round t: that is D y, post-processing of y, and no x of earlier rounds needs to be kept. In running
sums, which a server adds up, most of w cancels. This is DP-FTRL [kairouz2021] with a tree, and
matrix factorization [denisov2022] with banded square roots [kalinin2024] or buffers [mcmahan2024].

What it costs: exactly one Gaussian mechanism whose multiplier is sigma by the sensitivity Delta of
C x. Proof, for x that adapt to what was released. Without one unit, x becomes x'. Given the rows of
y so far, the next has mean m or m' = m - d, where d = (C (x - x'))[row] depends on those rows
alone, as x and x' do. Whatever was released, the d of all rows have squared norms of sum Delta^2 at
most; if it is less, let a last row make it Delta^2, which helps only who attacks. The privacy loss
of y under x is the sum over rows of d . z / sigma + d . d / (2 sigma^2). For any u the product over
rows of exp(i u d . z / sigma + u^2 d . d / (2 sigma^2)) has expectation 1, as each factor has,
given the rows before it. As the d . d sum to Delta^2 always, the sum of d . z / sigma has the
characteristic function of a normal of variance (Delta / sigma)^2: the loss has the distribution
that it has in a single Gaussian mechanism with that sensitivity, and so has the loss under x'. No
cohort needs to be drawn at random; none is amplified.

Several vectors with noise of one strategy are one vector, scaled so that the noise is alike. A
bound may change from round to round by what was released: x is then counted in bounds.

For floats the argument is that of :mod:`privasr_k2.privacy.noise`: what is released is rounded to
the same grid. Errors of z enter w times the sum of abs(D[t]) at most, and so grow what is stated
there: below 2.2 for square roots and buffers, up to 26 for trees of 1,024 rounds.

[kairouz2021] P. Kairouz et al., Practical and private (deep) learning without sampling or
shuffling, ICML 2021.
[denisov2022] S. Denisov et al., Improved differential privacy for SGD via optimal private linear
operators on adaptive streams, NeurIPS 2022.
[kalinin2024] N. Kalinin and C. Lampert, Banded square root matrix factorization for differentially
private model training, NeurIPS 2024.
[mcmahan2024]: see :mod:`privasr_k2.privacy.strategies`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.noise import GaussianNoise, standard_normal_vector
from privasr_k2.privacy.sampling import Streams
from privasr_k2.privacy.strategies import Strategy, Turns

# Standard normal values (P,) for the measurement of a level that ends in this round, from 0.
_Draw: TypeAlias = Callable[[int], np.ndarray]


def correlated_event(noise_multiplier: float, strategy: Strategy, turns: Turns) -> events.Event:
    """The event of all rounds together.

    Args:
        noise_multiplier: standard deviation of the noise on every measurement, by the most that one
            unit adds to one round's sum in L2.

    Raises:
        ValueError: turns that the strategy has no exact sensitivity for.

    >>> correlated_event(2.0, Strategy("increments", 100), Turns(most=4, apart=25))
    GaussianDpEvent(noise_multiplier=1.0)
    """
    return events.gaussian(noise_multiplier * strategy.scale / strategy.sensitivity(1, turns, "l2"))


class _Rows(Protocol):
    """The rows of w, one after the other."""

    def row(self, draw: _Draw) -> np.ndarray:
        """The next one, (P,)."""


class _ToeplitzRows:
    """c_0 w_t = z_t - sum over d >= 1 of c_d w_(t - d); it keeps as many rows as bands but one."""

    def __init__(self, coefficients: np.ndarray) -> None:
        self._first, self._others = float(coefficients[0]), coefficients[1:].tolist()
        self._past: deque[np.ndarray] = deque(maxlen=len(self._others))

    def row(self, draw: _Draw) -> np.ndarray:
        drawn = draw(0)
        for coefficient, past in zip(self._others, reversed(self._past)):
            drawn -= coefficient * past
        drawn /= self._first
        self._past.append(drawn)
        return drawn


class _BufferRows:
    """As :class:`_ToeplitzRows` for c_d = sum_i weight_i decay_i^(d - 1), c_0 = 1.

    Buffer i is the sum over s < t of decay_i^(t - 1 - s) w_s: a vector each, for all rounds before.
    """

    def __init__(self, weights: np.ndarray, decays: np.ndarray) -> None:
        self._weights, self._decays = weights, decays[:, None]
        self._buffers: np.ndarray | float = 0.0

    def row(self, draw: _Draw) -> np.ndarray:
        drawn = draw(0)
        if isinstance(self._buffers, np.ndarray):
            drawn -= self._weights @ self._buffers
        self._buffers = self._decays * self._buffers + drawn
        return drawn


class _TreeRows:
    """Differences of running sums, which are sums of whole blocks.

    A block's estimate is its own measurement and the sum of its halves', weighted by their
    precisions: of the variance v of an estimate one level below, 1 and 1 / (2 v).
    """

    def __init__(self, rounds: int) -> None:
        self._blocks: list[tuple[int, np.ndarray]] = []
        self._before: np.ndarray | float = 0.0
        variances = [1.0]
        while len(variances) < rounds.bit_length():
            variances.append(2 * variances[-1] / (2 * variances[-1] + 1))
        self._variances = variances

    def row(self, draw: _Draw) -> np.ndarray:
        level, drawn = 0, draw(0)
        while self._blocks and self._blocks[-1][0] == level:
            halves = self._blocks.pop()[1] + drawn
            level += 1
            own = self._variances[level]
            drawn = own * draw(level) + (1 - own) * halves
        self._blocks.append((level, drawn))
        total = sum((estimate for _, estimate in self._blocks[1:]), self._blocks[0][1])
        row, self._before = total - self._before, total
        return row


class RoundNoise:
    """The noise of a strategy on the vectors of one name, a vector a round.

    After a kill, what earlier rounds drew is drawn again from the release's key.

    Args:
        strategy: with ``increments`` no other round's noise is drawn.
        noise_multiplier: as of :func:`correlated_event`, the same in all rounds.
        name: of the vectors.
        streams: ``Release.noise``, asked once for each measurement: (round, name, level).

    >>> from privasr_k2.randomness import new_secret, noise_stream
    >>> secret = new_secret()
    >>> streams = lambda *names: noise_stream(secret, *names)
    >>> one, other = (RoundNoise(Strategy("tree", 8), 1.5, "sum", streams) for _ in range(2))
    >>> first = [one.add(number, np.zeros(3), bound=2.0) for number in range(4)]
    >>> bool((other.add(3, np.zeros(3), bound=2.0) == first[3]).all())
    True
    """

    def __init__(
        self, strategy: Strategy, noise_multiplier: float, name: str, streams: Streams
    ) -> None:
        self._strategy, self._multiplier = strategy, noise_multiplier
        self._name, self._streams = name, streams
        self._next = 0
        if strategy.name == "tree":
            self._rows: _Rows = _TreeRows(strategy.rounds)
        elif strategy.name == "blt":
            self._rows = _BufferRows(*strategy.buffers)
        else:
            self._rows = _ToeplitzRows(strategy.column / strategy.scale)

    def add(self, number: int, vector: ArrayLike, *, bound: float) -> np.ndarray:
        """The sum of round ``number`` with noise, rounded to its grid.

        Args:
            number: from 0, above that of the call before.
            vector: floats (P,), of one length in all rounds.
            bound: the most that one unit adds to it in L2; what was released before may set it.

        Raises:
            PrivacyError: a round out of order or range, or what ``GaussianNoise`` refuses.
        """
        if not self._next <= number < self._strategy.rounds:
            expected = f"a round from {self._next} to {self._strategy.rounds - 1}"
            way_out = "add noise to each round once, in their order"
            raise PrivacyError(f"noise for round {number}", expected, str(number), way_out)
        if self._strategy.name == "increments":
            self._next = number
        noise = GaussianNoise(noise_multiplier=self._multiplier, l2_sensitivity=bound)
        size = np.size(vector)
        for each in range(self._next, number + 1):
            row = self._rows.row(partial(self._drawn, size, each))
        self._next = number + 1
        return noise.add_drawn(vector, row)

    def _drawn(self, size: int, number: int, level: int) -> np.ndarray:
        return standard_normal_vector(self._streams(number, self._name, level), size)
