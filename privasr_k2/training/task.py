"""Interfaces of the trainer, which the modules of networks implement, and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class TrainerConfig:
    """Numbers of a training.

    Attributes:
        epochs: passes over the training data.
        lr: highest learning rate of AdamW.
        warmup_steps: steps in which it rises from 0.
        final_lr_share: what is left of it at the end of its cosine decay, in (0, 1].
        weight_decay: of AdamW.
        clip_norm: largest norm of a step's gradient.
        avg: epochs whose weights are averaged in the end.
        average_over: ``last`` epochs, or those ``best`` on dev.
        save_every: steps between checkpoints within an epoch; 0 = only at its end.
        mixed_precision: half precision on a GPU; means nothing on a CPU.
        seed: of everything random.
    """

    NEUTRAL: ClassVar[Mapping[str, str]] = {
        "avg": "epochs are averaged after the training",
        "average_over": "epochs are averaged after the training",
        "save_every": "a training that is continued gives the same weights",
    }

    epochs: int
    lr: float
    warmup_steps: int
    final_lr_share: float
    weight_decay: float
    clip_norm: float
    avg: int
    average_over: str
    save_every: int
    mixed_precision: bool
    seed: int

    def __post_init__(self) -> None:
        for name, least in {
            "epochs": 1,
            "avg": 1,
            "warmup_steps": 0,
            "save_every": 0,
            "weight_decay": 0,
        }.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("lr", "clip_norm", "final_lr_share"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.final_lr_share > 1:
            raise ValueError(f"final_lr_share must be at most 1, got {self.final_lr_share}")
        if self.average_over not in ("last", "best"):
            raise ValueError(f"average_over must be last or best, got {self.average_over!r}")


@dataclass(frozen=True)
class Loss:
    """Losses ``sums`` (N,) of a batch's utterances, over ``count`` labels; ``extra``: further sums to log."""

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
