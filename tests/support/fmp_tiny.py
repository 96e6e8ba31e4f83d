"""Small worlds for federated marginal personalization: N-best lists, a timeline, arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from privasr_k2.federated.fmp_simulation import CacheConfig
from privasr_k2.federated.fmp_spoken import Spoken, Turn, WordNumbers, spoken_of
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, NbestLists

WORDS = tuple("abcdefgh")
NUMBERS = WordNumbers({word: place + 1 for place, word in enumerate(WORDS)}, 9, 0, (0,), None)
CACHES = CacheConfig(
    rounds=2,
    kernel_bandwidth=1.0,
    normalized_kernel=False,
    prior_words=2.0,
    decay=1.0,
    refresh="round",
    client_fraction=1.0,
    seed=1,
)


def made_lists(nbests: Sequence[Sequence[str]], ids: Sequence[str] | None = None) -> NbestLists:
    """Lists with these hypotheses, by rank; no hypothesis: no path."""
    ids = ids or [f"u{place:03d}" for place in range(len(nbests))]
    lists = []
    for name, nbest in zip(ids, nbests):
        hyps = (Hypothesis(rank, words, -float(rank), {}) for rank, words in enumerate(nbest, 1))
        ref = nbest[0] if nbest else ""
        lists.append(NbestList(name, "test", "s", ref, not nbest, tuple(hyps)))
    lines = {name: f"1.jsonl:{n}" for n, name in enumerate(ids, 1)}
    return NbestLists(Path("nbest_test"), tuple(lists), lines, ())


def random_world(
    seed: int, *, utterances: int = 14, clients: int = 3, users: int = 4
) -> tuple[NbestLists, list[Turn], Spoken]:
    """Random lists of 0 to 3 hypotheses, of random clients and users, in random order."""
    rng = np.random.default_rng(seed)

    def hyp(_: int) -> str:
        return " ".join(rng.choice(WORDS, size=rng.integers(0, 5)))

    nbests = [[*dict.fromkeys(map(hyp, range(rng.integers(0, 4))))] for _ in range(utterances)]
    lists = made_lists(nbests)
    turns = [
        Turn(nbest.id, f"c{rng.integers(clients)}", f"s{rng.integers(users)}", "prefix")
        for nbest in lists.lists
    ]
    timeline = [turns[place] for place in rng.permutation(utterances)]
    return lists, timeline, spoken_of(lists, timeline, NUMBERS)
