"""Helpers shared with ``test_trainer.py``."""

from __future__ import annotations

from privasr_k2.training.task import TrainerConfig


def trainer_config(**changes: object) -> TrainerConfig:
    values = dict(epochs=3, lr=0.05, warmup_steps=2, final_lr_share=0.1, weight_decay=0.0, seed=1)
    values |= dict(clip_norm=5.0, avg=2, average_over="last", save_every=2, mixed_precision=False)
    return TrainerConfig(**{**values, **changes})
