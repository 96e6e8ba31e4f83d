"""DP-SGD against one utterance at a time, and our LSTM against Opacus's."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from privasr_k2.am.grad_samplers import register, with_replaceable_layers
from privasr_k2.am.kinds import KINDS
from privasr_k2.data.batches import Batch, pad_batch
from privasr_k2.dpsgd.examples import ExampleGradients
from privasr_k2.dpsgd.lstm import ExampleLstm
from privasr_k2.training.trainable import Adapter
from tests.support.end_to_end import ENCODERS, END_TO_END, model, renamed
from tests.support.private_speech import made_data, trainer
from tests.support.small_am import features, tiny_model

ARCHITECTURES = [
    *(("ctc", encoder) for encoder in ENCODERS[:3]),
    *((kind, encoder) for kind in END_TO_END for encoder in ENCODERS),
]


def made_batch() -> Batch:
    x, lengths = features(33, 24, 29)
    targets = torch.tensor([[1, 2, 2], [3, 1, 0], [2, 0, 0]])
    return Batch(("a", "b", "c"), x, lengths, targets, torch.tensor([3, 2, 1]))


def losses(made: nn.Module, batch: Batch, kind: str) -> Tensor:
    return KINDS[kind].task().loss(made, batch, torch.Generator()).sums


@pytest.mark.parametrize(("kind", "encoder"), ARCHITECTURES)
def test_gradients_of_examples_are_those_of_one_at_a_time(kind: str, encoder: str) -> None:
    compare_with_one_at_a_time(tiny_model(encoder) if kind == "ctc" else model(kind, encoder), kind)


@pytest.mark.k2
def test_gradients_of_examples_with_a_pruned_transducer() -> None:
    compare_with_one_at_a_time(model("rnnt", prune_range=2), "rnnt")


def compare_with_one_at_a_time(made: nn.Module, kind: str) -> None:
    batch = made_batch()
    found = ExampleGradients(made).gradients(lambda twin: losses(twin, batch, kind))
    for row, one in enumerate(batch.split(3)):
        made.train().zero_grad(set_to_none=True)
        losses(made, one, kind).sum().backward()
        for (name, parameter), gradient in zip(made.named_parameters(), found):
            # Of the largest value: some are sums of some hundred terms of its size.
            near = {"atol": 1e-5 * max(1.0, float(parameter.grad.abs().max())), "rtol": 1e-5}
            torch.testing.assert_close(gradient[row], parameter.grad, **near, msg=name)


@pytest.mark.parametrize("kind", ["rnnt", "las"])
def test_our_lstm_has_the_gradients_of_opacus(kind: str) -> None:
    grad_sample = pytest.importorskip("opacus.grad_sample")
    register()
    made, batch = model(kind, "blstm").train(), made_batch()
    gradients = ExampleGradients(made).gradients(lambda twin: losses(twin, batch, kind))
    ours = dict(zip(dict(made.named_parameters()), gradients))
    replaced = with_replaceable_layers(copy.deepcopy(made))
    wrapped = grad_sample.GradSampleModule(replaced, loss_reduction="sum")
    losses(wrapped, batch, kind).sum().backward()
    theirs = {renamed(name): one.grad_sample for name, one in wrapped.named_parameters()}
    assert sum("weight_hh" in name for name in theirs) > 1
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("trained", ["all", "lora,bias"])
@pytest.mark.parametrize("changes", ["isolate_units=true", "isolate_units=false max_duration=0.7"])
def test_a_step_by_layer_is_a_loop_over_units_and_layers(
    trained: str, changes: str, tmp_path: Path
) -> None:
    data = made_data(tmp_path)[0]
    setting = [f"trained=[{trained}]", "lora.layers=[out]", "clip=0.3", "clip_by=layer"]
    made = trainer(data, *setting, *changes.split(), encoder="conformer")
    for name in made.trained:
        if name.endswith("lora.up.weight"):  # as after some steps
            nn.init.normal_(made.trained[name], std=0.1)
    slow = copy.deepcopy(made.model)
    layers = [
        [parameter for parameter in own if parameter.requires_grad]
        for module in slow.modules()
        for own in [[*module.parameters(recurse=isinstance(module, Adapter))]]
        if not any(module in (a.down, a.up) for a in slow.modules() if isinstance(a, Adapter))
    ]
    layers = [layer for layer in layers if layer]
    assert len(layers) > 10
    largest, total, clipped = 0.3 / len(layers) ** 0.5, [], 0
    for unit in data.units:
        slow.zero_grad()
        for name, weight in unit.weights("mean", 0, 1, 0).items():
            batch = pad_batch([name], [data.speech.features(name)], [data.speech.targets[name]])
            (losses(slow, batch, "ctc").sum() / batch.target_lengths[0] * weight).backward()
        rows = []
        for layer in layers:
            own = torch.cat([parameter.grad.flatten() for parameter in layer])
            clipped += float(own.norm()) > largest
            rows.append(own * min(1.0, largest / max(1e-12, float(own.norm()))))
        total.append(torch.cat(rows))
    # Some layers of some units are within their clip, some beyond.
    assert 0 < clipped < len(layers) * len(data.units)
    found = made.step(0, data.units, None).gradient * made.optimizer.expected_batch_size
    torch.testing.assert_close(found, torch.stack(total).sum(dim=0), atol=1e-5, rtol=1e-4)


def test_the_lstm_passes_numerical_differentiation() -> None:
    lstm = ExampleLstm(nn.LSTM(2, 3, 2).double())
    shapes = ((4, 2, 2), (2, 2, 3), (2, 2, 3))
    given = [torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in shapes]

    def hidden_values(x: Tensor, *state: Tensor) -> Tensor:
        return lstm(x, state)[0]

    assert torch.autograd.gradcheck(hidden_values, given, eps=1e-6, atol=1e-6)
