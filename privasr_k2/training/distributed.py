"""Training in several processes that ``torchrun`` starts, or in one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed, nn


@dataclass(frozen=True)
class Process:
    """One of ``world_size`` processes that train together.

    Attributes:
        rank: 0 is the one that scores, logs and writes.
        device: where its tensors live.
    """

    rank: int
    world_size: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model, with gradients averaged over the processes where there are several."""
        model = model.to(self.device)
        return nn.parallel.DistributedDataParallel(model) if self.world_size > 1 else model

    def total(self, *values: float) -> list[float]:
        """Sums over the processes."""
        if self.world_size == 1:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(sums)
        return sums.tolist()

    def wait(self) -> None:
        """Until every process is here."""
        if self.world_size > 1:
            distributed.barrier()


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """``auto``: the first GPU, or in a group of processes each its own, else the processor."""
    if name != "auto":
        return torch.device(name)
    return torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")


@contextmanager
def join(device: str) -> Iterator[Process]:
    """This process in the group that ``torchrun`` announces in the environment, or alone."""
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    chosen = choose_device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if world_size == 1:
        yield Process(0, 1, chosen)
        return
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    try:
        yield Process(distributed.get_rank(), world_size, chosen)
    finally:
        distributed.destroy_process_group()
