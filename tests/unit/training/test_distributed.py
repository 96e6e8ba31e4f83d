"""Two processes under torchrun take the very steps of one process that has both their batches."""

from __future__ import annotations

import os
import subprocess
import sys

import torch

from privasr_k2.recipe import launch
from privasr_k2.training.distributed import choose_device, join
from privasr_k2.training.weights import load_tensors
from tests.support.distributed import SCRIPT


def test_two_processes_equal_one(tmp_path, repo_root):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(repo_root), "OMP_NUM_THREADS": "1"}
    torchrun = [*launch._TORCHRUN, *launch._ALONE, "--nproc_per_node", "2"]
    for name, launcher in (("one", []), ("two", torchrun)):
        command = [sys.executable, *launcher, str(script), str(tmp_path / name)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    last = "checkpoints/epoch-4.safetensors"
    one, two = (load_tensors(tmp_path / name / last) for name in ("one", "two"))
    torch.testing.assert_close(two, one, atol=1e-6, rtol=1e-5)
    learned = torch.tensor([[1.0, -2.0]])
    torch.testing.assert_close(one["weight"], learned, atol=0.3, rtol=0.0)
    for name in ("one", "two"):
        assert (tmp_path / name / "train_log.jsonl").read_text().count("\n") == 4


def test_alone_without_torchrun():
    with join("cpu") as process:
        assert (process.rank, process.world_size, process.leads) == (0, 1, True)
        assert process.total(1.5, 2) == [1.5, 2]


def test_devices():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
