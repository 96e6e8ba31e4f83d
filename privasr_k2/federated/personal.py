"""What a device learns from its own user's words, simulated in order of time.

The utterances of each client are cut in time into T + 1 groups, as for marginals
(:func:`privasr_k2.federated.fmp_simulation.rounds_of`). Group 0 is scored by the model as it is.
Group t is scored by what the device learned from the best hypotheses of the groups before. Nothing
that is learned leaves the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privasr_k2.federated.adapted_lm import Nbest
from privasr_k2.federated.device_costs import DeviceCosts
from privasr_k2.federated.fmp_scores import Adaptable, World
from privasr_k2.federated.fmp_simulation import rounds_of, tokens_of
from privasr_k2.recipe.progress import report_progress

Sentences = Sequence[Sequence[str]]

#: Devices on which the shared model is timed. Its scores are those of blocks of all lists.
TIMED = 10


class Device(Protocol):
    """One client's model, for K strengths of personalization."""

    def learn(self, sentences: Sentences) -> None:
        """Take in what the user said: best hypotheses, in order of time."""

    def log_probs(self, nbests: Sequence[Nbest], plain: np.ndarray) -> np.ndarray:
        """(W, K) natural logs of all words and sentence ends of lists.

        Args:
            plain: (W,) those of the shared model.
        """

    @property
    def reads_shared(self) -> bool:
        """Whether :meth:`log_probs` needs ``plain``; else the device reads a model of its own."""

    @property
    def kept_bytes(self) -> int:
        """What the device keeps beside the shared model, for one strength."""


@dataclass
class _Clock:
    """Processor time, and the words that it was for."""

    seconds: float = 0.0
    words: int = 0

    @contextmanager
    def timed(self, words: int) -> Iterator[None]:
        begun = time.process_time()
        yield
        self.seconds += time.process_time() - begun
        self.words += words

    @property
    def ms(self) -> float:
        """Of 100 words."""
        return 1e5 * self.seconds / max(1, self.words)


def personal_scores(
    world: World,
    lm: Adaptable,
    begin: Callable[[], Device],
    strengths: int,
    rounds: int,
    said: World | None = None,
) -> tuple[np.ndarray, DeviceCosts]:
    """(W, K) natural logs of all words and sentence ends of all hypotheses, and the costs.

    Args:
        lm: the shared model.
        begin: a new device, which has heard nothing.
        strengths: K, the number of strengths that a device has.
        rounds: T.
        said: references, which are scored in place of the lists; devices learn from the lists.
    """
    scored = world if said is None else said
    spoken, in_round = scored.spoken, rounds_of(world.spoken, rounds)
    nbests = [[hyp.words.split() for hyp in nbest.hyps] for nbest in scored.lists.lists]
    heard = [nbest.hyps[0].words.split() if nbest.hyps else [] for nbest in world.lists.lists]
    values = np.zeros((len(spoken.tokens), strengths))
    order = np.lexsort((spoken.places, spoken.clients))
    clients = np.split(order, np.cumsum(np.bincount(spoken.clients))[:-1])
    kept, learning, sharing, scoring = 0, _Clock(), _Clock(), _Clock()
    plain, timed = lm.plain(nbests), range(0, len(clients), -(-len(clients) // TIMED))
    values[:] = plain[:, None]
    for number, own in enumerate(clients):
        report_progress(number, len(clients), "client")
        device, has_learned = begin(), False
        for turn in range(rounds + 1):
            now = own[in_round[own] == turn]
            listed = np.sort(now[spoken.num_hyps[now] > 0])
            lists, at = [nbests[i] for i in listed.tolist()], tokens_of(spoken, listed)
            if listed.size and number in timed:
                with sharing.timed(len(at)):
                    lm.plain(lists)
            if listed.size and has_learned:
                with scoring.timed(len(at)):
                    values[at] = device.log_probs(lists, plain[at])
            new = [heard[i] for i in now.tolist() if heard[i]]
            if new and turn < rounds:
                with learning.timed(sum(map(len, new))):
                    device.learn(new)
                has_learned = True
        kept += device.kept_bytes
    score_ms = scoring.ms / strengths + (sharing.ms if device.reads_shared else 0.0)
    return values, DeviceCosts(kept / len(clients), 0.0, learning.ms / strengths, score_ms)
