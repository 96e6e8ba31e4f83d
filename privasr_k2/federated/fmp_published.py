"""Eq. 8 and 9 of [liu2020] as published, and the guarantee that really holds.

    q(w) = (sum_i c_i q_i(w) + r(w)) / (sum_i c_i + sum_w r(w)),   r(w) ~ Laplace(1 / epsilon)

The paper calls this (epsilon, 0)-private. But the noise is on each word in each round and counts
run over the rounds: an utterance of weight l (eq. 3) moves them by l in L1 in each of n releases,
so that it costs l n epsilon, and l is not clipped. With smoothing by a client's number of words, l
becomes l + 2 d (:func:`largest_move`).
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from privasr_k2.config import from_values
from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.federated.fmp_release import (
    AGAIN,
    header_of,
    read_counts,
    settings_in,
    unit_numbers,
    write_once,
)
from privasr_k2.federated.fmp_settings import PublishedConfig
from privasr_k2.federated.fmp_simulation import CacheConfig, global_marginals, rounds_of
from privasr_k2.federated.fmp_spoken import Spoken, WordNumbers, unit_name
from privasr_k2.federated.marginals import utterance_counts
from privasr_k2.privacy import checks, events
from privasr_k2.privacy.accounting import Epsilon, Relation, account
from privasr_k2.privacy.noise import LaplaceNoise
from privasr_k2.privacy.release import Release
from privasr_k2.privacy.spending import OnlyFor, Spending

log = logging.getLogger(__name__)


def published_sums(spoken: Spoken, config: CacheConfig, background: np.ndarray) -> np.ndarray:
    """(T, V) sum_i c_i q_i(w) after rounds 0 to T - 1, without noise. Private.

    Raises:
        PrivacyError: a sample of clients, for which eq. 8 says nothing.
    """
    if config.client_fraction < 1:
        raise PrivacyError("client_fraction", "1", f"{config.client_fraction:g}", "set it")
    counts = utterance_counts(spoken, config.kernel_bandwidth, normalized=config.normalized_kernel)
    weights = np.asarray(counts.sum(axis=1)).reshape(-1)
    by_round = np.bincount(rounds_of(spoken, config.rounds), weights, minlength=config.rounds + 1)
    totals = itertools.accumulate(by_round[:-1], lambda total, new: config.decay * total + new)
    return global_marginals(spoken, config, background) * np.array([*totals])[:, None]


def published_marginals(
    sums: np.ndarray, epsilon: float, background: np.ndarray, begun: Release
) -> tuple[np.ndarray, int]:
    """(T, V) eq. 8 with the noise of eq. 9; values may be negative, as in the paper.

    Where the noisy total of a round is 0 or less, eq. 8 gives no distribution: that round has the
    background. Total and decision are read from the noisy values alone, which is post-processing:
    the mark is as public as the release and costs nothing.

    Args:
        sums: (T, V) of :func:`published_sums`.
        background: (V,) u, public.
        begun: a release of :func:`spending_of`.

    Returns:
        the marginals, and the number of rounds that have the background.

    Raises:
        PrivacyError: epsilon 0.
    """
    noise = LaplaceNoise(scale=1 / checks.number("epsilon", epsilon, above=0), l1_sensitivity=1.0)
    noisy = np.stack([noise.add(row, begun.noise("published", t)) for t, row in enumerate(sums)])
    totals = noisy.sum(axis=1, keepdims=True)
    good = totals > 0
    marginals = np.where(good, noisy / np.where(good, totals, 1.0), background)
    return marginals, int((~good).sum())


def usable(marginals: np.ndarray) -> np.ndarray:
    """(T, V) the marginals with negative values at 0, summing to 1."""
    cut = np.maximum(marginals, 0.0)
    return cut / cut.sum(axis=1, keepdims=True)


def largest_move(words: ArrayLike, kinds: ArrayLike, prior_words: float) -> np.ndarray:
    """A bound in L1 on how far a unit moves c q(w), a client's share of eq. 8's sum.

    With C words counted, c(w) of them w, and a background of mass m: c q = C (c + m u) / (C + m).
    For a constant m, l more words move it by at most l. For m = D, the number of different words,
    let a = C / (C + D). From (C, D) to (C + l, D + d) words move it by a dl, the share of counts by
    at most max(a (1 - a) dl, a^2 dd), that of the background by (1 - a)^2 dl + a^2 dd: together at
    most dl + 2 dd.

    Args:
        words: l, by which the counts grow.
        kinds: at least d, the words that were not counted before.
        prior_words: m; 0: D.

    >>> largest_move([7.0, 3.0], [6, 0], 0.0).tolist(), largest_move(7.0, 6, 4.0).tolist()
    ([19.0, 3.0], 7.0)
    """
    words = np.asarray(words, dtype=np.float64)
    return words + 2.0 * np.asarray(kinds) if prior_words == 0 else words


def published_event(epsilon: float, moved: float, releases: int) -> events.Event:
    """The event of eq. 8 and 9 for a unit that moves each of ``releases`` sums by ``moved`` in L1.

    >>> account(published_event(1.0, 7.0, 10), Relation.ADD_OR_REMOVE_ONE, 1e-12).value <= 70
    True
    """
    checks.number("epsilon", epsilon, above=0)
    once = events.laplace_vector(1 / (epsilon * checks.number("moved", moved, above=0)))
    return events.repeated(once, releases)


def moves_of_units(spoken: Spoken, config: CacheConfig, unit: str) -> np.ndarray:
    """(M,) how far each counted unit moves one running sum at most, in words. Private."""
    counts = utterance_counts(spoken, config.kernel_bandwidth, normalized=config.normalized_kernel)
    counted = (rounds_of(spoken, config.rounds) < config.rounds).astype(np.float64)
    units, number = unit_numbers(spoken, unit)
    # A speaker may be heard in several meetings: a part of each of these clients.
    keys, size = units * len(spoken.client_names) + spoken.clients, len(spoken.client_names)
    parts, part_of = np.unique(keys, return_inverse=True)
    unit_of, client_of = np.divmod(parts, size)
    of_parts = csr_array(csr_array((counted, (part_of, np.arange(len(units))))) @ counts)
    of_parts.eliminate_zeros()
    words = np.asarray(of_parts.sum(axis=1)).reshape(-1)
    of_clients = np.bincount(client_of, words)[client_of]
    # A part that is all of its client leaves nothing to move.
    kinds = np.where(words < of_clients * (1 - 1e-12), np.diff(of_parts.indptr), 0)
    moves = np.bincount(unit_of, largest_move(words, kinds, config.prior_words), minlength=number)
    return moves[moves > 0]


def published_worth(
    spoken: Spoken, config: CacheConfig, epsilon: float, delta: float, unit: str
) -> dict[str, Epsilon]:
    """The epsilon of all T releases for an average and the heaviest unit. Private.

    Returns:
        ``average`` and ``largest`` with the smoothing of ``config``; ``paper_average`` and
        ``paper_largest`` by the words alone, as the paper counts.
    """
    constant = dataclasses.replace(config, prior_words=1.0)
    worth = {}
    for kind, caches in (("", config), ("paper_", constant)):
        moves = moves_of_units(spoken, caches, unit)
        for name, moved in (("average", moves.mean()), ("largest", moves.max())):
            event = published_event(epsilon, float(moved), config.rounds)
            worth[f"{kind}{name}"] = account(event, Relation.ADD_OR_REMOVE_ONE, delta)
    return worth


def spending_of(config: PublishedConfig, spoken: Spoken) -> Spending:
    """The entry of the ledger: no bound for any unit, and the cost for those of few words.

    ``words`` bounds a unit in a running sum, by weight and by number of different words.
    """
    moved = float(largest_move(config.words, config.words, config.prior_words))
    unit = unit_name(spoken, config.unit)
    return Spending(
        data=config.data,
        released=f"unigrams of {config.rounds} rounds by eq. 8 and 9 of liu2020, called epsilon"
        f" {config.epsilon:g}",
        unit=unit,
        units=unit_numbers(spoken, config.unit)[1],
        relation=Relation.ADD_OR_REMOVE_ONE,
        event=events.unprotected(),  # nothing is clipped
        sampling="all units in every round",
        delta=config.delta,
        does_not_cover=(
            f"a {unit} of more than {config.words:g} words: nothing is clipped",
            "when utterances came, and how many",
            "the personal marginal on the device, what is rescored with it, and whoever sees that",
        ),
        only_for=OnlyFor(
            f"each {unit} of at most {config.words:g} words",
            published_event(config.epsilon, moved, config.rounds),
        ),
    )


def write_published(
    path: Path, spoken: Spoken, config: PublishedConfig, background: np.ndarray, begun: Release
) -> None:
    """Write marginals with the noise of eq. 9 to ``*.safetensors``, once, and finish the release.

    Raises:
        PrivacyError: the release is finished, and its file is gone.
    """

    def draw() -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        sums = published_sums(spoken, config.caches, background)
        marginals, replaced = published_marginals(sums, config.epsilon, background, begun)
        if replaced:
            log.warning("%d of %d rounds have the background: their noisy totals are not above 0",
                        replaced, config.rounds)  # fmt: skip
        header = {"published": config, "background_rounds": replaced}
        return {"marginals": marginals}, {**header, "words": spoken.numbers.digest}

    write_once(path, begun, draw)


def is_published(path: Path) -> bool:
    """Whether a file of released marginals is one of eq. 8 and 9."""
    return "published" in header_of(path)


def read_published(path: Path, numbers: WordNumbers) -> tuple[np.ndarray, dict[str, Any]]:
    """The usable marginals (T, V), and the settings of their release with ``background_rounds``.

    Raises:
        DataError: another vocabulary.
    """
    header, marginals = read_counts(path, "marginals", numbers)
    config = from_values(PublishedConfig, settings_in(header, "published"), path)
    good = marginals.shape == (config.rounds, numbers.size) and np.isfinite(marginals).all()
    if not good or not (np.maximum(marginals, 0.0).sum(axis=1) > 0).all():
        expected = f"marginals of {config.rounds} rounds and {numbers.size} words"
        raise DataError(path, expected, f"others, of the shape {marginals.shape}", AGAIN)
    replaced = {"background_rounds": int(header.get("background_rounds", 0))}
    return usable(marginals), {**dataclasses.asdict(config), **replaced}
