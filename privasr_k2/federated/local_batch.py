"""Sentences of one client as a model reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privasr_k2.federated.client_store import ClientData


@dataclass(frozen=True, eq=False)
class LocalBatch:
    """Sentences of one client, one after the other.

    Attributes:
        inputs, targets: (M,) int64.
        shares: (M,) float32, weight of each symbol's -log P in the loss: c / (n_b T_j).
        lengths: (S,) positions of each sentence.
    """

    inputs: Tensor
    targets: Tensor
    shares: Tensor
    lengths: np.ndarray


def batch_of(client: ClientData, sentences: np.ndarray) -> LocalBatch:
    """The batch of a client's ``sentences``, on the CPU.

    >>> from privasr_k2.lm.neural.vocabulary import Text
    >>> text = Text(np.array([5, 6, 7]), np.array([0, 2, 3]))
    >>> found = batch_of(ClientData("a", text, np.ones(5, dtype=np.float32), 3), np.array([1, 0]))
    >>> found.inputs.tolist(), found.targets.tolist(), [round(s, 3) for s in found.shares.tolist()]
    ([0, 7, 0, 5, 6], [7, 0, 5, 6, 0], [0.25, 0.25, 0.167, 0.167, 0.167])
    """
    lengths = client.text.lengths[sentences]
    padded = client.text.padded(sentences)
    columns = np.arange(padded.shape[1] - 1)
    inside = columns < lengths[:, None]
    places = (client.text.starts[sentences] + sentences)[:, None] + columns
    shares = client.weights[places[inside]] / np.repeat(lengths * len(sentences), lengths)
    return LocalBatch(
        torch.from_numpy(padded[:, :-1][inside]),
        torch.from_numpy(padded[:, 1:][inside]),
        torch.from_numpy(shares.astype(np.float32)),
        lengths,
    )
