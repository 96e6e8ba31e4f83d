"""Which checkpoints are kept, and that a kill between two of them loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from privasr_k2.compat import grad_scaler
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.training import checkpoint_manager
from privasr_k2.training.checkpoint_manager import CheckpointManager, TrainerState

LOSSES = {1: 3.0, 2: 1.0, 3: 2.0, 4: 1.5, 5: 4.0}


Trained = tuple[nn.Module, torch.optim.Optimizer, Any]


@pytest.fixture(autouse=True)
def two_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_manager, "KEPT", 2)


def training() -> Trained:
    """A model, its optimizer and a scaler."""
    model = nn.Linear(2, 1)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1), grad_scaler(enabled=False)


def keep_all(folder: Path, *, best: bool) -> CheckpointManager:
    manager = CheckpointManager(folder, "f", average=2, best=best, writes=True)
    made = training()
    for epoch, loss in LOSSES.items():
        manager.save_epoch(TrainerState(epoch=epoch), loss, *made)
    return manager


@pytest.mark.parametrize(
    ("best", "expected"), [(True, ["epoch-2", "epoch-4"]), (False, ["epoch-4", "epoch-5"])]
)
def test_epochs_to_average(tmp_path, best, expected):
    assert [path.stem for path in keep_all(tmp_path, best=best).chosen()] == expected
    assert sorted(path.stem for path in tmp_path.iterdir()) == [*expected, "latest"]


def test_epoch_ten_comes_after_nine(tmp_path):
    manager = CheckpointManager(tmp_path, "f", average=2, best=False, writes=True)
    for epoch in (9, 10):
        manager.save_epoch(TrainerState(epoch=epoch), 0.0, *training())
    assert [path.stem for path in manager.chosen()] == ["epoch-9", "epoch-10"]


def test_optimizer_memory_comes_back(tmp_path):
    def trained(steps: int, model: nn.Module, optimizer: Any, _: Any) -> list[torch.Tensor]:
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).square().sum().backward()
            optimizer.step()
        return [parameter.detach().clone() for parameter in model.parameters()]

    torch.manual_seed(0)
    made, other = training(), training()
    manager = CheckpointManager(tmp_path, "f", average=1, best=False, writes=True)
    trained(3, *made)
    state = TrainerState(step=3, nats=0.1 + 0.2)
    manager.save_training(state, *made)
    expected = trained(2, *made)
    assert manager.resume(*other) == state
    assert all(torch.equal(a, b) for a, b in zip(trained(2, *other), expected))


def test_a_process_that_does_not_lead_writes_nothing(tmp_path):
    manager = CheckpointManager(tmp_path, "f", average=1, best=False, writes=False)
    manager.save_epoch(TrainerState(epoch=1), 0.0, *training())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("keep", "best", "continued"),
    [(1, False, True), (2, False, True), (3, False, False), (2, True, False)],
)
def test_averaging_otherwise_needs_no_training_or_is_refused(tmp_path, keep, best, continued):
    keep_all(tmp_path, best=False)
    manager = CheckpointManager(tmp_path, "f", average=keep, best=best, writes=True)
    if continued:
        assert manager.resume(*training()) == TrainerState(epoch=5)
        assert [path.stem for path in manager.chosen()] == ["epoch-4", "epoch-5"][-keep:]
        return
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ConfigError, match="last epochs, of which 2 are kept, found one of the"):
        manager.resume(*training())
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_more_epochs_than_are_averaged_are_kept_for_another_average(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_manager, "KEPT", 4)
    manager = keep_all(tmp_path, best=False)
    assert [path.stem for path in manager.chosen()] == ["epoch-4", "epoch-5"]
    more = CheckpointManager(tmp_path, "f", average=4, best=False, writes=True)
    assert more.resume(*training()) == TrainerState(epoch=5)
    assert [path.stem for path in more.chosen()] == [f"epoch-{n}" for n in (2, 3, 4, 5)]


def test_what_is_gone_stays_gone_though_more_would_be_kept_now(tmp_path, monkeypatch):
    keep_all(tmp_path, best=False)  # two, as an earlier version
    monkeypatch.setattr(checkpoint_manager, "KEPT", 4)
    manager, made = CheckpointManager(tmp_path, "f", average=2, best=False, writes=True), training()
    manager.save_epoch(manager.resume(*made).after_epoch(), 0.0, *made)
    four = CheckpointManager(tmp_path, "f", average=4, best=False, writes=True)
    with pytest.raises(ConfigError, match="2 are kept"):  # epochs 3 to 6 are not all there
        four.resume(*training())


def test_what_a_kill_interrupted_is_removed(tmp_path):
    manager = keep_all(tmp_path, best=False)
    (tmp_path / ".0123abcd.tmp.latest.safetensors").write_bytes(b"half")
    manager.resume(*training())
    names = sorted(path.stem for path in tmp_path.iterdir())
    assert names == ["epoch-4", "epoch-5", "latest"]


def test_a_damaged_checkpoint_is_named(tmp_path):
    manager = keep_all(tmp_path, best=False)
    latest = tmp_path / "latest.safetensors"
    latest.write_bytes(latest.read_bytes()[:50])
    with pytest.raises(DataError, match=r"latest\.safetensors: expected a whole safetensors file"):
        manager.resume(*training())
