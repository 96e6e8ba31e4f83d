"""Eq. 8 and 9 of [liu2020] as they were published, and what they are worth.

    q(w) = (sum_i c_i q_i(w) + r(w)) / (sum_i c_i + sum_w r(w)),   r(w) ~ Laplace(1 / epsilon)

The paper calls this (epsilon, 0)-private for utterances, with each sensitive word at most once in an
utterance. But the noise is on the count of *each* word, in *each* round, and counts run over the rounds: an
utterance whose hypotheses weigh l words (eq. 3) moves the counts by l in L1, in every release after it. With
n releases that is l n epsilon, and without a clip of l no number holds for all utterances. These functions
are for showing that beside a mechanism whose guarantee holds (:mod:`privasr_k2.federated.fmp_release`).
"""

from __future__ import annotations

import numpy as np

from privasr_k2.errors import PrivacyError
from privasr_k2.federated.fmp_release import unit_numbers
from privasr_k2.federated.fmp_simulation import CacheConfig, global_marginals, rounds_of
from privasr_k2.federated.fmp_spoken import Spoken
from privasr_k2.federated.marginals import utterance_counts
from privasr_k2.privacy import checks, events
from privasr_k2.privacy.accounting import Epsilon, Relation, account
from privasr_k2.privacy.noise import LaplaceNoise
from privasr_k2.privacy.release import Release
from privasr_k2.privacy.spending import Spending


def published_sums(spoken: Spoken, config: CacheConfig, background: np.ndarray) -> np.ndarray:
    """(T, V) sum_i c_i q_i(w) after rounds 0 to T - 1, without noise. Private.

    Raises:
        PrivacyError: a sample of clients, for which eq. 8 says nothing.
    """
    if config.client_rate < 1:
        raise PrivacyError(
            "client_rate", "1: eq. 8 sums over all clients", f"{config.client_rate:g}", "set it"
        )
    counts = utterance_counts(spoken, config.sigma, normalized=config.normalized_kernel)
    weights = np.asarray(counts.sum(axis=1)).reshape(-1)
    by_round = np.bincount(rounds_of(spoken, config.rounds), weights, minlength=config.rounds + 1)
    totals, running = [], 0.0
    for number in range(config.rounds):
        running = config.decay * running + float(by_round[number])
        totals.append(running)
    return global_marginals(spoken, config, background) * np.array(totals)[:, None]


def published_marginals(sums: np.ndarray, epsilon: float, begun: Release) -> np.ndarray:
    """(T, V) eq. 8 with the noise of eq. 9; values may be negative, as the paper leaves them.

    Args:
        sums: (T, V) of :func:`published_sums`.
        begun: a release of :func:`published_spending`.

    Raises:
        PrivacyError: epsilon 0, or totals that the noise has made 0 or less.
    """
    noise = LaplaceNoise(scale=1 / checks.number("epsilon", epsilon, above=0), l1_sensitivity=1.0)
    noisy = np.stack([noise.add(row, begun.noise("published", t)) for t, row in enumerate(sums)])
    totals = noisy.sum(axis=1, keepdims=True)
    if not (totals > 0).all():
        raise PrivacyError("eq. 8", "totals above 0", "the noise has made one 0 or less", "take more data")
    return noisy / totals


def usable(marginals: np.ndarray) -> np.ndarray:
    """(T, V) the marginals with negative values at 0, summing to 1: a power of a negative ratio is none."""
    cut = np.maximum(marginals, 0.0)
    return cut / cut.sum(axis=1, keepdims=True)


def published_event(epsilon: float, words: float, releases: int) -> events.Event:
    """What eq. 8 and 9 do to a unit that weighs ``words`` in each of ``releases`` running sums.

    >>> account(published_event(1.0, 7.0, 10), Relation.ADD_OR_REMOVE_ONE, 1e-12).value <= 70
    True
    """
    checks.number("epsilon", epsilon, above=0)
    once = events.laplace_vector(1 / (epsilon * checks.number("words", words, above=0)))
    return events.repeated(once, releases)


def weights_of_units(spoken: Spoken, config: CacheConfig, unit: str) -> np.ndarray:
    """(M,) by how much each unit that is counted moves one running sum at most, in words. Private."""
    counts = utterance_counts(spoken, config.sigma, normalized=config.normalized_kernel)
    weights = np.asarray(counts.sum(axis=1)).reshape(-1)
    weights[rounds_of(spoken, config.rounds) == config.rounds] = 0.0
    units, number = unit_numbers(spoken, unit)
    found = np.bincount(units, weights, minlength=number)
    return found[found > 0]


def published_worth(
    spoken: Spoken, config: CacheConfig, epsilon: float, delta: float, unit: str
) -> dict[str, Epsilon]:
    """What the published epsilon is for an average unit and for the heaviest, seen in all T releases.

    This looks at the data: for the owner's table, no release.
    """
    weights = weights_of_units(spoken, config, unit)
    kinds = {"average": float(weights.mean()), "largest": float(weights.max())}
    return {
        kind: account(published_event(epsilon, words, config.rounds), Relation.ADD_OR_REMOVE_ONE, delta)
        for kind, words in kinds.items()
    }


def published_spending(
    config: CacheConfig, *, epsilon: float, words: float, data: str, unit: str, units: int, delta: float
) -> Spending:
    """The entry of the ledger, true for units that weigh at most ``words``, a public number.

    Args:
        words: most words of a unit in a running sum; units beyond it are not covered.
    """
    return Spending(
        data=data,
        released=f"unigrams of {config.rounds} rounds by eq. 8 and 9 of liu2020, called epsilon {epsilon:g}",
        unit=unit,
        units=units,
        relation=Relation.ADD_OR_REMOVE_ONE,
        event=published_event(epsilon, words, config.rounds),
        sampling="all units in every round",
        delta=delta,
        does_not_cover=(
            f"a {unit} of more than {words:g} words: nothing is clipped",
            "when utterances came, and how many",
            "the personal marginal on the device, what is rescored with it, and whoever sees that",
        ),
    )
