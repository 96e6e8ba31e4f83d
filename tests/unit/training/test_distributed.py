"""Two processes under torchrun take the very steps of one process that has both their batches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch

from privasr_k2.training.distributed import choose_device, join
from privasr_k2.training.weights import load_tensors

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

config = TrainerConfig(epochs=4, lr=0.4, warmup_steps=0, final_lr_share=0.1, weight_decay=0.01, clip_norm=1.0,
                       avg=1, average_over="last", save_every=0, mixed_precision=False, seed=1)
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
with join("cpu") as process:
    mine = Source(process.rank, process.world_size)
    train(model, Fit(), mine, Source(0, 1), Path(sys.argv[1]), config, process, "f")
"""


def test_two_processes_equal_one(tmp_path: Path, repo_root: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(repo_root), "OMP_NUM_THREADS": "1"}
    # torch 1.13 on Python 3.11 cannot read its own default, 0, of --redirects and --tee.
    torchrun = ["-m", "torch.distributed.run", "--redirects", "1", "--tee", "1", "--standalone"]
    torchrun += ["--nproc_per_node", "2"]
    for name, launcher in (("one", []), ("two", torchrun)):
        command = [sys.executable, *launcher, str(script), str(tmp_path / name)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    last = "checkpoints/epoch-4.safetensors"
    one, two = (load_tensors(tmp_path / name / last) for name in ("one", "two"))
    torch.testing.assert_close(two, one, atol=1e-6, rtol=1e-5)
    learned = torch.tensor([[1.0, -2.0]])
    torch.testing.assert_close(one["weight"], learned, atol=0.3, rtol=0.0)
    logs = [(tmp_path / name / "train_log.jsonl").read_text().count("\n") for name in ("one", "two")]
    assert logs == [4, 4]


def test_alone_without_torchrun() -> None:
    with join("cpu") as process:
        assert (process.rank, process.world_size, process.leads) == (0, 1, True)
        assert process.total(1.5, 2) == [1.5, 2]


def test_devices() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
