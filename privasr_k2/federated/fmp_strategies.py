"""What is measured with noise so that the running sums of T releases come out well.

Counts x (T, V) come round by round; wanted are the running sums A x with A[t, s] = decay^(t - s) for s <= t.
A strategy measures C x + z, z independent discrete noise on whole numbers, and answers with B (C x + z),
where B C = A: that is post-processing. C consists of whole numbers, so that C x is exact, and what one unit
moves it by is known exactly.

    increments    C = I: each round's counts, with noise of their own; the errors add up.
    square_root   C = A^(1/2), lower triangular Toeplitz with the coefficients of (1 - decay x)^(-1/2), cut
                  off to multiples of 2^-16 [henzinger2023]: for Gaussian noise and units in one round.
    tree          C = the sums of aligned blocks of 1, 2, 4, ... rounds [dwork2010]: for T above about 50.

B[t] is the least-squares estimate from what was measured by round t. C is at least 0 everywhere, and a unit
in any R rounds moves C x by no more than one in the first R: in the Toeplitz case the inner products of
columns fall with their distance and their place; in the tree every level holds the most of R leaves side by
side in its first blocks. Tests try all sets of rounds.

A unit in all T rounds is no case for square roots: its columns add up, and the error is as with increments.

[henzinger2023] M. Henzinger, J. Upadhyay and S. Upadhyay, Almost tight error bounds on differentially private
continual counting, SODA 2023.
[dwork2010] C. Dwork, M. Naor, T. Pitassi and G. Rothblum, Differential privacy under continual observation,
STOC 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privasr_k2.privacy.clipping import Norm

STRATEGIES = ("increments", "square_root", "tree")
_SCALE = 2**16
# Of which half are behind the point of a root.
_BITS = 40


@dataclass(frozen=True, eq=False)
class Strategy:
    """Measurements of M rows and how running sums follow from them.

    Attributes:
        name: one of :data:`STRATEGIES`.
        encode: (M, T) int64 C, at least 0, times ``scale``.
        scale: what 1 is in ``encode``.
        decode: (T, M) B / scale.
    """

    name: str
    encode: np.ndarray
    scale: int
    decode: np.ndarray

    @property
    def rounds(self) -> int:
        """T."""
        return self.encode.shape[1]

    def sensitivity(self, bound: int, max_rounds: int, norm: Norm) -> float:
        """How far one unit moves ``encode @ x``, rounded up.

        Args:
            bound: of the norm of a unit's counts (whole numbers, at least 0) in one round.
            max_rounds: R, of how many rounds a unit has counts.
            norm: of counts and of the result.

        >>> make_strategy("increments", 10, 1.0).sensitivity(3, 4, "l1")
        12.0
        """
        moved = self.encode[:, : min(max_rounds, self.rounds)].sum(axis=1).tolist()
        if norm == "l1":
            return float(bound * sum(moved))
        squares = bound**2 * sum(value * value for value in moved)
        root = math.isqrt(squares << _BITS)
        return math.ldexp(root if root * root == squares << _BITS else root + 1, -_BITS // 2)

    def error(self) -> np.ndarray:
        """(T,) standard deviation of each running sum for noise of 1 on every measurement."""
        return np.sqrt((self.decode**2).sum(axis=1))


def make_strategy(name: str, rounds: int, decay: float) -> Strategy:
    """The strategy for T = ``rounds`` releases.

    >>> found = make_strategy("square_root", 4, 1.0)
    >>> (found.encode[:, 0] / found.scale).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    >>> (found.decode @ found.encode).round(9).tolist()[2]
    [1.0, 1.0, 1.0, 0.0]
    """
    if name not in STRATEGIES:
        raise ValueError(f"strategy must be one of {' '.join(STRATEGIES)}, got {name!r}")
    if rounds < 1 or not 0 < decay <= 1:
        raise ValueError(f"rounds must be 1 or more and decay in (0, 1], got {rounds} and {decay}")
    if name == "square_root":
        # c_k = c_(k-1) (2 k - 1) / (2 k) decay; it falls, as its cut-off values do.
        steps = np.arange(1, rounds)
        rising = np.cumprod(np.concatenate([[1.0], (2 * steps - 1) / (2 * steps) * decay]))
        encode, scale = _toeplitz(np.floor(rising * _SCALE).astype(np.int64)), _SCALE
    elif name == "tree":
        encode, scale = _blocks(rounds), 1
    else:
        encode, scale = np.eye(rounds, dtype=np.int64), 1
    return Strategy(name, encode, scale, _decode(encode, _toeplitz(decay ** np.arange(rounds))))


def _toeplitz(column: np.ndarray) -> np.ndarray:
    """The lower triangular matrix whose first column is ``column``."""
    distance = np.subtract.outer(np.arange(len(column)), np.arange(len(column)))
    return np.where(distance >= 0, column[np.maximum(distance, 0)], 0)


def _blocks(rounds: int) -> np.ndarray:
    """(M, T) aligned blocks of 1, 2, 4, ... rounds that end within T."""
    found = []
    for size in (2**level for level in range(rounds.bit_length())):
        rows = np.zeros((rounds // size, rounds), dtype=np.int64)
        rows[np.repeat(np.arange(len(rows)), size), np.arange(len(rows) * size)] = 1
        found.append(rows)
    return np.concatenate(found)


def _decode(encode: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """(T, M): for each round the least-squares weights of the measurements that are there by then."""
    found = np.zeros(encode.T.shape)
    last = encode.shape[1] - 1 - np.argmax(encode[:, ::-1] > 0, axis=1)
    for number, wanted in enumerate(sums):
        there = last <= number
        found[number, there] = wanted[: number + 1] @ np.linalg.pinv(
            encode[there, : number + 1].astype(np.float64)
        )
    return found
