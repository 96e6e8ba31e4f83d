"""The record of a training: ``train_log.jsonl``, tensorboard scalars, and lines in the log.

Tensorboard's files hold the time of every step and the name of the machine. How long a step took
tells who was in it, so that a training under a claim has ``train_log.jsonl`` alone.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privasr_k2.fileio import read_jsonl, remove_tree, write_jsonl
from privasr_k2.training.checkpoint_manager import TrainerState

log = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 30.0


class TrainLog:
    """Writes what a training reports; a continued training's record has no step twice.

    Args:
        folder: gets ``train_log.jsonl`` and ``tensorboard/``.
        step: steps already made.
        writes: whether this process does.
        claims: whether a guarantee is claimed: nothing of steps is written then, only of epochs.
    """

    def __init__(self, folder: Path, step: int, *, writes: bool, claims: bool = False) -> None:
        self._writes, self._board = writes, None
        if not writes:
            return
        path = folder / "train_log.jsonl"
        records = read_jsonl(path) if step and path.is_file() else ()
        write_jsonl(path, [record for record in records if record["step"] <= step])
        if claims or not step:
            remove_tree(folder / "tensorboard")
        self._file = path.open("a", encoding="utf-8", buffering=1)
        if not claims:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=step or None)
        self._last_line = time.monotonic()

    def step(self, state: TrainerState, **scalars: float) -> None:
        """One step's loss a label, learning rate and gradient norm."""
        if self._board is None:
            return
        self._scalars("train", state.step, scalars)
        if time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            log.info("epoch %d step %d %s", state.epoch + 1, state.step, _shown(scalars))

    def epoch(self, state: TrainerState, scalars: Mapping[str, float]) -> None:
        """One epoch's losses."""
        if not self._writes:
            return
        self._scalars("epoch", state.step, scalars)
        record: dict[str, Any] = {"epoch": state.epoch + 1, "step": state.step, **scalars}
        self._file.write(json.dumps(record) + "\n")
        log.info("epoch %d done, step %d: %s", state.epoch + 1, state.step, _shown(scalars))

    def close(self) -> None:
        """End the record."""
        if self._writes:
            self._file.close()
        if self._board is not None:
            self._board.close()

    def _scalars(self, part: str, step: int, scalars: Mapping[str, float]) -> None:
        if self._board is None:
            return
        for name, value in scalars.items():
            self._board.add_scalar(f"{part}/{name}", value, step)


def _shown(scalars: Mapping[str, float]) -> str:
    return " ".join(f"{name} {value:.4g}" for name, value in scalars.items())
