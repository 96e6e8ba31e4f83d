"""Batches that do not fit into memory: halved until they do, said, and with the same gradient."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from torch import nn

from privasr_k2.compat import out_of_memory
from privasr_k2.data.batches import Batch, pad_batch
from privasr_k2.errors import PrivasrError
from privasr_k2.training.distributed import Process
from privasr_k2.training.task import Loss
from privasr_k2.training.trainer import in_parts, train
from privasr_k2.training.weights import load_tensors
from tests.support.trainer import trainer_config

ALONE = Process(0, 1, torch.device("cpu"))


def batch(number: int = 5) -> Batch:
    generator = torch.Generator().manual_seed(number)
    features = [torch.randn(3 + n, 2, generator=generator) for n in range(number)]
    names, targets = [f"u{n}" for n in range(number)], [[1] * (n + 1) for n in range(number)]
    return pad_batch(names, features, targets)


class Source:
    total_frames = 25

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Batch]:
        yield from [batch(5), batch(4)][skip:]


class Limited:
    """A task that has memory for some utterances at a time."""

    def __init__(self, most: int) -> None:
        self.most, self.sizes = most, list[int]()

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator | None) -> Loss:
        self.sizes.append(len(batch))
        if len(batch) > self.most:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return Loss(model(batch.features).square().sum((1, 2)), int(batch.target_lengths.sum()))

    def figures(self, means: Mapping[str, float]) -> dict[str, float]:
        return dict(means)


def trained(folder: Path, most: int) -> tuple[dict[str, torch.Tensor], Limited]:
    torch.manual_seed(0)
    task = Limited(most)
    # No bias: padding adds nothing.
    model, config = nn.Linear(2, 3, bias=False), trainer_config(epochs=2)
    epochs = train(model, task, Source(), Source(), folder, config, ALONE, "f")
    return load_tensors(epochs[-1]), task


def test_parts_give_what_the_whole_gives(tmp_path, caplog):
    whole, _ = trained(tmp_path / "whole", 5)
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        parts, task = trained(tmp_path / "parts", 2)
    torch.testing.assert_close(parts["weight"], whole["weight"])
    assert task.sizes[:6] == [5, 3, 2, 2, 1, 4]
    assert "out of memory (CUDA out of memory" in caplog.text and "in 4 parts" in caplog.text


def test_memory_for_not_even_one_is_said():
    def run(parts: list[Batch]) -> None:
        raise MemoryError("no memory left")

    with pytest.raises(PrivasrError, match="u0: expected memory for one utterance at a time"):
        in_parts(batch(), run)


def test_other_errors_and_batches_that_cannot_be_split_are_left_alone():
    seen = []

    def wrong(parts: list[Batch]) -> None:
        seen.append(len(parts))
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1"):
        in_parts(batch(), wrong)
    with pytest.raises(MemoryError):
        in_parts(object(), lambda parts: (_ for _ in ()).throw(MemoryError()))
    assert seen == [1]


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_split_keeps_every_utterance_without_needless_padding(parts):
    whole = batch()
    made = whole.split(parts)
    assert [name for part in made for name in part.ids] == list(whole.ids)
    for part in made:
        assert part.features.size(1) == int(part.lengths.max())
        assert part.targets.size(1) == int(part.target_lengths.max())
    squares = [float(part.features.square().sum()) for part in (whole, *made)]
    assert sum(squares[1:]) == pytest.approx(squares[0])


def test_the_processors_allocator_is_understood():
    with pytest.raises(RuntimeError) as found:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert out_of_memory(found.value)
