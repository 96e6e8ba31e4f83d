"""Which checkpoints are kept, and that a kill between two of them loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from privasr_k2.compat import grad_scaler
from privasr_k2.errors import DataError
from privasr_k2.training.checkpoint_manager import CheckpointManager, TrainerState

LOSSES = {1: 3.0, 2: 1.0, 3: 2.0, 4: 1.5, 5: 4.0}


def keep_all(folder: Path, *, best: bool) -> CheckpointManager:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    manager = CheckpointManager(folder, "f", keep=2, best=best, writes=True)
    for epoch, loss in LOSSES.items():
        manager.save_epoch(
            TrainerState(epoch=epoch), loss, model, optimizer, grad_scaler(enabled=False)
        )
    return manager


@pytest.mark.parametrize(
    ("best", "expected"), [(True, ["epoch-2", "epoch-4"]), (False, ["epoch-4", "epoch-5"])]
)
def test_epochs_to_average(tmp_path: Path, best: bool, expected: list[str]) -> None:
    assert [path.stem for path in keep_all(tmp_path, best=best).chosen()] == expected
    assert sorted(path.stem for path in tmp_path.iterdir()) == [*expected, "latest"]


def test_epoch_ten_comes_after_nine(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    manager = CheckpointManager(tmp_path, "f", keep=2, best=False, writes=True)
    for epoch in (9, 10):
        manager.save_epoch(
            TrainerState(epoch=epoch),
            0.0,
            model,
            torch.optim.AdamW(model.parameters()),
            grad_scaler(enabled=False),
        )
    assert [path.stem for path in manager.chosen()] == ["epoch-9", "epoch-10"]


def test_optimizer_memory_comes_back(tmp_path: Path) -> None:
    def trained(
        steps: int, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> list[torch.Tensor]:
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).square().sum().backward()
            optimizer.step()
        return [one.detach().clone() for one in model.parameters()]

    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer, scaler = torch.optim.AdamW(model.parameters(), lr=0.1), grad_scaler(enabled=False)
    manager = CheckpointManager(tmp_path, "f", keep=1, best=False, writes=True)
    trained(3, model, optimizer)
    manager.save_training(TrainerState(step=3, nats=0.1 + 0.2), model, optimizer, scaler)
    expected = trained(2, model, optimizer)
    other = nn.Linear(2, 1)
    other_optimizer = torch.optim.AdamW(other.parameters(), lr=0.1)
    assert manager.resume(other, other_optimizer, scaler) == TrainerState(step=3, nats=0.1 + 0.2)
    assert all(torch.equal(a, b) for a, b in zip(trained(2, other, other_optimizer), expected))


def test_a_process_that_does_not_lead_writes_nothing(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    manager = CheckpointManager(tmp_path, "f", keep=1, best=False, writes=False)
    manager.save_epoch(
        TrainerState(epoch=1),
        0.0,
        model,
        torch.optim.AdamW(model.parameters()),
        grad_scaler(enabled=False),
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("keep", "best", "continued"),
    [(1, False, True), (2, False, True), (3, False, False), (2, True, False)],
)
def test_averaging_otherwise_needs_no_training_where_enough_is_kept(
    tmp_path: Path, keep: int, best: bool, continued: bool
) -> None:
    keep_all(tmp_path, best=False)
    model = nn.Linear(2, 1)
    manager = CheckpointManager(tmp_path, "f", keep=keep, best=best, writes=True)
    state = manager.resume(model, torch.optim.AdamW(model.parameters()), grad_scaler(enabled=False))
    assert state == (TrainerState(epoch=5) if continued else TrainerState())
    if continued:
        assert [path.stem for path in manager.chosen()] == ["epoch-4", "epoch-5"][-keep:]


def test_what_a_kill_interrupted_is_removed(tmp_path: Path) -> None:
    manager = keep_all(tmp_path, best=False)
    (tmp_path / ".0123abcd.tmp.latest.safetensors").write_bytes(b"half")
    model = nn.Linear(2, 1)
    manager.resume(model, torch.optim.AdamW(model.parameters()), grad_scaler(enabled=False))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "epoch-4.safetensors",
        "epoch-5.safetensors",
        "latest.safetensors",
    ]


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    manager = keep_all(tmp_path, best=False)
    latest = tmp_path / "latest.safetensors"
    latest.write_bytes(latest.read_bytes()[:50])
    model = nn.Linear(2, 1)
    with pytest.raises(DataError, match=r"latest\.safetensors: expected a whole safetensors file"):
        manager.resume(model, torch.optim.AdamW(model.parameters()), grad_scaler(enabled=False))
