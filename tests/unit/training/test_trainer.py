"""The training loop on a problem whose answer is known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from privasr_k2.errors import PrivasrError
from privasr_k2.training import checkpoint_manager
from privasr_k2.training.distributed import Process
from privasr_k2.training.task import Loss
from privasr_k2.training.trainer import learning_rate, train
from privasr_k2.training.weights import average, load_tensors
from tests.support.trainer import trainer_config

ALONE = Process(0, 1, torch.device("cpu"))


@dataclass(frozen=True)
class Numbers:
    ids: tuple[str, ...]
    x: Tensor
    lengths: Tensor

    def to(self, device: torch.device) -> Numbers:
        return self


class Line:
    """Batches of x with y = 2 x - 1; batch ``bad`` of epoch 1 holds something not finite."""

    total_frames = 40

    def __init__(self, bad: int | None = None) -> None:
        self.bad, self.given = bad, 0

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Numbers]:
        for index in range(skip, 5):
            generator = torch.Generator().manual_seed(100 * number + index)
            x = torch.randn(4, 1, generator=generator)
            if self.bad == index and number == 1:
                x[2] = float("nan")
            self.given += 1
            yield Numbers(tuple(f"e{number}b{index}u{n}" for n in range(4)), x, torch.full((4,), 2))


class Fit:
    def loss(self, model: nn.Module, batch: Numbers, generator: torch.Generator | None) -> Loss:
        return Loss(sums=(model(batch.x) - 2 * batch.x + 1).square().sum(1), count=len(batch.ids))

    def figures(self, means: Mapping[str, float]) -> dict[str, float]:
        return {**means, "root": means["loss"] ** 0.5}


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.2), nn.Linear(8, 1))


def train_model(model: nn.Module, folder: Path, source: Any = None, **changes: Any) -> list[Path]:
    task, fingerprint = changes.pop("task", Fit()), changes.pop("fingerprint", "f")
    rule = {"patience": changes.pop("patience", 0)}
    sources, config = (source or Line(), Line()), trainer_config(**changes)
    return train(model, task, *sources, folder, config, ALONE, fingerprint, **rule)


def run(folder: Path, source: Any = None, **changes: Any) -> tuple[nn.Module, list[Path]]:
    model = network()
    return model, train_model(model, folder, source, **changes)


def records(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "train_log.jsonl").read_text().splitlines()]


def test_learns_and_reports(tmp_path):
    run(tmp_path, epochs=15)
    told = records(tmp_path)
    assert [record["epoch"] for record in told] == list(range(1, 16)) and told[-1]["step"] == 75
    assert told[-1]["dev_loss"] < 0.1 * told[0]["dev_loss"]
    assert told[-1]["dev_root"] == pytest.approx(told[-1]["dev_loss"] ** 0.5, rel=1e-4)
    assert list((tmp_path / "tensorboard").iterdir())


class Killed(Exception):
    pass


class Mortal(Line):
    """Dies before a batch."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Numbers]:
        for batch in super().epoch(number, skip=skip):
            if self.given > self.last:
                raise Killed
            yield batch


@pytest.mark.parametrize("last", [0, 1, 4, 5, 8, 14])
def test_an_interrupted_training_gives_the_same_parameters(tmp_path, last):
    whole, _ = run(tmp_path / "whole")
    with pytest.raises(Killed):
        run(tmp_path / "killed", Mortal(last))
    source = Line()
    continued, chosen = run(tmp_path / "killed", source)
    assert source.given <= 15 - last // 2 * 2
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), continued.parameters()))
    assert records(tmp_path / "killed") == records(tmp_path / "whole")
    assert [path.name for path in chosen] == ["epoch-2.safetensors", "epoch-3.safetensors"]


def test_a_finished_training_is_not_repeated(tmp_path):
    _, before = run(tmp_path)
    source = Line()
    _, after = run(tmp_path, source)
    assert source.given == 0 and after == before


class Scripted(Fit):
    """Its losses on dev are given, an epoch each."""

    def __init__(self, *losses: float) -> None:
        self.left = iter([loss for loss in losses for _ in range(5)])

    def loss(self, model: nn.Module, batch: Numbers, generator: torch.Generator | None) -> Loss:
        found = super().loss(model, batch, generator)
        if generator is not None:
            return found
        return Loss(sums=torch.full_like(found.sums, next(self.left)), count=len(batch.ids))


def test_patience_ends_a_training_that_dev_no_longer_gains_from(tmp_path):
    rule = {"epochs": 20, "avg": 2, "average_over": "best", "patience": 3}
    _, chosen = run(tmp_path / "a", task=Scripted(5, 4, 3, 3.5, 3.25, 3.125), **rule)
    assert [record["epoch"] for record in records(tmp_path / "a") if "dev_loss" in record][-1] == 6
    assert [path.name for path in chosen] == ["epoch-3.safetensors", "epoch-6.safetensors"]
    source = Line()
    _, again = run(tmp_path / "a", source, task=Scripted(), **rule)
    assert source.given == 0 and again == chosen
    # A continued training counts the epochs before it was killed; a late gain counts anew.
    late = (5, 4, 3, 3.5, 3.25, 2, 6, 6, 6)
    with pytest.raises(Killed):
        run(tmp_path / "b", Mortal(21), task=Scripted(*late), **rule)
    _, chosen = run(tmp_path / "b", task=Scripted(*late[4:]), **rule)
    assert [path.name for path in chosen] == ["epoch-3.safetensors", "epoch-6.safetensors"]
    assert [record["epoch"] for record in records(tmp_path / "b") if "dev_loss" in record][-1] == 9


def test_another_fingerprint_begins_anew(tmp_path):
    run(tmp_path)
    source = Line()
    run(tmp_path, source, fingerprint="another")
    assert source.given == 15


def test_torchs_global_generator_decides_nothing(tmp_path):
    one, _ = run(tmp_path / "one")
    model = network()
    torch.manual_seed(99)
    before = torch.random.get_rng_state()
    train_model(model, tmp_path / "two")
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), model.parameters()))


def test_another_seed_drops_others(tmp_path):
    one, _ = run(tmp_path / "one")
    two, _ = run(tmp_path / "two", seed=2)
    assert not torch.equal(one[0].weight, two[0].weight)


def test_first_step_is_adamws_by_hand(tmp_path):
    """Without decay it is lr * sign(gradient) (Kingma and Ba 2015, algorithm 1)."""
    model = nn.Linear(1, 1)
    before = torch.cat([model.weight.detach().clone().flatten(), model.bias.detach().clone()])
    batch = next(Line().epoch(0))

    class One(Line):
        def epoch(self, number: int, *, skip: int = 0) -> Iterator[Numbers]:
            return iter([batch][skip:])

    train_model(model, tmp_path, One(), epochs=1, avg=1, warmup_steps=0)
    residual = before[0] * batch.x[:, 0] + before[1] - 2 * batch.x[:, 0] + 1
    gradient = torch.stack([(2 * residual * batch.x[:, 0]).mean(), (2 * residual).mean()])
    after = torch.cat([model.weight.detach().flatten(), model.bias.detach()])
    torch.testing.assert_close(after, before - 0.05 * gradient.sign(), atol=1e-5, rtol=1e-5)


def test_a_loss_that_is_not_finite_names_its_utterance(tmp_path):
    with pytest.raises(PrivasrError, match="e1b3u2") as caught:
        run(tmp_path, Line(bad=3))
    assert "e1b3u1" not in str(caught.value)


def test_a_gradient_that_is_not_finite_stops_too(tmp_path):
    class Steep(Fit):
        def loss(self, model: nn.Module, batch: Numbers, generator: torch.Generator | None) -> Loss:
            return Loss(sums=(model(batch.x) * 0).sum(1).abs().sqrt(), count=4)

    with pytest.raises(PrivasrError, match="e0b0u0"):
        run(tmp_path, task=Steep())


def test_few_checkpoints_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_manager, "KEPT", 1)
    run(tmp_path, epochs=6, avg=2)
    names = sorted(path.stem for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["epoch-5", "epoch-6", "latest"]


def test_average_is_the_mean(tmp_path):
    _, chosen = run(tmp_path)
    mean, parts = average(chosen), [load_tensors(path) for path in chosen]
    for name, value in mean.items():
        torch.testing.assert_close(value, (parts[0][name] + parts[1][name]) / 2)


def test_learning_rate_rises_then_falls():
    config = trainer_config(lr=1.0, warmup_steps=4, final_lr_share=0.2)
    assert [learning_rate(config, step, 0.0) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert learning_rate(config, 10, 0.5) == pytest.approx(0.6)
    assert learning_rate(config, 10, 1.0) == learning_rate(config, 10, 1.1) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("epochs", 0), ("lr", 0.0), ("avg", 0), ("average_over", "worst")),
        *(("final_lr_share", 2.0), ("save_every", -1)),
    ],
)
def test_bad_numbers_are_named(key, value):
    with pytest.raises(ValueError, match=key):
        trainer_config(**{key: value})
