"""A stage whose processes torchrun starts, through the stage runner."""

from __future__ import annotations

from pathlib import Path

import torch

from privasr_k2.training.weights import load_tensors
from tests.recipes.stage_tools import Tree
from tests.unit.bin.test_fedlm_verbs import SMALL, flags
from tests.unit.bin.test_fedlm_verbs import folder as folder  # a fixture


def train(folder: Path, name: str, launcher: str) -> dict[str, torch.Tensor]:
    """What a federated training gives under a launcher."""
    tree = Tree(folder)
    words = [*map(str, flags(folder, name)), "--set", *SMALL, "positions=40"]
    tree.stage(13, "federated", "--cmd", launcher, "train_fedlm", *words)
    tree.run()
    log = (folder / "log" / f"{name}.log").read_text()
    assert ("torch.distributed.run" in log) == ("torchrun" in launcher)
    return load_tensors(folder / name / "model.safetensors")


def test_a_training_by_torchrun(folder: Path) -> None:
    one = train(folder, "one", "local")
    two = train(folder, "two", "torchrun --nproc_per_node 2")
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=1e-6, rtol=0)
