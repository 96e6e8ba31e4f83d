"""One loop for every network that is trained without privacy; what it minimizes is a ``Task``."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from tqdm import tqdm

from privasr_k2.compat import grad_scaler
from privasr_k2.errors import PrivasrError
from privasr_k2.randomness import derive_seed
from privasr_k2.training.distributed import Process
from privasr_k2.training.keeper import Keeper
from privasr_k2.training.task import Source, Task, TrainerConfig
from privasr_k2.training.trainlog import TrainLog


def train(
    model: nn.Module,
    task: Task,
    source: Source,
    dev: Source,
    folder: Path,
    config: TrainerConfig,
    process: Process,
    fingerprint: str,
) -> list[Path]:
    """Train, or continue a training that was interrupted; the same parameters come out either way.

    Args:
        folder: gets ``checkpoints/``, ``train_log.jsonl`` and ``tensorboard/``.
        fingerprint: of data and configuration; checkpoints of another are removed.

    Returns:
        the epochs' weights that are to be averaged.

    Raises:
        PrivasrError: a loss or a gradient that is not finite, naming the utterances.
    """
    wrapped = process.wrap(model)
    optimizer = torch.optim.AdamW(
        wrapped.parameters(), lr=config.lr, betas=(0.9, 0.98), weight_decay=config.weight_decay
    )
    half = config.mixed_precision and process.device.type == "cuda"
    scaler = grad_scaler(enabled=half)
    keeper = Keeper(
        folder / "checkpoints",
        fingerprint,
        keep=config.avg,
        best=config.average_over == "best",
        writes=process.leads,
    )
    place = keeper.resume(model, optimizer, scaler)
    train_log = TrainLog(folder, place.step, writes=process.leads)
    while place.epoch < config.epochs:
        wrapped.train()
        remaining = source.epoch(place.epoch, skip=place.batch)
        for batch in tqdm(
            remaining, desc=f"epoch {place.epoch + 1}", initial=place.batch, disable=None, leave=False
        ):
            lr = learning_rate(
                config, place.step, (place.epoch + place.frames / source.total_frames) / config.epochs
            )
            for group in optimizer.param_groups:
                group["lr"] = lr
            seed = derive_seed(config.seed, "step", place.epoch, place.batch, process.rank)
            with _seeded(seed, process.device) as generator, _half_precision(half):
                loss = task.loss(wrapped, batch.to(process.device), generator)
            check_finite(loss.sums, batch.ids)
            nats, count, frames = process.total(
                float(loss.sums.detach().sum()), loss.count, int(batch.lengths.sum())
            )
            optimizer.zero_grad(set_to_none=True)
            # DDP averages gradients over processes: the step is that of one process with all their batches.
            scaler.scale(loss.sums.sum() * (process.world_size / count)).backward()
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(wrapped.parameters(), config.clip_norm)
            if not half:  # the scaler leaves such a step out and scales less
                check_finite(norm.reshape(1), [" ".join(batch.ids)])
            scaler.step(optimizer)
            scaler.update()
            place = place.after_step(nats=nats, count=count, frames=frames)
            train_log.step(place, loss=nats / count, lr=lr, gradient_norm=float(norm))
            if config.save_every and place.step % config.save_every == 0:
                keeper.save_training(place, model, optimizer, scaler)
        scores = evaluate(model, task, dev, process) if process.leads else {"loss": math.nan}
        train_log.epoch(
            place,
            {"train_loss": place.nats / max(place.count, 1), **{f"dev_{k}": v for k, v in scores.items()}},
        )
        place = place.after_epoch()
        keeper.save_epoch(place, scores["loss"], model, optimizer, scaler)
        process.wait()
    train_log.close()
    return keeper.chosen()


def learning_rate(config: TrainerConfig, step: int, progress: float) -> float:
    """Linear warm-up times cosine decay (Loshchilov and Hutter 2017, eq. 5); ``progress`` is in [0, 1]."""
    warmup = min((step + 1) / config.warmup_steps, 1.0) if config.warmup_steps else 1.0
    decay = 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
    return config.lr * warmup * (config.final_lr_share + (1.0 - config.final_lr_share) * decay)


@torch.no_grad()
def evaluate(model: nn.Module, task: Task, source: Source, process: Process) -> dict[str, float]:
    """What the task tells of all batches."""
    model.eval()
    sums: dict[str, float] = {"loss": 0.0}
    count = 0
    for batch in source.epoch(0):
        loss = task.loss(model, batch.to(process.device), None)
        for name, value in {"loss": float(loss.sums.sum()), **loss.extra}.items():
            sums[name] = sums.get(name, 0.0) + value
        count += loss.count
    return task.figures({name: value / max(count, 1) for name, value in sums.items()})


def check_finite(values: Tensor, ids: Iterable[str]) -> None:
    """Stop where a loss is not finite, naming its utterance."""
    bad = [name for name, finite in zip(ids, torch.isfinite(values).tolist()) if not finite]
    if bad:
        way_out = (
            "look at their audio and text; if those are sound, lower lr or clip_norm, or raise warmup_steps"
        )
        raise PrivasrError("training", "finite losses and gradients", f"none for {' '.join(bad)}", way_out)


@contextlib.contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[torch.Generator]:
    """Torch's random numbers (dropout) come from ``seed`` within the block; gives a generator besides."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield torch.Generator().manual_seed(derive_seed(seed, "masks"))


def _half_precision(wanted: bool) -> contextlib.AbstractContextManager[object]:
    return torch.autocast("cuda", torch.float16) if wanted else contextlib.nullcontext()
