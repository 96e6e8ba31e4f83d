"""Interfaces of the trainer, which the modules of networks implement, and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from privasr_k2.constraints import (
    Checked,
    Count,
    Natural,
    NotNegative,
    Positive,
    PositiveShare,
    one_of,
)


@dataclass(frozen=True)
class TrainerConfig(Checked):
    """Numbers of a training; ``conf/ctc.yaml#am_ctc`` explains them."""

    NEUTRAL: ClassVar[Mapping[str, str]] = {
        "avg": "epochs are averaged after the training",
        "average_over": "epochs are averaged after the training",
        "save_every": "a training that is continued gives the same weights",
    }

    epochs: Count
    lr: Positive
    warmup_steps: Natural
    final_lr_share: PositiveShare
    weight_decay: NotNegative
    clip_norm: Positive
    avg: Count
    average_over: Annotated[str, one_of("last", "best")]
    save_every: Natural
    mixed_precision: bool
    seed: int


@dataclass(frozen=True)
class Loss:
    """Losses ``sums`` (N,) over ``count`` labels; ``extra``: further sums for the log."""

    sums: Tensor
    count: int
    extra: Mapping[str, float] = field(default_factory=dict)


class Task(Protocol):
    """A loss and its figures. ``generator`` draws masks and the like; None when scoring."""

    def loss(self, model: nn.Module, batch: Any, generator: torch.Generator | None) -> Loss:
        """The losses of a batch, which has ``ids``, ``lengths`` (N,) and ``to(device)``."""

    def figures(self, means: Mapping[str, float]) -> dict[str, float]:
        """Figures of dev for the log, from its loss and :attr:`Loss.extra` per label."""


class Source(Protocol):
    """Where batches come from."""

    total_frames: int

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Any]:
        """The batches of an epoch after its first ``skip``."""
