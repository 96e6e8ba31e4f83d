"""A stage whose processes torchrun starts, through the stage runner."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.support.fedlm_verbs import folder as folder  # a fixture
from tests.support.torchrun_stage import train


def test_a_training_by_torchrun(folder: Path) -> None:
    alone = train(folder, "one", "local")
    shared = train(folder, "two", "torchrun --nproc_per_node 2")
    torch.testing.assert_close(shared, alone, atol=1e-6, rtol=0)
