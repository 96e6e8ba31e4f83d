"""The training loop of every network that is trained without privacy; it minimizes a ``Task``."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

from privasr_k2.compat import grad_scaler, out_of_memory
from privasr_k2.errors import PrivasrError
from privasr_k2.randomness import derive_seed
from privasr_k2.recipe.progress import report_progress
from privasr_k2.training.checkpoint_manager import CheckpointManager
from privasr_k2.training.distributed import Process
from privasr_k2.training.task import Source, Task, TrainerConfig
from privasr_k2.training.trainlog import TrainLog

log = logging.getLogger(__name__)

T = TypeVar("T")


def train(
    model: nn.Module,
    task: Task,
    source: Source,
    dev: Source,
    folder: Path,
    config: TrainerConfig,
    process: Process,
    fingerprint: str,
    *,
    patience: int = 0,
) -> list[Path]:
    """Train, or continue an interrupted training with the same result.

    Parameters without gradient stay as they are, bit for bit, without steps and weight decay.

    Args:
        folder: gets ``checkpoints/``, ``train_log.jsonl`` and ``tensorboard/``.
        fingerprint: of data and configuration; checkpoints of another are removed.
        patience: epochs without a lower loss on dev that end the training; 0: all are trained. The
            best epochs must be those that are kept.

    Returns:
        the epochs' weights that are to be averaged.

    Raises:
        PrivasrError: a loss or a gradient that is not finite, naming the utterances; or memory that
            does not suffice for one utterance.
    """
    wrapped = process.wrap(model)
    learned = [parameter for parameter in wrapped.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        learned, lr=config.lr, betas=(0.9, 0.98), weight_decay=config.weight_decay
    )
    half = config.mixed_precision and process.device.type == "cuda"
    scaler = grad_scaler(enabled=half)
    best = config.average_over == "best"
    checkpoints, leads = folder / "checkpoints", process.leads
    rule = {"average": config.avg, "best": best, "writes": leads}
    manager = CheckpointManager(checkpoints, fingerprint, **rule)
    state = manager.resume(model, optimizer, scaler)
    train_log = TrainLog(folder, state.step, writes=leads)
    while state.epoch < config.epochs and not manager.is_over(state, patience):
        wrapped.train()
        for batch in source.epoch(state.epoch, skip=state.batch):
            done = state.epoch + state.frames / source.total_frames
            lr = learning_rate(config, state.step, done / config.epochs)
            for group in optimizer.param_groups:
                group["lr"] = lr
            seed = derive_seed(config.seed, "step", state.epoch, state.batch, process.rank)
            step = _Step(wrapped, task, batch.to(process.device), optimizer, scaler, process, seed)
            nats, count, frames = in_parts(step.batch, step.gradients)
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(wrapped.parameters(), config.clip_norm)
            if not half:  # the scaler leaves such a step out and scales less
                check_finite(norm.reshape(1), [" ".join(batch.ids)])
            scaler.step(optimizer)
            scaler.update()
            state = state.after_step(nats=nats, count=count, frames=frames)
            train_log.step(state, loss=nats / count, lr=lr, gradient_norm=float(norm))
            if leads:
                done = state.epoch + min(state.frames / source.total_frames, 1.0)
                report_progress(done, config.epochs, "epoch", loss=state.nats / state.count)
            if config.save_every and state.step % config.save_every == 0:
                manager.save_training(state, model, optimizer, scaler)
        scores = evaluate(model, task, dev, process) if leads else {"loss": math.nan}
        of_dev = {f"dev_{name}": value for name, value in scores.items()}
        train_log.epoch(state, {"train_loss": state.nats / max(state.count, 1), **of_dev})
        state = state.after_epoch()
        manager.save_epoch(state, scores["loss"], model, optimizer, scaler)
        process.wait()
    train_log.close()
    return manager.chosen()


def learning_rate(config: TrainerConfig, step: int, progress: float) -> float:
    """Linear warm-up times cosine decay (Loshchilov and Hutter 2017, eq. 5)."""
    warmup = min((step + 1) / config.warmup_steps, 1.0) if config.warmup_steps else 1.0
    decay = 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
    return config.lr * warmup * (config.final_lr_share + (1.0 - config.final_lr_share) * decay)


@dataclass(frozen=True)
class _Step:
    """The gradients of one batch."""

    model: nn.Module
    task: Task
    batch: Any
    optimizer: torch.optim.Optimizer
    scaler: Any
    process: Process
    seed: int

    def gradients(self, parts: Sequence[Any]) -> list[float]:
        """Put the gradient of the mean loss a label in place; give summed loss, labels, frames.

        Args:
            parts: the batch, or in one process its parts, one after the other.
        """
        self.optimizer.zero_grad(set_to_none=True)
        sums = [0.0, 0.0, 0.0]
        for index, part in enumerate(parts):
            seed = derive_seed(self.seed, "part", index) if index else self.seed
            half = _half_precision(self.scaler.is_enabled())
            with _seeded(seed, self.process.device) as generator, half:
                loss = self.task.loss(self.model, part, generator)
            check_finite(loss.sums, part.ids)
            own = (float(loss.sums.detach().sum()), loss.count, int(part.lengths.sum()))
            totals = self.process.total(*own)
            sums = [a + b for a, b in zip(sums, totals)]
            # DDP averages gradients over processes: the step is that of one with all their batches.
            alone = len(parts) == 1
            share = self.process.world_size / totals[1] if alone else 1.0 / len(self.batch.ids)
            self.scaler.scale(loss.sums.sum() * share).backward()
        if len(parts) > 1:
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_(len(self.batch.ids) / sums[1])
        return sums


def in_parts(batch: Any, run: Callable[[Sequence[Any]], T]) -> T:
    """Call ``run`` on a batch, or, where memory does not suffice, on its halves, quarters, ...

    Args:
        batch: has ``ids``; and ``split(parts)``, without which nothing is tried again.
        run: is given the batch, or its parts; called anew with more parts it must begin anew.

    Raises:
        PrivasrError: memory does not suffice for one utterance.
    """
    parts = 1
    while True:
        try:
            return run([batch] if parts == 1 else batch.split(parts))
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error) or not hasattr(batch, "split") or _several_processes():
                raise
            reason = str(error).split("\n")[0]
        if parts >= len(batch.ids):
            expected = "memory for one utterance at a time"
            way_out = "leave it out, choose a larger subsampling, or take more memory"
            raise PrivasrError(" ".join(batch.ids[:1]), expected, reason, way_out)
        parts = min(2 * parts, len(batch.ids))
        advice = "a smaller max_duration saves the first try"
        values = (reason, len(batch.ids), parts, advice)
        log.warning("out of memory (%s): these %d utterances again, in %d parts; %s", *values)


def _several_processes() -> bool:
    """Whether others wait for this process's gradients: a step cannot begin anew."""
    return distributed.is_available() and distributed.is_initialized()


@torch.no_grad()
def evaluate(model: nn.Module, task: Task, source: Source, process: Process) -> dict[str, float]:
    """The task's figures over all batches, without gradients."""
    model.eval()
    sums: dict[str, float] = {"loss": 0.0}
    count = 0
    for batch in source.epoch(0):
        there = batch.to(process.device)
        for loss in in_parts(there, lambda parts: [task.loss(model, part, None) for part in parts]):
            for name, value in {"loss": float(loss.sums.sum()), **loss.extra}.items():
                sums[name] = sums.get(name, 0.0) + value
            count += loss.count
    return task.figures({name: value / max(count, 1) for name, value in sums.items()})


def check_finite(values: Tensor, ids: Iterable[str]) -> None:
    """Stop where a loss is not finite, naming its utterance."""
    bad = [name for name, finite in zip(ids, torch.isfinite(values).tolist()) if not finite]
    if bad:
        way_out = "check their audio and text; then lower lr or clip_norm, or raise warmup_steps"
        names = " ".join(bad)
        raise PrivasrError("training", "finite losses and gradients", f"none for {names}", way_out)


@contextlib.contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[torch.Generator]:
    """Torch's random numbers (dropout) come from ``seed``; gives a generator besides."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield torch.Generator().manual_seed(derive_seed(seed, "masks"))


def _half_precision(wanted: bool) -> contextlib.AbstractContextManager[object]:
    return torch.autocast("cuda", torch.float16) if wanted else contextlib.nullcontext()
