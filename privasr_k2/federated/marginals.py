"""Unigram marginals of clients and of all of them together [liu2020, sections 2.2 and 2.3].

    K(s)   = exp(-(rank(s) - 1)^2 / (2 sigma^2))                                          [eq. 3]
    q_i(w) = (sum_s K(s) c_s(w) + m u(w)) / (c_i + m)                                     [eq. 4]
    c_i    = sum_w sum_s K(s) c_s(w)                                                      [eq. 5]
    q(w)   = sum_i c_i q_i(w) / sum_i c_i                                                 [eq. 6]

The paper leaves the smoothing of eq. 4 open. Here the background u counts as m words; m = 0 stands
for the client's number of different words [witten1991]. Counts are sparse; sentence ends have no
marginal.

[liu2020] Z. Liu and F. Peng, Federated marginal personalization for ASR rescoring, arXiv
2012.00898.
[witten1991] I. Witten and T. Bell, The zero-frequency problem, IEEE Trans. Information Theory 37
(1991).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from privasr_k2.federated.fmp_spoken import Spoken, WordNumbers

#: Hypotheses of a smaller weight are not counted: their words would count in the smoothing mass.
LEAST_WEIGHT = 1e-6


def rank_kernel(ranks: ArrayLike, kernel_bandwidth: float) -> np.ndarray:
    """K(s) of hypotheses by rank [eq. 3]: 0 counts the best one alone, infinity all alike.

    What is below :data:`LEAST_WEIGHT` is exactly 0, so that no word of it is a different word of
    eq. 4's smoothing.

    >>> rank_kernel([1, 2, 3], 1.0).round(3), rank_kernel([1, 2], 0.0), rank_kernel([1, 2], np.inf)
    (array([1.   , 0.607, 0.135]), array([1., 0.]), array([1., 1.]))
    """
    if not kernel_bandwidth >= 0:
        raise ValueError(f"kernel_bandwidth must be 0 or more, got {kernel_bandwidth}")
    behind = np.asarray(ranks, dtype=np.float64) - 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        distance = np.where(behind == 0, 0.0, behind / kernel_bandwidth)
        weights = np.exp(-0.5 * distance**2)
    return np.where(weights < LEAST_WEIGHT, 0.0, weights)


def utterance_counts(spoken: Spoken, kernel_bandwidth: float, *, normalized: bool) -> csr_array:
    """(N, V) sum over the hypotheses of each utterance of K(s) c_s(w).

    Args:
        normalized: the kernel sums to 1 over an utterance's hypotheses, as a guarantee needs.
    """
    weights = rank_kernel(spoken.ranks, kernel_bandwidth)
    if normalized:
        sums = np.bincount(spoken.hyp_utterances, weights, minlength=len(spoken))
        weights = weights / sums[spoken.hyp_utterances]
    where = (spoken.hyp_utterances, np.arange(len(weights)))
    mixing = csr_array((weights, where), shape=(len(spoken), len(weights)))
    counts = csr_array(mixing @ spoken.hyp_counts)
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts


def background_share(totals: ArrayLike, kinds: ArrayLike, prior_words: float) -> np.ndarray:
    """m / (c + m) of eq. 4, 1 where nothing was counted; ``prior_words`` (m) 0 is ``kinds``.

    >>> background_share([0.0, 30.0], [0, 10], 0.0)
    array([1.  , 0.25])
    """
    if not 0 <= prior_words < np.inf:
        raise ValueError(f"prior_words must be at least 0, got {prior_words}")
    counted = np.asarray(totals, dtype=np.float64)
    mass = np.asarray(kinds if prior_words == 0 else prior_words, dtype=np.float64)
    empty = counted == 0
    return np.where(empty, 1.0, mass / np.where(empty, 1.0, counted + mass))


def smoothed(counts: np.ndarray, background: np.ndarray, prior_words: float) -> np.ndarray:
    """(V,) counts of at least 0 as a distribution, smoothed as eq. 4.

    >>> smoothed(np.array([3.0, 0.0]), np.array([0.5, 0.5]), 1.0).tolist()
    [0.875, 0.125]
    """
    total = float(counts.sum())
    share = float(background_share(total, np.count_nonzero(counts), prior_words))
    if total == 0:
        return background.copy()
    return counts * ((1 - share) / total) + share * background


def background_unigrams(
    sentences: Iterable[Sequence[str]], numbers: WordNumbers, prior_words: float
) -> np.ndarray:
    """(V,) u(w) of a text, smoothed towards even chances for all words; 0 for what is no word.

    >>> u = background_unigrams([["a", "a"]], WordNumbers({"a": 1, "b": 2}, 3, 0, (0,), None), 2.0)
    >>> u.tolist()
    [0.0, 0.75, 0.25]
    """
    words = [number for s in sentences for number in numbers.of(s, "the background text")]
    counts = np.bincount(np.array(words, dtype=np.int64), minlength=numbers.size)
    return smoothed(counts.astype(float), numbers.is_word / numbers.is_word.sum(), prior_words)


def ratio_to(marginals: np.ndarray, background: np.ndarray) -> np.ndarray:
    """(..., V) q(w) / u(w) - 1; exactly 0 where both are equal, and where u = 0."""
    known = background > 0
    return np.where(known, marginals / np.where(known, background, 1.0) - 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class Marginals:
    """The personal marginals of C clients: one sparse row of pseudo-counts each.

    Attributes:
        counts: (C, V) sums of K(s) c_s(w), running over the rounds.
        prior_words: m of eq. 4.
    """

    counts: csr_array
    prior_words: float

    @cached_property
    def totals(self) -> np.ndarray:
        """(C,) c_i [eq. 5]."""
        return np.asarray(self.counts.sum(axis=1)).reshape(-1)

    @cached_property
    def shares(self) -> np.ndarray:
        """(C,) the background's share of each q_i: 1 for a client without words."""
        return background_share(self.totals, np.diff(self.counts.indptr), self.prior_words)

    @cached_property
    def scales(self) -> np.ndarray:
        """(C,) 1 / (c_i + m): the share of one count in q_i."""
        return (1 - self.shares) / np.where(self.totals > 0, self.totals, 1.0)

    def dense(self, client: int, background: np.ndarray) -> np.ndarray:
        """(V,) q_i [eq. 4] of one client."""
        marginal = self.shares[client] * background
        row = slice(*self.counts.indptr[client : client + 2])
        marginal[self.counts.indices[row]] += self.scales[client] * self.counts.data[row]
        return marginal

    def ratio(self, client: int, background: np.ndarray) -> np.ndarray:
        """(V,) q_i(w) / u(w) - 1 of one client; exactly 0 for one without words."""
        ratios = np.where(background > 0, self.shares[client] - 1.0, 0.0)
        row = slice(*self.counts.indptr[client : client + 2])
        words = self.counts.indices[row]
        ratios[words] += self.scales[client] * self.counts.data[row] / background[words]
        return ratios

    def ratios_at(
        self, clients: np.ndarray, words: np.ndarray, background: np.ndarray
    ) -> np.ndarray:
        """(B,) q_i(w) / u(w) - 1 of ``clients`` (B,) at ``words`` (B,), without dense rows."""
        size = self.counts.shape[1]
        keys = np.repeat(np.arange(len(self.totals)), np.diff(self.counts.indptr)) * size
        keys += self.counts.indices
        wanted = clients * size + words
        rows = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        values = np.zeros(len(words))
        if len(keys):
            values = np.where(keys[rows] == wanted, self.counts.data[rows], 0.0)
        known = background[words] > 0
        own = self.scales[clients] * values / np.where(known, background[words], 1.0)
        return np.where(known, own + (self.shares[clients] - 1.0), 0.0)

    def average(self, background: np.ndarray, clients: np.ndarray | None = None) -> np.ndarray:
        """(V,) the global marginal [eq. 6] of ``clients`` (C,) bool, or all; u without words."""
        taking = np.ones(len(self.totals)) if clients is None else clients.astype(np.float64)
        total = float(taking @ self.totals)
        if total == 0:
            return background.copy()
        own = np.asarray((taking * (1 - self.shares)) @ self.counts).reshape(-1)
        return (own + float(taking @ (self.totals * self.shares)) * background) / total

    def grown(self, counts: csr_array, decay: float) -> Marginals:
        """The caches one step on: ``decay`` * these + ``counts`` (C, V)."""
        joined = csr_array((self.counts if decay == 1 else self.counts * decay) + counts)
        joined.eliminate_zeros()
        joined.sort_indices()
        return Marginals(joined, self.prior_words)


def no_marginals(num_clients: int, numbers: WordNumbers, prior_words: float) -> Marginals:
    """Caches in which nothing was counted yet."""
    return Marginals(csr_array((num_clients, numbers.size)), prior_words)
