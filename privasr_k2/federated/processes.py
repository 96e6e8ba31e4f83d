"""Communication of the processes of a training; the first one leads."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, distributed

from privasr_k2.training.distributed import Process


def from_leader(process: Process, values: Tensor) -> Tensor:
    """The leader's ``values``; the others give a tensor of the same shape and type."""
    if process.world_size > 1:
        shared = values.to(process.device)
        distributed.broadcast(shared, src=0)
        values.copy_(shared)
    return values


def indices_from_leader(process: Process, indices: np.ndarray) -> np.ndarray:
    """The leader's whole numbers (K,); the others need not know K."""
    if process.world_size == 1:
        return indices
    count = from_leader(process, torch.tensor([len(indices)]))
    return from_leader(
        process, torch.from_numpy(np.resize(indices, int(count)).astype(np.int64))
    ).numpy()


def summed(process: Process, values: Tensor) -> Tensor:
    """The sum of all processes' ``values``, for all of them."""
    if process.world_size > 1:
        shared = values.to(process.device)
        distributed.all_reduce(shared)
        values.copy_(shared)
    return values
