"""Checkpoints of a training: its state, what it continues from, and which epochs are averaged.

A checkpoint is one file, so that a kill leaves the old one or the new one: tensors ``model/<name>``
and ``optimizer/<parameter>/<name>``, and the trainer's state as JSON in the header.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from privasr_k2.errors import ConfigError
from privasr_k2.fileio import remove_tree
from privasr_k2.training.weights import fill, load_tensors, read_header, save_tensors

log = logging.getLogger(__name__)

LATEST = "latest.safetensors"
KEPT = 10
"""So many epochs are kept at least: another average of so many needs no training."""


@dataclass(frozen=True)
class TrainerState:
    """The state of a training: ``batch`` batches into ``epoch``, after ``step`` steps in all.

    Attributes:
        nats, count, frames: summed loss, labels and input frames of this epoch so far.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    nats: float = 0.0
    count: float = 0.0
    frames: float = 0.0

    def after_step(self, *, nats: float, count: float, frames: float) -> TrainerState:
        """The state after one more step."""
        sums = dict(nats=self.nats + nats, count=self.count + count, frames=self.frames + frames)
        return replace(self, batch=self.batch + 1, step=self.step + 1, **sums)

    def after_epoch(self) -> TrainerState:
        """The state at the start of the next epoch."""
        return TrainerState(epoch=self.epoch + 1, step=self.step)


class CheckpointManager:
    """Writes, reads and thins out the checkpoints of a folder.

    ``latest`` has everything to continue from; ``epoch-N`` has that epoch's weights, for averaging.

    Args:
        folder: ``checkpoints/``.
        fingerprint: of all that the weights depend on; what another wrote is removed.
        average: epochs that are averaged; :data:`KEPT` or more are kept.
        best: those of least dev loss; else the last.
        writes: whether this process does.
    """

    def __init__(
        self, folder: Path, fingerprint: str, *, average: int, best: bool, writes: bool
    ) -> None:
        self._folder, self._fingerprint = folder, fingerprint
        self._average, self._best, self._writes = average, best, writes
        self._keep = max(average, KEPT)

    def resume(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, scaler: Any
    ) -> TrainerState:
        """Restore the latest checkpoint of this fingerprint, if any, and return its state.

        Raises:
            ConfigError: epochs to be averaged that an equal training has not kept. Nothing changes.
        """
        if self._writes:
            for unfinished in self._folder.glob(".*.tmp.*"):  # what a kill interrupted
                unfinished.unlink()
        latest = self._folder / LATEST
        header = read_header(latest) if latest.is_file() else None
        known = header is not None and header["fingerprint"] == self._fingerprint
        if not known:
            if self._writes and self._folder.is_dir():
                problem = "of other data or another configuration"
                log.warning("%s: %s; training anew", self._folder, problem)
                remove_tree(self._folder)
            return TrainerState()
        self._check_enough(header)
        restore_training(latest, model, optimizer)
        scaler.load_state_dict(header["scaler"])
        state = TrainerState(**header["place"])
        if state.epoch > header["keep"]:  # others are gone already
            self._keep = header["keep"]
        place = (state.epoch + 1, state.batch, state.step)
        log.info("continuing in epoch %d after %d batches, step %d", *place)
        return state

    def _check_enough(self, header: Mapping[str, Any]) -> None:
        """Refuse an average of epochs that are gone: a new average is no reason to train."""
        kept, best = header["keep"], header["best"]
        if header["place"]["epoch"] <= kept or (best == self._best and kept >= self._average):
            return
        rule, found = ("best" if which else "last" for which in (best, self._best))
        raise ConfigError(
            self._folder,
            f"an average of its {rule} epochs, of which {kept} are kept",
            f"one of the {found} {self._average}",
            "set avg and average_over so, or train anew with --force true --stage N --stop-stage N",
        )

    def save_training(
        self, state: TrainerState, model: nn.Module, optimizer: torch.optim.Optimizer, scaler: Any
    ) -> None:
        """Write ``latest``."""
        if self._writes:
            header = {
                "fingerprint": self._fingerprint,
                "place": asdict(state),
                "scaler": scaler.state_dict(),
                "keep": self._keep,
                "best": self._best,
            }
            save_tensors(self._folder / LATEST, training_tensors(model, optimizer), header)

    def save_epoch(
        self,
        state: TrainerState,
        dev_loss: float,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scaler: Any,
    ) -> None:
        """Write the weights of an epoch, then ``latest``; remove epochs that are not kept."""
        if self._writes:
            header = {"epoch": state.epoch, "dev_loss": dev_loss}
            path = self._folder / f"epoch-{state.epoch}.safetensors"
            save_tensors(path, model.state_dict(), header)
            self.save_training(state, model, optimizer, scaler)
            kept = set(self._first(self._keep))
            for path in self._epochs():
                if path not in kept:
                    path.unlink()

    def is_over(self, state: TrainerState, patience: int) -> bool:
        """Whether ``patience`` epochs have passed since the lowest loss on dev; 0: never."""
        if not patience or state.epoch <= patience:
            return False
        best = min((h["dev_loss"], h["epoch"]) for h in map(read_header, self._epochs()))
        return state.epoch - best[1] >= patience

    def chosen(self) -> list[Path]:
        """The epochs to average, oldest first."""
        return self._first(self._average)

    def _epochs(self) -> list[Path]:
        return [*self._folder.glob("epoch-*.safetensors")]

    def _first(self, number: int) -> list[Path]:
        """So many epochs, the last or the best, oldest first."""
        known = [(read_header(path), path) for path in self._epochs()]

        def rank(epoch: tuple[Any, Path]) -> tuple[float, int]:
            return epoch[0]["dev_loss"] if self._best else 0.0, -epoch[0]["epoch"]

        kept = sorted(known, key=rank)[:number]
        return [path for _, path in sorted(kept, key=lambda epoch: epoch[0]["epoch"])]


def training_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Weights and the optimizer's state, by names that :func:`restore_training` reads."""
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    for number, memory in optimizer.state_dict()["state"].items():
        for name, value in memory.items():
            if value is not None:
                tensors[f"optimizer/{number}/{name}"] = torch.as_tensor(value)
    return tensors


def restore_training(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    """Restore what :func:`training_tensors` gave; return the file's other tensors."""
    memory: dict[int, dict[str, Tensor]] = {}
    weights, others = {}, {}
    for name, value in load_tensors(path).items():
        part, _, rest = name.partition("/")
        if part == "model":
            weights[rest] = value
        elif part == "optimizer":
            number, _, key = rest.partition("/")
            memory.setdefault(int(number), {})[key] = value
        else:
            others[name] = value
    fill(model, weights, path)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": memory, "param_groups": groups})
    return others
