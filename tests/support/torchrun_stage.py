"""Helpers shared with ``test_torchrun_stage.py``."""

from __future__ import annotations

from pathlib import Path

import torch

from privasr_k2.training.weights import load_tensors
from tests.support.fedlm_verbs import SMALL, flags
from tests.support.fedlm_verbs import folder as folder  # a fixture
from tests.support.stage_tools import Tree


def train(folder: Path, name: str, launcher: str) -> dict[str, torch.Tensor]:
    """What a federated training gives under a launcher."""
    tree = Tree(folder)
    words = [*map(str, flags(folder, name)), "--set", *SMALL, "positions=40"]
    tree.stage(13, "federated", "--cmd", launcher, "train_fedlm", *words)
    tree.run()
    log = (folder / "log" / f"{name}.log").read_text()
    assert ("torch.distributed.run" in log) == ("torchrun" in launcher)
    return load_tensors(folder / name / "model.safetensors")
