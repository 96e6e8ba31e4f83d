"""Federated marginal personalization, simulated [liu2020, algorithm 1 and section 3.2].

The utterances of each client are cut in time into T + 1 even groups, rounds 0 to T. Round 0 is not
adapted; round t + 1 uses the client's own and the global marginal that round t left. Counts are of
the first pass, so one pass over the rounds serves all settings of lambda, alpha and beta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.sparse import csr_array

from privasr_k2.constraints import Checked, Count, FiniteOrZero, NotNegative, PositiveShare, one_of
from privasr_k2.federated.adapted_lm import LogFactors, Mixing, Nbest, log_ratios
from privasr_k2.federated.fmp_spoken import Spoken
from privasr_k2.federated.marginals import Marginals, no_marginals, ratio_to, utterance_counts
from privasr_k2.ragged import ranges
from privasr_k2.randomness import stream
from privasr_k2.recipe.progress import report_progress

REFRESHES = ("round", "utterance")


@dataclass(frozen=True)
class CacheConfig(Checked):
    """How marginals are counted [liu2020, algorithm 1]; see ``conf/fmp.yaml#fmp``."""

    rounds: Count
    kernel_bandwidth: NotNegative
    normalized_kernel: bool
    prior_words: FiniteOrZero
    decay: PositiveShare
    refresh: Annotated[str, one_of(*REFRESHES)]
    client_fraction: PositiveShare
    seed: int


def rounds_of(spoken: Spoken, rounds: int) -> np.ndarray:
    """(N,) the round, 0 to ``rounds``, of each utterance: each client's are cut evenly in time.

    A client with fewer utterances than groups leaves some rounds out.
    """
    sizes = np.bincount(spoken.clients, minlength=len(spoken.client_names))
    return spoken.places * (rounds + 1) // sizes[spoken.clients]


def sampled_clients(num_clients: int, config: CacheConfig) -> np.ndarray:
    """(T, C) bool: the clients averaged after rounds 0 to T - 1, equally many each time."""
    size = max(1, round(config.client_fraction * num_clients))
    sampled = np.zeros((config.rounds, num_clients), dtype=bool)
    for number in range(config.rounds):
        drawn = stream(config.seed, "fmp clients", number).permutation(num_clients)[:size]
        sampled[number, drawn] = True
    return sampled


@dataclass(frozen=True, eq=False)
class Epoch:
    """Utterances that are adapted with the same caches.

    Attributes:
        round: 1 to T.
        utterances: (n,) numbers, at most one a client where caches grow by utterances.
        caches: the clients' own marginals before them.
        shared: (V,) q/u - 1 of the last global marginal; None where one is given.
    """

    round: int
    utterances: np.ndarray
    caches: Marginals
    shared: np.ndarray | None


def epochs(
    spoken: Spoken, config: CacheConfig, background: np.ndarray, *, own_global: bool = True
) -> Iterator[Epoch]:
    """All rounds from 1 on, with the caches before their utterances.

    Args:
        background: (V,) u, above 0 for every counted word.
        own_global: average the clients' marginals [eq. 6]; false where released ones are used.
    """
    counts = utterance_counts(spoken, config.kernel_bandwidth, normalized=config.normalized_kernel)
    in_round = rounds_of(spoken, config.rounds)
    part = np.zeros(len(spoken), dtype=np.int64)
    if config.refresh == "utterance":
        # The place among the client's utterances of the round.
        order = np.lexsort((spoken.places, in_round, spoken.clients))
        keys = (spoken.clients * (config.rounds + 1) + in_round)[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        sizes = np.diff(np.append(starts, len(order)))
        part[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    drawn = sampled_clients(len(spoken.client_names), config) if own_global else None
    caches = no_marginals(len(spoken.client_names), spoken.numbers, config.prior_words)
    shared = None
    for number in range(config.rounds + 1):
        report_progress(number, config.rounds, "round")
        now = np.flatnonzero(in_round == number)
        by_part = now[np.argsort(part[now], kind="stable")]
        parts = np.split(by_part, np.cumsum(np.bincount(part[now]))[:-1])
        for group, utterances in enumerate(parts):
            if number:
                yield Epoch(number, np.sort(utterances), caches, shared)
            if number < config.rounds or group < len(parts) - 1:
                decay = config.decay if number and group == 0 else 1.0
                caches = caches.grown(_by_client(spoken, counts, utterances), decay)
        if drawn is not None and number < config.rounds:
            shared = ratio_to(caches.average(background, drawn[number]), background)


def _by_client(spoken: Spoken, counts: csr_array, utterances: np.ndarray) -> csr_array:
    """(C, V) the summed counts of some utterances."""
    where = (spoken.clients[utterances], np.arange(len(utterances)))
    shape = (len(spoken.client_names), len(utterances))
    return csr_array(csr_array((np.ones(len(utterances)), where), shape=shape) @ counts[utterances])


def global_marginals(spoken: Spoken, config: CacheConfig, background: np.ndarray) -> np.ndarray:
    """(T, V) the global marginal [eq. 6] after rounds 0 to T - 1, without noise."""
    marginals = np.zeros((config.rounds, len(background)))
    for epoch in epochs(spoken, config, background):
        assert epoch.shared is not None
        marginals[epoch.round - 1] = (epoch.shared + 1) * background
    return marginals


def token_log_ratios(
    spoken: Spoken,
    config: CacheConfig,
    background: np.ndarray,
    mixings: Sequence[Mixing],
    released: Sequence[np.ndarray | None],
) -> np.ndarray:
    """(W, K) ln g(w)/u(w) of all words and sentence ends of all hypotheses for K settings.

    It is 0 in round 0. Unnormalized scores [liu2020, section 2.1] are ``log_probs + lambda *
    this``, of any LM.

    Args:
        mixings: (K,); lambda is not applied, so that one call serves a grid of it.
        released: global marginals (T, V) of each setting; None: the exact average.
    """
    values = np.zeros((len(spoken.tokens), len(mixings)))
    shared_of = [None if given is None else ratio_to(given, background) for given in released]
    for epoch in epochs(spoken, config, background, own_global=_some_exact(released)):
        at = tokens_of(spoken, epoch.utterances)
        words = spoken.tokens[at]
        own = epoch.caches.ratios_at(spoken.clients[spoken.token_utterances[at]], words, background)
        for number, mixing in enumerate(mixings):
            shared = _shared(epoch, shared_of[number])
            values[at, number] = log_ratios(mixing, shared[words], own)
    return values


def _some_exact(released: Sequence[np.ndarray | None]) -> bool:
    return any(given is None for given in released)


def tokens_of(spoken: Spoken, utterances: np.ndarray) -> np.ndarray:
    """The indices of all tokens of some utterances, in their order."""
    starts = np.searchsorted(spoken.token_utterances, utterances)
    counts = np.searchsorted(spoken.token_utterances, utterances, side="right") - starts
    return ranges(starts, counts)


def _shared(epoch: Epoch, given: np.ndarray | None) -> np.ndarray:
    marginal = epoch.shared if given is None else given[epoch.round - 1]
    assert marginal is not None
    return marginal


#: Scores lists with adapted models: :func:`privasr_k2.federated.adapted_lm.adapted_log_probs` of
#: one model.
AdaptedScores = Callable[[Sequence[Nbest], np.ndarray, LogFactors], np.ndarray]


def normalized_log_probs(
    spoken: Spoken,
    nbests: Sequence[Nbest],
    score: AdaptedScores,
    config: CacheConfig,
    background: np.ndarray,
    mixings: Sequence[Mixing],
    released: Sequence[np.ndarray | None],
    scored: Spoken | None = None,
) -> np.ndarray:
    """(W, K) ln p'(w | h), with Z(h), of all words and sentence ends for K settings.

    Args:
        nbests: what is scored: hypotheses of all utterances in the order of ``spoken``; none
            without a path.
        score: of lists, with the factors of their states, which are numbers of clients.
        mixings, released: as for :func:`token_log_ratios`.
        scored: ``nbests`` as arrays, where they are others than those of ``spoken``, such as
            references; clients learn from ``spoken`` all the same.
    """
    scored = spoken if scored is None else scored
    log_probs = np.zeros((len(scored.tokens), len(mixings)))
    # Settings that differ in lambda alone share ln g/u: logarithms of all words for each state.
    keys = [(mixing.alpha, mixing.beta, id(given)) for mixing, given in zip(mixings, released)]
    different = dict(zip(keys, zip(mixings, released)))
    row_of = [[*different].index(key) for key in keys]
    lams = np.array([mixing.lam for mixing in mixings])[:, None]
    shared_of = [
        (mixing, None if given is None else ratio_to(given, background))
        for mixing, given in different.values()
    ]

    def fill(utterances: np.ndarray, factors: LogFactors) -> None:
        chosen = utterances[scored.num_hyps[utterances] > 0]
        if chosen.size:
            log_probs[tokens_of(scored, chosen)] = score(
                [nbests[i] for i in chosen.tolist()], scored.clients[chosen], factors
            )

    first = np.flatnonzero(rounds_of(spoken, config.rounds) == 0)
    fill(first, lambda client: np.zeros((len(mixings), len(background))))
    for epoch in epochs(spoken, config, background, own_global=_some_exact(released)):

        def factors(client: int, epoch: Epoch = epoch) -> np.ndarray:
            own = epoch.caches.ratio(client, background)
            ratios = [log_ratios(m, _shared(epoch, q), own) for m, q in shared_of]
            return lams * np.stack(ratios)[row_of]

        fill(epoch.utterances, factors)
    return log_probs


@dataclass(frozen=True, eq=False)
class ClientPerplexities:
    """Perplexity by client and round.

    Attributes:
        nats: (C, T + 1) minus the sum of ln p of the best hypotheses' words and ends.
        tokens: (C, T + 1) number of these.
    """

    nats: np.ndarray
    tokens: np.ndarray

    @property
    def by_round(self) -> np.ndarray:
        """(T + 1,) perplexity of each round, all clients together."""
        return np.exp(self.nats.sum(axis=0) / np.maximum(self.tokens.sum(axis=0), 1))

    @property
    def total(self) -> float:
        """Perplexity of everything."""
        return float(np.exp(self.nats.sum() / max(1, self.tokens.sum())))


def client_perplexities(spoken: Spoken, log_probs: np.ndarray, rounds: int) -> ClientPerplexities:
    """Perplexities of the hypotheses of rank 1 from normalized ``log_probs`` (W,)."""
    best = spoken.ranks[spoken.token_hyps] == 1
    utterances = spoken.token_utterances[best]
    cells = spoken.clients[utterances] * (rounds + 1) + rounds_of(spoken, rounds)[utterances]
    shape = (len(spoken.client_names), rounds + 1)
    size = shape[0] * shape[1]
    return ClientPerplexities(
        np.bincount(cells, -log_probs[best], minlength=size).reshape(shape),
        np.bincount(cells, minlength=size).reshape(shape),
    )
