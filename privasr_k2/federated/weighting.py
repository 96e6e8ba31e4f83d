"""Weights from confidences in a client's loss [liu2021, equations 2 to 4].

With n_b sentences in a batch, T_j symbols in sentence j and the weight c of a symbol the loss is

    L = -1 / n_b  sum over j of 1 / T_j  sum over t of c_{j,t} log P(v_{j,t}).

    all         c = 1                                                    [eq. 2]
    hard        c = 1, without the sentences whose mean confidence is below a threshold
    utterance   c = the mean confidence of the sentence's words          [eq. 3]
    token       c = the word's confidence                                [eq. 4]

A sentence end counts in T_j and has the mean confidence of its words. Sentences below the threshold
do not count in n_b, which the paper leaves open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from privasr_k2.constraints import Checked, Share, one_of
from privasr_k2.errors import DataError
from privasr_k2.federated.client_store import ClientData, StoredClients
from privasr_k2.federated.clients import ClientText, Utterance
from privasr_k2.lm.neural.vocabulary import Vocabulary

CONFIDENCE_USES = ("all", "hard", "utterance", "token")


@dataclass(frozen=True)
class Weighting(Checked):
    """How confidences are used: one of :data:`CONFIDENCE_USES`, and the threshold of ``hard``."""

    use: Annotated[str, one_of(*CONFIDENCE_USES)]
    threshold: Share


def symbol_weights(utterance: Utterance, use: str) -> np.ndarray:
    """c of the words of a sentence and of its end, (T,) float32.

    >>> symbol_weights(Utterance("u", ("a", "b"), (1.0, 0.5), "s"), "token").tolist()
    [1.0, 0.5, 0.75]
    """
    if use in ("all", "hard"):
        return np.ones(len(utterance.words) + 1, dtype=np.float32)
    confidences = np.array(utterance.confidences)
    mean = confidences.mean()
    of_words = np.full(len(confidences), mean) if use == "utterance" else confidences
    return np.append(of_words, mean).astype(np.float32)


def prepare(
    clients: Iterable[ClientText], vocabulary: Vocabulary, weighting: Weighting
) -> StoredClients:
    """The clients as numbers; one without a sentence above the threshold is empty.

    Raises:
        DataError: an utterance without the confidences in use.
    """
    stored = StoredClients()
    for client in clients:
        stored.add(_prepared(client, vocabulary, weighting))
    return stored


def _prepared(client: ClientText, vocabulary: Vocabulary, weighting: Weighting) -> ClientData:
    kept = []
    for utterance in client.utterances:
        if weighting.use != "all" and utterance.confidences is None:
            place = f"client {client.name!r}, utterance {utterance.id!r}"
            expected = f"confidences for confidences.use={weighting.use}"
            raise DataError(place, expected, "none", "run apply_confidence, or use all")
        if weighting.use != "hard" or np.mean(utterance.confidences) >= weighting.threshold:  # type: ignore[arg-type]
            kept.append(utterance)
    text = vocabulary.encode([utterance.words for utterance in kept])
    weights = [symbol_weights(utterance, weighting.use) for utterance in kept]
    joined = np.concatenate(weights) if weights else np.zeros(0, dtype=np.float32)
    return ClientData(client.name, text, joined, len(text.words))
