"""A slow twin of federated marginal personalization: dictionaries and loops."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict

import numpy as np
import pytest

from privasr_k2.federated.adapted_lm import LogFactors, Mixing, Nbest
from privasr_k2.federated.fmp_release import increments_of
from privasr_k2.federated.fmp_simulation import (
    CacheConfig,
    client_perplexities,
    global_marginals,
    normalized_log_probs,
    rounds_of,
    token_log_ratios,
)
from privasr_k2.federated.fmp_spoken import Spoken, Turn
from privasr_k2.scoring.nbest_lists import NbestLists
from tests.support.fmp_release import mechanism as made_mechanism
from tests.support.fmp_tiny import CACHES, NUMBERS, WORDS, random_world

Counts = dict[str, float]
WEIGHTS = [(0.5, 0.5, 0.25), (0.3, 0.0, 0.75), (1.0, 0.75, 0.0), (0.8, 0.4, 0.6), (1.1, 0.5, 0.25)]
MIXINGS = [Mixing(*weights) for weights in WEIGHTS]
U = dict(zip(WORDS, np.random.default_rng(9).dirichlet(np.ones(8) * 3).tolist()))
BACKGROUND = np.array([0.0, *U.values()])


def slow_rounds(timeline: list[Turn], rounds: int) -> dict[str, int]:
    """The round of each utterance."""
    found = {}
    for client in {turn.client for turn in timeline}:
        own = [turn.id for turn in timeline if turn.client == client]
        for place, name in enumerate(own):
            found[name] = math.floor(place * (rounds + 1) / len(own))
    return found


def slow_utterance(
    lists: NbestLists, name: str, kernel_bandwidth: float, normalized: bool
) -> Counts:
    """sum_s K(s) c_s(w) of one utterance."""
    nbest = next(nbest for nbest in lists.lists if nbest.id == name)
    ranks, divisor = [hyp.rank for hyp in nbest.hyps], 2 * kernel_bandwidth**2
    kernel = {rank: math.exp(-((rank - 1) ** 2) / divisor) for rank in ranks}
    kernel = {rank: weight if weight >= 1e-6 else 0.0 for rank, weight in kernel.items()}
    total = sum(kernel.values()) if normalized else 1.0
    found: Counts = defaultdict(float)
    for hyp in nbest.hyps:
        for word in hyp.words.split():
            found[word] += kernel[hyp.rank] / total
    return found


def slow_q(cache: Counts, prior_words: float) -> Counts:
    """Eq. 4."""
    total = sum(cache.values())
    if total == 0:
        return dict(U)
    mass = prior_words or sum(count > 0 for count in cache.values())
    return {word: (cache.get(word, 0.0) + mass * U[word]) / (total + mass) for word in WORDS}


def slow_run(
    lists: NbestLists, timeline: list[Turn], config: CacheConfig
) -> tuple[dict[str, Counts], dict[int, Counts], dict[str, int]]:
    """Algorithm 1: what q_i each utterance meets, and the global marginals after each round."""
    rounds = slow_rounds(timeline, config.rounds)
    caches: dict[str, Counts] = {turn.client: defaultdict(float) for turn in timeline}
    met, averages = {}, {}
    for number in range(config.rounds + 1):
        for client, cache in caches.items():
            own = [t.id for t in timeline if t.client == client and rounds[t.id] == number]
            before = slow_q(cache, config.prior_words)
            for place, name in enumerate(own):
                per_utterance = config.refresh == "utterance"
                met[name] = slow_q(cache, config.prior_words) if per_utterance else before
                if place == 0 and number:
                    for word in cache:
                        cache[word] *= config.decay
                for word, count in slow_utterance(
                    lists, name, config.kernel_bandwidth, config.normalized_kernel
                ).items():
                    cache[word] += count
            if not own and number:
                for word in cache:
                    cache[word] *= config.decay
        totals = {client: sum(cache.values()) for client, cache in caches.items()}
        averages[number] = dict(U)
        if sum(totals.values()) > 0:
            qs = {client: slow_q(cache, config.prior_words) for client, cache in caches.items()}
            averages[number] = {
                word: sum(totals[c] * qs[c][word] for c in caches) / sum(totals.values())
                for word in WORDS
            }
    return met, averages, rounds


def slow_g(mixing: Mixing, shared: Counts, own: Counts, word: str) -> float:
    """Eq. 2."""
    rest = 1 - mixing.alpha - mixing.beta
    return rest * U[word] + mixing.alpha * shared[word] + mixing.beta * own[word]


SETTINGS = [
    {},
    {"refresh": "utterance"},
    {"rounds": 5, "decay": 0.7, "prior_words": 0.0},
    {"kernel_bandwidth": 0.1, "prior_words": 0.0},
    {"rounds": 1, "kernel_bandwidth": 0.6, "normalized_kernel": True, "decay": 0.5}
    | {"refresh": "utterance"},
]


def world(
    seed: int, changes: dict[str, object]
) -> tuple[NbestLists, list[Turn], Spoken, CacheConfig]:
    """A random world and a setting."""
    return *random_world(seed, utterances=14 + seed), dataclasses.replace(CACHES, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", SETTINGS)
@pytest.mark.parametrize("seed", range(4))
def test_ratios_of_every_token(seed: int, changes: dict[str, object]) -> None:
    lists, timeline, spoken, config = world(seed, changes)
    met, averages, rounds = slow_run(lists, timeline, config)
    expected = []
    for one in lists.lists:
        for hyp in one.hyps:
            for word in [*hyp.words.split(), None]:
                row = [0.0] * len(MIXINGS)
                if word and rounds[one.id]:
                    shared = averages[rounds[one.id] - 1]
                    row = [
                        math.log(slow_g(m, shared, met[one.id], word) / U[word]) for m in MIXINGS
                    ]
                expected.append(row)
    assert rounds_of(spoken, config.rounds).tolist() == [rounds[name] for name in spoken.ids]
    found = token_log_ratios(spoken, config, BACKGROUND, MIXINGS, [None] * len(MIXINGS))
    assert np.abs(found - np.array(expected).reshape(found.shape)).max() < 1e-9
    exact = global_marginals(spoken, config, BACKGROUND)
    for number in range(config.rounds):
        assert np.abs(exact[number, 1:] - [averages[number][word] for word in WORDS]).max() < 1e-9
    given = token_log_ratios(spoken, config, BACKGROUND, MIXINGS, [exact] * len(MIXINGS))
    assert np.abs(given - found).max() < 1e-9


class TableLm:
    """P(w | the last word) from a table."""

    def __init__(self, seed: int) -> None:
        self.probs = np.random.default_rng(seed).dirichlet(np.ones(9), size=9)

    def adapted(self, nbests: list[Nbest], states: np.ndarray, factors: LogFactors) -> np.ndarray:
        """What :data:`AdaptedScores` asks for, by the definition of Z(h)."""
        found = []
        for nbest, state in zip(nbests, states.tolist()):
            table = factors(state)
            log_z = np.log(self.probs @ np.exp(table).T)
            for hyp in nbest:
                history = 0
                for word in [*(NUMBERS.ids[word] for word in hyp), 0]:
                    log_prob = np.log(self.probs[history, word])
                    found.append(log_prob + table[:, word] - log_z[history])
                    history = word
        return np.array(found)


@pytest.mark.parametrize("changes", SETTINGS)
@pytest.mark.parametrize("seed", range(2))
def test_normalized_scores_and_perplexities(seed: int, changes: dict[str, object]) -> None:
    lists, timeline, spoken, config = world(seed, changes)
    lm = TableLm(seed)
    nbests = [[hyp.words.split() for hyp in one.hyps] for one in lists.lists]
    arguments = (config, BACKGROUND, MIXINGS, [None] * len(MIXINGS))
    found = normalized_log_probs(spoken, nbests, lm.adapted, *arguments)
    met, averages, rounds = slow_run(lists, timeline, config)
    nats: dict[tuple[str, int], float] = defaultdict(float)
    clients = {turn.id: turn.client for turn in timeline}
    at = 0
    for one in lists.lists:
        number = rounds[one.id]
        for hyp in one.hyps:
            history = 0
            for word in [*hyp.words.split(), None]:
                target = NUMBERS.ids[word] if word else 0
                for place, m in enumerate(MIXINGS):
                    scaled = lm.probs[history].copy()
                    if number:
                        for w in WORDS:
                            g = slow_g(m, averages[number - 1], met[one.id], w)
                            scaled[NUMBERS.ids[w]] *= (g / U[w]) ** m.lam
                    expected = math.log(scaled[target] / scaled.sum())
                    assert abs(found[at, place] - expected) < 1e-9
                    if place == 0 and hyp.rank == 1:
                        nats[clients[one.id], number] -= expected
                at, history = at + 1, target
    assert at == len(found)
    perplexities = client_perplexities(spoken, found[:, 0], config.rounds)
    for client, name in enumerate(spoken.client_names):
        for number in range(config.rounds + 1):
            assert abs(perplexities.nats[client, number] - nats[name, number]) < 1e-9
    lengths = [len(one.hyps[0].words.split()) + 1 for one in lists.lists if one.hyps]
    assert perplexities.tokens.sum() == sum(lengths)


@pytest.mark.parametrize("unit", ["utterance", "user", "client"])
@pytest.mark.parametrize("mechanism", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("seed", range(3))
def test_clipped_increments(seed: int, mechanism: str, unit: str) -> None:
    lists, timeline, spoken = random_world(seed, utterances=20)
    changes = {"rounds": 4, "max_rounds": 2, "bound": 1.5, "kernel_bandwidth": 1.3}
    found = made_mechanism(unit=unit, mechanism=mechanism, **changes)
    rounds = slow_rounds(timeline, 4)
    owner = {t.id: {"utterance": t.id, "user": t.user, "client": t.client}[unit] for t in timeline}
    expected: dict[tuple[int, str], float] = defaultdict(float)
    for one in set(owner.values()):
        counted = 0
        for number in range(4):
            own: Counts = defaultdict(float)
            for name in (n for n, o in owner.items() if o == one and rounds[n] == number):
                for word, count in slow_utterance(lists, name, 1.3, True).items():
                    own[word] += count
            if not own or counted == (1 if unit == "utterance" else 2):
                continue
            counted += 1
            norm = sum(own.values())
            if mechanism == "discrete_gaussian":
                norm = math.sqrt(sum(value**2 for value in own.values()))
            for word, value in own.items():
                steps = math.floor(value * min(1.0, 1.5 / norm) / found.grid.step + 1e-6)
                expected[number, word] += steps
    increments = increments_of(spoken, found)
    assert not increments[:, 0].any()
    for number in range(4):
        for word in WORDS:
            # What a float makes of a value on the border of a step is a step.
            assert abs(increments[number, NUMBERS.ids[word]] - expected[number, word]) <= 3
