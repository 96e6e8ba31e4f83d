"""What personalization costs a device: memory, what it sends, and processor time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from privasr_k2.federated.fmp_settings import FmpConfig
from privasr_k2.federated.fmp_simulation import rounds_of
from privasr_k2.federated.fmp_spoken import Spoken
from privasr_k2.federated.marginals import utterance_counts

#: A word's number, and its count.
COUNT_BYTES, WORD_BYTES = 4, 4


@dataclass(frozen=True)
class DeviceCosts:
    """Means over devices.

    Attributes:
        kept_bytes: kept beside the shared model at the end.
        sent_bytes: sent to the server in all rounds.
        learn_ms: processor time of learning 100 words.
        score_ms: processor time of scoring 100 words of lists, with the shared model where that is
            read.
    """

    kept_bytes: float
    sent_bytes: float
    learn_ms: float
    score_ms: float

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def marginal_costs(spoken: Spoken, config: FmpConfig, *, seconds: float) -> DeviceCosts:
    """The costs of federated marginals; counting takes no time to speak of.

    For a global marginal each round sends what it added to the counts.

    Args:
        seconds: processor time of scoring all lists.
    """
    keeps, sends = config.lam * (config.alpha + config.beta) > 0, config.lam * config.alpha > 0
    counts = utterance_counts(spoken, config.kernel_bandwidth, normalized=config.normalized_kernel)
    in_round, devices = rounds_of(spoken, config.rounds), len(spoken.client_names)

    def distinct_words(of: np.ndarray) -> float:
        """The mean over devices of different words, counted for each value of ``of`` (N,)."""
        heard = np.flatnonzero(in_round < config.rounds)
        where = (of[heard], np.arange(len(heard)))
        groups = csr_array((np.ones(len(heard)), where), shape=(int(of.max()) + 1, len(heard)))
        return csr_array(groups @ counts[heard]).count_nonzero() / devices

    of_round = spoken.clients * config.rounds + np.minimum(in_round, config.rounds - 1)
    each = COUNT_BYTES + WORD_BYTES
    return DeviceCosts(
        kept_bytes=each * distinct_words(spoken.clients) if keeps else 0.0,
        sent_bytes=each * distinct_words(of_round) if sends else 0.0,
        learn_ms=0.0,
        score_ms=1e5 * seconds / max(1, len(spoken.tokens)),
    )
