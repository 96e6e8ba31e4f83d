"""Is what an attack found closer to those who were in the training than to those who were not?

Two pieces of speech are compared by dynamic time warping with symmetric steps [sakoe1978]: with
frames that are d(t, s) apart, the root mean square over features in deviations of public speech,

    D(t, s) = min(D(t - 1, s) + d, D(t, s - 1) + d, D(t - 1, s - 1) + 2 d),
    distance = D(T, S) / (T + S).

A speaker's distance to a word is the mean over the word's occurrences, less the mean over all
speakers of that word; then the mean over words. The *advantage* is the mean over other speakers
minus that over members. For the p-value members are permuted, which is exact however few there are:
of two and two speakers it is never below 1/3. For the interval speakers of both groups are drawn
with replacement, from at least :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` in each. What has
nothing to do with training (recording, accents) shows in the advantage on a randomly initialized
model as well, which is to be subtracted.

[sakoe1978] H. Sakoe and S. Chiba, Dynamic programming algorithm optimization for spoken word
recognition, IEEE Transactions on Acoustics, Speech, and Signal Processing 26 (1978).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privasr_k2.scoring.bootstrap import MIN_CLUSTERS

#: Speaker -> distance for each word.
Distances = Mapping[str, Mapping[str, float]]


def warped_distances(one: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """(N,) distances of one piece of speech to N others, all at once, along anti-diagonals.

    Args:
        one: (T, F), T at least 1.
        others: each (S_n, F), S_n at least 1.

    >>> line = np.arange(4.0)[:, None]
    >>> warped_distances(line, [line, np.repeat(line, 2, axis=0), line + 1]).round(4)
    array([0.   , 0.   , 0.375])
    """
    lengths = np.array([len(other) for other in others])
    width = int(lengths.max())
    padded = np.zeros((len(others), width, one.shape[1]))
    for row, other in zip(padded, others):
        row[: len(other)] = other
    # (N, T, S) by |a - b|^2 = |a|^2 + |b|^2 - 2 a b, which needs no array of (N, T, S, F).
    own, their = (one**2).sum(1)[None, :, None], (padded**2).sum(2)[:, None, :]
    squares = own + their - 2 * np.einsum("tf,nsf->nts", one, padded)
    apart = np.sqrt(np.maximum(squares, 0.0) / one.shape[1])
    # Cell (t, s) of diagonal t + s stands at place t + 1; place 0 is outside.
    diagonals = len(one) + width - 1
    times = np.arange(len(one))
    sums = np.full((diagonals, len(others), len(one) + 1), np.inf)
    for diagonal in range(diagonals):
        columns = diagonal - times
        inside = (columns >= 0) & (columns < width)
        step = np.where(inside, apart[:, times, np.clip(columns, 0, width - 1)], np.inf)  # (N, T)
        if diagonal == 0:
            sums[0, :, 1] = 2 * step[:, 0]  # the first cell is reached by a step of both
            continue
        before = sums[diagonal - 1]
        reached = np.minimum(before[:, :-1], before[:, 1:]) + step
        if diagonal > 1:
            reached = np.minimum(reached, sums[diagonal - 2][:, :-1] + 2 * step)
        sums[diagonal, :, 1:] = reached
    ends = sums[len(one) + lengths - 2, np.arange(len(others)), len(one)]
    return ends / (len(one) + lengths)


def prepared(features: np.ndarray, deviation: np.ndarray, *, utterance_mean: bool) -> np.ndarray:
    """(T, F) in deviations of public speech, less its own mean where that is asked for."""
    centered = features - features.mean(axis=0) if utterance_mean else features
    return centered / deviation


@dataclass(frozen=True)
class Advantage:
    """How much closer members are than others.

    Attributes:
        value: mean distance of the others minus that of the members.
        low, high: interval over speakers; ``None`` where a group has fewer than
            :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS`.
        p_value: two-sided, by permutation.
        members, others: numbers of speakers.
        member_distance, other_distance: plain means over speakers, of the mean over their words.
    """

    value: float
    low: float | None
    high: float | None
    p_value: float
    members: int
    others: int
    member_distance: float
    other_distance: float


def centered(members: Distances, others: Distances) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """(M,) and (N,) of the speakers, each word less its mean over all of them; and the words used.

    A word that one of the groups lacks is left out, and so are speakers without another one.

    >>> others = {"b": {"x": 3.0}, "c": {"x": 2.0, "y": 9.0}}
    >>> centered({"a": {"x": 1.0}}, others)
    (array([-1.]), array([1., 0.]), ['x'])
    """
    shared = sorted(set().union(*members.values()) & set().union(*others.values()))
    every = [*members.values(), *others.values()]
    means = {word: np.mean([of_one[word] for of_one in every if word in of_one]) for word in shared}

    def scores(group: Distances) -> np.ndarray:
        kept = [
            [of_one[word] - means[word] for word in shared if word in of_one]
            for of_one in group.values()
        ]
        return np.array([np.mean(of_one) for of_one in kept if of_one])

    return scores(members), scores(others), shared


def advantage(
    members: Distances,
    others: Distances,
    rng: np.random.Generator,
    *,
    permutations: int,
    replicates: int,
    confidence: float,
) -> Advantage | None:
    """The advantage with its interval and p-value; None where a group has fewer than two speakers.

    Args:
        members, others: of speakers in the training and of others, their distance for each word.
        permutations: for the p-value, which is at least 1 / (1 + permutations).
        replicates: draws of speakers for the interval.
    """
    inside, outside, shared = centered(members, others)
    if min(len(inside), len(outside)) < 2:
        return None
    value = float(outside.mean() - inside.mean())
    every = np.concatenate([inside, outside])
    order = rng.random((permutations, len(every))).argsort(axis=1)
    permuted = every[order]
    differences = permuted[:, len(inside) :].mean(1) - permuted[:, : len(inside)].mean(1)
    # Sums in another order differ in their last bits: ties are ties all the same.
    as_far = int(np.count_nonzero(np.abs(differences) >= abs(value) * (1 - 1e-9)))
    low, high = None, None
    if min(len(inside), len(outside)) >= MIN_CLUSTERS:
        drawn = _replicate_means(outside, rng, replicates)
        drawn -= _replicate_means(inside, rng, replicates)
        tail = (1 - confidence) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail]).tolist()
    plain = [
        float(np.mean([np.mean([of[word] for word in shared if word in of]) for of in group.values()
                       if any(word in of for word in shared)]))
        for group in (members, others)
    ]  # fmt: skip
    p_value = (1 + as_far) / (1 + permutations)
    return Advantage(value, low, high, p_value, len(inside), len(outside), *plain)


def _replicate_means(values: np.ndarray, rng: np.random.Generator, replicates: int) -> np.ndarray:
    number = len(values)
    return rng.multinomial(number, np.full(number, 1 / number), size=replicates) @ values / number


def minus(first: Distances, second: Distances) -> dict[str, dict[str, float]]:
    """The first distances less the second, for the speakers and words that both have."""
    return {
        speaker: {
            word: of_one[word] - second[speaker][word] for word in of_one if word in second[speaker]
        }
        for speaker, of_one in first.items()
        if speaker in second
    }
