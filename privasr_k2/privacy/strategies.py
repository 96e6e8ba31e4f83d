"""Strategies of correlated noise for the running sums of T rounds, and their sensitivities.

Values x (T, V) come round by round; wanted are the running sums A x with A[t, s] = decay^(t - s)
for s <= t. A strategy measures C x + z, z independent noise; the sums are B (C x + z) with B C = A.
C consists of whole numbers (by a scale), so that what one unit moves it by is known exactly.

    increments    C = I: each round by itself, with noise of its own; the errors add up.
    square_root   C = A^(1/2), lower triangular Toeplitz with the coefficients of
                  (1 - decay x)^(-1/2), cut off to multiples of 2^-16 [henzinger2023], of which the
                  first ``bands`` are kept [kalinin2024]: for Gaussian noise.
    blt           C as square_root, with coefficients that are sums of falling exponentials: 1, then
                  sum over i of weight_i decay_i^(t - 1), which :data:`BUFFERS` vectors keep account
                  of, however many rounds there are [mcmahan2024]. They are fitted to square_root's
                  by non-negative least squares, and counted rounded up.
    tree          C = the sums of aligned blocks of 1, 2, 4, ... rounds [dwork2010]: for T above 50.

B[t] is the least-squares estimate from the rows measured by round t, the last of each.

Sensitivity. A unit takes part in the rounds of a set S and adds to each a vector of norm 1 at most.
As C >= 0, the triangle inequality in each row of C x says that the row moves by no more than the
sum of C[row, s] over S, and a unit that sends one and the same vector reaches that. So the norm of
C 1_S is exact for S, and no smaller for a larger S. Only the worst S is to be found: of at most
``most`` rounds, any two at least ``apart`` = b rounds from each other.

- Toeplitz, coefficients c_0 >= c_1 >= ... >= 0. S* = {0, b, 2b, ...} is the worst. The inner
  product of columns s < t is the sum over n < T - t of c_n c_(n + t - s): it falls with t and with
  t - s. The i-th round of any S is no earlier than that of S*, and two of its rounds are no nearer:
  each of the products whose sum is the squared norm is no larger. In L1 the columns' sums fall with
  t.
- Tree, b a power of two. S* again. In blocks of m <= b rounds there is one of S at most, so that
  the level holds as many ones as S has rounds in whole blocks; S* has as many as fit. In blocks of
  m > b there are m / b at most, and S* fills one block after the other, which is the most for a sum
  of squares.
- Tree, other b: exact for units whose rounds are *exactly* b apart, or some of these, where
  ``most`` leaves none out. Blocks of m rounds then have one of two neighbouring numbers of them, so
  that a level's sum of squares grows with the number in whole blocks alone: S* has the most. Fewer
  of them are refused.

A unit in all T rounds is no case for square roots: the error is as with increments. With at most
``apart`` bands the columns of one unit do not meet: k rounds cost at most the root of k times one.

[henzinger2023] M. Henzinger et al., Almost tight error bounds on differentially private continual
counting, SODA 2023.
[kalinin2024] N. Kalinin and C. Lampert, Banded square root matrix factorization for differentially
private model training, NeurIPS 2024.
[mcmahan2024] H. B. McMahan, K. Pillutla, T. Steinke and A. Thakurta, A hassle-free algorithm for
strong differential privacy in federated learning systems, EMNLP 2024.
[dwork2010] C. Dwork et al., Differential privacy under continual observation, STOC 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from privasr_k2.privacy.clipping import Norm

STRATEGIES = ("increments", "square_root", "blt", "tree")
BUFFERS = 4
"""Vectors that noise of ``blt`` keeps, at most."""
# Of the exponentials: rounds in which they fall to 1/e, of the shortest, and by all rounds.
_SHORTEST, _LONGEST = 0.5, 0.3
# Weights and decays have so many bits behind the point: the same wherever they are fitted.
_FITTED_BITS = 24
_SCALE = 2**16
# Of which half are behind the point of a root.
_BITS = 40


@dataclass(frozen=True)
class Turns:
    """In which rounds one unit can be: any ``most``, of which any two are ``apart`` apart or more.

    Raises:
        ValueError: ``most`` or ``apart`` below 1.
    """

    most: int
    apart: int

    def __post_init__(self) -> None:
        if self.most < 1 or self.apart < 1:
            raise ValueError(f"most and apart must be at least 1, got {self.most} and {self.apart}")


@dataclass(frozen=True)
class Strategy:
    """Measurements of M rows for T rounds, and how running sums follow from them.

    Args:
        name: one of :data:`STRATEGIES`.
        rounds: T, at least 1.
        decay: of the running sums, a round, in (0, 1]; 1 forgets nothing.
        bands: of ``square_root``: coefficients that are kept, 1 to T; None = all.

    Raises:
        ValueError: a value out of range.

    >>> found = Strategy("square_root", 4, 1.0)
    >>> (found.encode[:, 0] / found.scale).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    >>> (found.decode @ found.encode).round(9).tolist()[2]
    [1.0, 1.0, 1.0, 0.0]
    """

    name: str
    rounds: int
    decay: float = 1.0
    bands: int | None = None

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise ValueError(f"strategy must be one of {' '.join(STRATEGIES)}, got {self.name!r}")
        if self.rounds < 1 or not 0 < self.decay <= 1:
            raise ValueError(
                f"rounds must be 1 or more and decay in (0, 1], got {self.rounds} and {self.decay}"
            )
        banded = self.name == "square_root" and 1 <= (self.bands or 0) <= self.rounds
        if self.bands is not None and not banded:
            allowed = f"bands are of square_root, and 1 to {self.rounds} rounds"
            raise ValueError(f"{allowed}, got {self.bands} for {self.name}")

    def describe(self) -> str:
        """For ledger and tables.

        >>> Strategy("square_root", 100, bands=20).describe()
        'square_root of 20 bands over 100 rounds'
        """
        bands = f" of {len(self.column)} bands" if self.name == "square_root" else ""
        return f"{self.name}{bands} over {self.rounds:,} rounds"

    @property
    def scale(self) -> int:
        """Value of 1 in :attr:`encode`."""
        return _SCALE if self.name in ("square_root", "blt") else 1

    @cached_property
    def column(self) -> np.ndarray:
        """(bands,) int64: the falling coefficients of a Toeplitz C times :attr:`scale`; 0 after.

        Raises:
            ValueError: a tree is not Toeplitz.
        """
        if self.name == "tree":
            raise ValueError("a tree has no coefficients")
        if self.name == "increments":
            return np.ones(1, dtype=np.int64)
        if self.name == "blt":
            weights, decays = self.buffers
            falling = decays ** np.arange(self.rounds - 1)[:, None] @ weights
            return np.ceil(np.concatenate([[1.0], falling]) * _SCALE).astype(np.int64)
        # It falls, as its cut-off values do.
        root = _root(self.rounds if self.bands is None else self.bands, self.decay)
        return np.floor(root * _SCALE).astype(np.int64)

    @cached_property
    def buffers(self) -> tuple[np.ndarray, np.ndarray]:
        """(B,) weights and (B,) decays of ``blt``, all above 0.

        >>> weights, decays = Strategy("blt", 1000).buffers
        >>> len(weights), round(float(weights.sum()), 3)
        (4, 0.499)
        """
        if self.rounds == 1:
            return np.zeros(0), np.zeros(0)
        longest = max(_LONGEST * self.rounds, 2 * _SHORTEST)
        decays = np.exp(-1 / np.geomspace(_SHORTEST, longest, BUFFERS))
        basis = decays ** np.arange(self.rounds - 1)[:, None]
        weights, _ = nnls(basis, _root(self.rounds, 1.0)[1:])
        weights, decays = (
            np.ldexp(np.rint(np.ldexp(v, _FITTED_BITS)), -_FITTED_BITS) for v in (weights, decays)
        )
        used = weights > 0
        return weights[used] * self.decay, decays[used] * self.decay

    @cached_property
    def encode(self) -> np.ndarray:
        """(M, T) int64 C, at least 0, times :attr:`scale`."""
        if self.name == "tree":
            return _blocks(self.rounds)
        return _toeplitz(np.pad(self.column, (0, self.rounds - len(self.column))))

    @cached_property
    def decode(self) -> np.ndarray:
        """(T, M) B / :attr:`scale`: each round's least-squares weights of what was measured."""
        sums = _toeplitz(self.decay ** np.arange(self.rounds))
        if self.name == "tree":
            return _tree_decode(sums)
        return solve_triangular(self.encode.astype(np.float64), sums.T, trans="T", lower=True).T

    def sensitivity(self, bound: int, turns: Turns, norm: Norm) -> float:
        """Sensitivity of ``encode @ x`` to one unit, rounded up.

        Args:
            bound: of the norm of what a unit adds in one round, at least 0.
            turns: in which rounds a unit can be.
            norm: of what is added and of the result.

        Raises:
            ValueError: a tree with turns that are not covered (see the module).

        >>> Strategy("increments", 10).sensitivity(3, Turns(most=4, apart=1), "l1")
        12.0
        """
        apart, is_dyadic = turns.apart, turns.apart & (turns.apart - 1) == 0
        if self.name == "tree" and not is_dyadic and turns.most * apart < self.rounds:
            raise ValueError(f"a tree needs turns a power of two apart, or all, got {turns}")
        moved = self._moved(np.arange(0, self.rounds, apart)[: turns.most]).tolist()
        if norm == "l1":
            return float(bound * sum(moved))
        squares = bound**2 * sum(value * value for value in moved)
        root = math.isqrt(squares << _BITS)
        return math.ldexp(root if root * root == squares << _BITS else root + 1, -_BITS // 2)

    def _moved(self, places: np.ndarray) -> np.ndarray:
        """C 1_S times :attr:`scale`, (M,) int64."""
        ones = np.zeros(self.rounds, dtype=np.int64)
        ones[places] = 1
        if self.name != "tree":
            return np.convolve(ones, self.column)[: self.rounds]
        sizes = [1 << level for level in range(self.rounds.bit_length())]
        return np.concatenate(
            [ones[: self.rounds // m * m].reshape(-1, m).sum(axis=1, dtype=np.int64) for m in sizes]
        )

    def error(self) -> np.ndarray:
        """(T,) standard deviation of each running sum for noise of 1 on every measurement."""
        return np.sqrt((self.decode**2).sum(axis=1))


def _root(length: int, decay: float) -> np.ndarray:
    """(length,) coefficients of (1 - decay x)^(-1/2): c_k = c_(k-1) (2 k - 1) / (2 k) decay."""
    steps = np.arange(1, length)
    return np.cumprod(np.concatenate([[1.0], (2 * steps - 1) / (2 * steps) * decay]))


def _toeplitz(column: np.ndarray) -> np.ndarray:
    """The lower triangular matrix whose first column is ``column``."""
    distance = np.subtract.outer(np.arange(len(column)), np.arange(len(column)))
    return np.where(distance >= 0, column[np.maximum(distance, 0)], 0)


def _blocks(rounds: int) -> np.ndarray:
    """(M, T) aligned blocks of 1, 2, 4, ... rounds that end within T."""
    blocks = []
    for size in (2**level for level in range(rounds.bit_length())):
        rows = np.zeros((rounds // size, rounds), dtype=np.int64)
        rows[np.repeat(np.arange(len(rows)), size), np.arange(len(rows) * size)] = 1
        blocks.append(rows)
    return np.concatenate(blocks)


def _tree_decode(sums: np.ndarray) -> np.ndarray:
    """(T, M): by round t the blocks are separate trees, one for each 1 in the bits of t + 1."""
    rounds = len(sums)
    levels = range(rounds.bit_length())
    begins = np.concatenate([[0], np.cumsum([rounds >> level for level in levels])])
    inverses = [np.linalg.pinv(_blocks(1 << level).astype(np.float64)) for level in levels]
    decode = np.zeros((rounds, int(begins[-1])))
    for number in range(rounds):
        start = 0
        for level in (level for level in reversed(levels) if (number + 1) >> level & 1):
            end = start + (1 << level)
            rows = [
                np.arange(begins[below] + (start >> below), begins[below] + (end >> below))
                for below in range(level + 1)
            ]
            decode[number, np.concatenate(rows)] = sums[number, start:end] @ inverses[level]
            start = end
    return decode
