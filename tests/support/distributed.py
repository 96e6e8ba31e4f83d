"""Helpers shared with ``test_distributed.py``."""

from __future__ import annotations

# Lengths differ, so that the processes hold different numbers of labels.
SCRIPT = """
import sys
from pathlib import Path
import torch
from privasr_k2.training.distributed import join
from privasr_k2.training.task import Loss, TrainerConfig
from privasr_k2.training.trainer import train
from privasr_k2.data.batches import pad_batch

class Source:
    total_frames = 120
    def __init__(self, rank, world_size):
        self.mine = slice(rank, None, world_size)
    def epoch(self, number, *, skip=0):
        for index in range(skip, 6):
            generator = torch.Generator().manual_seed(10 * number + index)
            sizes = [3, 1, 2, 4][self.mine]
            xs = [torch.randn(n, 2, generator=generator) for n in [3, 1, 2, 4]][self.mine]
            yield pad_batch([str(n) for n in sizes], xs, [[1] * n for n in sizes])

class Fit:
    def loss(self, model, batch, generator):
        x = batch.features
        missed = (model(x)[:, :, 0] - x[:, :, 0] + 2 * x[:, :, 1]).square()
        true = torch.arange(missed.size(1)) < batch.lengths.unsqueeze(1)
        return Loss((missed * true).sum(1), int(batch.target_lengths.sum()))

    def figures(self, means):
        return means

config = TrainerConfig(
    epochs=4, lr=0.4, warmup_steps=0, final_lr_share=0.1, weight_decay=0.01, clip_norm=1.0,
    avg=1, average_over="last", save_every=0, mixed_precision=False, seed=1,
)
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
with join("cpu") as process:
    mine = Source(process.rank, process.world_size)
    train(model, Fit(), mine, Source(0, 1), Path(sys.argv[1]), config, process, "f")
"""
