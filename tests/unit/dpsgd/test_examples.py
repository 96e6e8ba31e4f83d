"""Gradients of examples: what is refused, and what Opacus would count twice."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from privasr_k2.am.ctc import CtcTask
from privasr_k2.am.encoders.common import valid_frames
from privasr_k2.data.batches import Batch
from privasr_k2.dpsgd.examples import ExampleGradients, check_examples, made_up, without_dropout
from privasr_k2.dpsgd.lstm import with_example_lstms
from privasr_k2.errors import PrivacyError
from privasr_k2.training.trainable import LoraConfig, choose_trained
from tests.support.private_speech import made_model
from tests.support.small_am import tiny_model, whisper_model


class Mean(nn.Module):
    """Takes the batch's mean away: examples know of each other."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(dim=0, keepdim=True)


class TimeFirst(nn.Module):
    """A linear layer that reads (T, N, D)."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x.permute(2, 0, 1)).permute(1, 2, 0)


class Broken(nn.Module):
    """A CTC model with one more layer behind its encoder."""

    def __init__(self, added: nn.Module) -> None:
        super().__init__()
        self.made = made_model()
        self.added = added
        self.mean, self.subsampling = self.made.mean, self.made.subsampling
        self.feature_dim, self.num_tokens = self.made.feature_dim, self.made.num_tokens

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        encoded, lengths = self.made.encoded(x, lengths)
        return self.made.output(self.added(encoded)) * valid_frames(encoded, lengths)


def losses(model: nn.Module, batch: Batch) -> Tensor:
    return model(batch.features, batch.lengths).square().sum(dim=(1, 2))


def test_layers_that_keep_examples_apart_pass() -> None:
    model = Broken(nn.Identity())
    check_examples(ExampleGradients(model), model, losses)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("added", "message"), [(Mean(), "depend on other examples"), (TimeFirst(), "3 gradients")]
)
def test_layers_that_do_not_are_refused(added: nn.Module, message: str) -> None:
    model = Broken(added)
    with pytest.raises(PrivacyError, match=message):
        check_examples(ExampleGradients(model), model, losses)  # type: ignore[arg-type]


def test_a_parameter_without_a_gradient_is_refused() -> None:
    model = Broken(nn.Identity())
    model.unused = nn.Linear(2, 2)
    with pytest.raises(PrivacyError, match="parameter unused"):
        check_examples(ExampleGradients(model), model, losses)  # type: ignore[arg-type]


def test_a_linear_layer_called_several_times() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(torch.tanh(self.inner(x.unsqueeze(1).expand(-1, 4, -1)))[:, 0])

    model, x = Twice(), torch.randn(2, 3)
    found = ExampleGradients(model).gradients(lambda twin: twin(x).sin().sum(dim=1))
    for row in range(2):
        model.zero_grad()
        model(x[row : row + 1]).sin().sum().backward()
        for one, parameter in zip(found, model.parameters()):
            torch.testing.assert_close(one[row], parameter.grad)


def test_there_is_no_dropout_and_the_model_keeps_its_own() -> None:
    model = made_model("rnnt", "blstm", dropout=0.5).train()
    gradients, batch = ExampleGradients(model), made_up(model, 0)
    given = (batch.features, batch.lengths, batch.targets, batch.target_lengths)
    assert gradients.training and torch.equal(gradients(*given), gradients(*given))
    assert not torch.equal(model(*given), model(*given))
    without_dropout(model)
    torch.testing.assert_close(model(*given), gradients(*given))


@pytest.mark.parametrize(("part", "kept"), [("lora", {"lora.down", "lora.up"}), ("bias", set())])
def test_frozen_weights_keep_neither_inputs_nor_gradients(part: str, kept: set[str]) -> None:
    model = whisper_model()
    names = choose_trained(model, [part], LoraConfig(rank=2, scale=1.0, layers=["query", "value"]))
    gradients, batch, seen = ExampleGradients(model), made_up(model, 1), set()

    def watched(twin: nn.Module) -> Tensor:
        sums = CtcTask().loss(twin, batch, torch.Generator()).sums
        for name, module in twin.named_modules():
            inputs = [one for call in getattr(module, "activations", ()) for one in call]
            if type(module) is nn.Linear and any(one.numel() for one in inputs):
                seen.add(".".join(name.split(".")[-2:]))
        return sums

    rows = gradients.gradients(watched)
    assert seen == kept
    size = sum(model.get_parameter(name).numel() for name in names)
    assert sum(one.numel() for one in rows) == 3 * size
    others = [one for one in model.parameters() if not one.requires_grad]
    assert others and not any(hasattr(one, "grad_sample") and one.grad_sample for one in others)


PARTS = ("output", "last_block", "bias", "lora", "lora bias", "all")


@pytest.mark.parametrize(
    ("encoder", "part"),
    [
        *((encoder, part) for encoder in ("tdnn", "conformer", "whisper") for part in PARTS),
        *(("blstm", part) for part in PARTS if part != "last_block"),
    ],
)
def test_every_trainable_part_has_the_gradients_of_a_loop(encoder: str, part: str) -> None:
    model = whisper_model() if encoder == "whisper" else tiny_model(encoder)
    lora = LoraConfig(rank=2, scale=1.0, layers=["query", "value", "out", "output"])
    names = choose_trained(model, part.split(), lora)
    for name in names:  # B of an adapter is zero, and with it the gradient of A
        torch.nn.init.normal_(model.get_parameter(name), std=0.1)
    batch = made_up(model, 1)

    def ctc(of: nn.Module, batch: Batch) -> Tensor:
        return CtcTask().loss(of, batch, torch.Generator()).sums

    gradients = ExampleGradients(model)
    found = gradients.gradients(lambda twin: ctc(twin, batch))
    gradients.clear()
    check_examples(gradients, model, ctc)
    plain = without_dropout(with_example_lstms(model)).train()
    for row, example in enumerate(batch.split(3)):
        plain.zero_grad()
        ctc(plain, example).sum().backward()
        for name, rows in zip(names, found, strict=True):
            own = model.get_parameter(name).grad  # both share parameters
            torch.testing.assert_close(
                rows[row], own, rtol=1e-4, atol=1e-4 * float(own.abs().max())
            )
