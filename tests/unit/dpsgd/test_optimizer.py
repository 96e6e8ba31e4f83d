"""The optimizer: parts of a batch, units, noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from privasr_k2.dpsgd.optimizer import UnitOptimizer, make_optimizer
from privasr_k2.privacy.noise import GaussianNoise
from privasr_k2.randomness import NoiseStream, noise_stream


def made(
    noise: float = 0.0,
    clip: float | None = 1.0,
    lr: float = 1.0,
    layers: list[int] | None = None,
) -> tuple[nn.Linear, UnitOptimizer]:
    model = nn.Linear(2, 2)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    plain = make_optimizer(dict(model.named_parameters()), kind="sgd", lr=lr, momentum=0.0)
    numbers = {"clip": clip, "noise_multiplier": noise, "expected": 4.0}
    return model, UnitOptimizer(plain, layers=layers, **numbers)


def take(
    model: nn.Linear, optimizer: UnitOptimizer, rows: list[list[float]], owners: list[int],
    *, ends: bool = True,
) -> None:  # fmt: skip
    values = torch.tensor(rows)
    model.weight.grad_sample = values[:, :4].reshape(-1, 2, 2)
    model.bias.grad_sample = values[:, 4:]
    optimizer.owners, optimizer.ends = owners, ends
    optimizer.signal_skip_step()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def finish(optimizer: UnitOptimizer, stream: NoiseStream | None = None) -> None:
    optimizer.stream = stream
    optimizer.signal_skip_step(False)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def test_units_are_clipped_whole_over_rows_and_parts() -> None:
    model, optimizer = made()
    rows = [[3.0, 0, 0, 0, 0, 0], [0, 0.5, 0, 0, 0, 0], [0, 0, 0, 0, 4.0, 0]]
    take(model, optimizer, rows, [0, 1, 0])
    take(model, optimizer, [[0, 0, 6.0, 0, 0, 0]], [0], ends=False)  # a unit of two parts
    take(model, optimizer, [[0, 0, 0, 0, 0, 8.0]], [0], ends=True)
    assert not model.weight.any()  # no step yet
    finish(optimizer)
    expected = np.array([0.6, 0.5, 0.6, 0, 0.8, 0.8]) / 4
    np.testing.assert_allclose(optimizer.gradient, expected, atol=1e-7)
    weights = torch.cat([model.weight.flatten(), model.bias]).detach()
    np.testing.assert_allclose(weights, -expected, atol=1e-7)
    assert optimizer.count == 3
    finish(optimizer)  # nothing is left over for the next batch
    assert not optimizer.gradient.any() and optimizer.count == 0


def test_units_are_clipped_by_layer_over_rows_and_parts() -> None:
    model, optimizer = made(clip=2.0**0.5, layers=[1, 1])  # 1 for each
    rows = [[3.0, 0, 0, 0, 0, 0], [0, 0.5, 0, 0, 0.7, 0], [0, 4.0, 0, 0, 0, 3.0]]
    take(model, optimizer, rows, [0, 1, 0])
    take(model, optimizer, [[0, 0, 0.6, 0, 0, 0]], [0], ends=False)  # a unit of two parts
    take(model, optimizer, [[0, 0, 0, 0.6, 0, 8.0]], [0], ends=True)
    optimizer.add_given(torch.tensor([0, 0, 0, 0, -9.0, 0]))
    finish(optimizer)
    expected = np.array([0.6, 1.3, 0.6, 0.6, -0.3, 2.0]) / 4
    np.testing.assert_allclose(optimizer.gradient, expected, atol=1e-7)
    assert optimizer.count == 4 and optimizer.layers == [[4], [2]]
    finish(optimizer)
    assert not optimizer.gradient.any() and optimizer.count == 0


def test_by_layer_a_unit_that_is_not_finite_in_one_layer_is_left_out() -> None:
    model, optimizer = made(layers=[1, 1])
    take(model, optimizer, [[0.1, 0, 0, 0, 0, np.nan], [0.1, 0, 0, 0, 0, 0]], [0, 1])
    optimizer.add_given(torch.tensor([np.inf, 0, 0, 0, 0.1, 0]))
    finish(optimizer)
    np.testing.assert_allclose(optimizer.gradient * 4, [0.1, 0, 0, 0, 0, 0], atol=1e-7)
    assert (optimizer.count, optimizer.left_out) == (1, 2)


def test_noise_by_layer_is_that_of_the_whole_clip() -> None:
    drawn = []
    for layers in (None, [1, 1]):
        _, optimizer = made(noise=1.5, clip=2.0, layers=layers)
        finish(optimizer, noise_stream(bytes(32), "a"))
        drawn.append(optimizer.gradient)
    assert torch.equal(*drawn) and drawn[0].all()


def test_noise_is_that_of_the_stream_and_the_clip() -> None:
    secret = bytes(32)
    model, optimizer = made(noise=1.5, clip=2.0)
    take(model, optimizer, [[1.0, 0, 0, 0, 0, 0]], [0], ends=True)
    finish(optimizer, noise_stream(secret, "a"))
    noise = GaussianNoise(noise_multiplier=1.5, l2_sensitivity=2.0)
    expected = noise.add(np.array([1.0, 0, 0, 0, 0, 0]), noise_stream(secret, "a")) / 4
    np.testing.assert_allclose(optimizer.gradient, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="stream"):  # each batch its own
        optimizer.signal_skip_step(False)
        optimizer.step()


def test_an_empty_batch_is_noise_alone() -> None:
    _, optimizer = made(noise=2.0)
    drawn = []
    for name in range(200):
        finish(optimizer, noise_stream(bytes(32), name))
        drawn.append(optimizer.gradient)
    assert float(torch.stack(drawn).std()) == pytest.approx(2.0 / 4, rel=0.1)
    assert optimizer.count == 0


def test_given_gradients_are_clipped() -> None:
    _, optimizer = made()
    optimizer.add_given(torch.tensor([0.0, 9.0, 0, 0, 0, 0]))
    finish(optimizer)
    np.testing.assert_allclose(optimizer.gradient * 4, [0, 1, 0, 0, 0, 0], atol=1e-7)


@pytest.mark.parametrize(("kind", "cls"), [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)])
def test_kinds(kind: str, cls: type[torch.optim.Optimizer]) -> None:
    parameters = dict(nn.Linear(2, 2).named_parameters())
    assert type(make_optimizer(parameters, kind=kind, lr=0.1, momentum=0.5)) is cls
