"""Helpers shared with ``test_train.py``."""

from __future__ import annotations

import torch

from privasr_k2.training.distributed import Process

ALONE = Process(0, 1, torch.device("cpu"))


class Stop(Exception):
    """Stands for whatever ends a training before its time."""
