"""A stage whose processes torchrun starts, through the stage runner."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.support.fedlm_verbs import folder as folder  # a fixture
from tests.support.torchrun_stage import train


def test_a_training_by_torchrun(folder: Path) -> None:
    one = train(folder, "one", "local")
    two = train(folder, "two", "torchrun --nproc_per_node 2")
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=1e-6, rtol=0)
