"""Gradients of each example of a batch by Opacus, and a check that they are that.

Opacus assumes that layers read the batch first and do not mix examples. Where that is wrong it
clips something else, without an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from opacus.grad_sample import GradSampleModule
from torch import Tensor, nn

from privasr_k2.am.encoders.common import ChannelDropout
from privasr_k2.am.grad_samplers import register
from privasr_k2.am.model import AcousticModel
from privasr_k2.data.batches import Batch, pad_batch
from privasr_k2.dpsgd.lstm import with_example_lstms
from privasr_k2.errors import PrivacyError
from privasr_k2.randomness import stream

# Of the norm of a parameter's gradient: float32 sums in another order, through some layers.
_TOLERANCE = 1e-3


class ExampleGradients(GradSampleModule):
    """A model whose parameters get ``grad_sample`` (N, ...) from a sum of N losses.

    It shares its parameters with ``model``. It has no dropout, as a mask that depends on a place in
    the batch lets one example change another's gradient. Unlike Opacus, it joins the inputs of a
    linear layer that is called several times before the product.

    Args:
        model: an acoustic model; is not changed.

    Attributes:
        trained: its parameters that want gradients, by name, in its order.
    """

    def __init__(self, model: nn.Module) -> None:
        register()
        super().__init__(without_dropout(with_example_lstms(model)).train(), loss_reduction="sum")
        self._waiting: dict[nn.Module, list[tuple[Tensor, ...]]] = {}
        self.trained = trained_parameters(model)

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """As ``model``."""
        return self._module(*inputs)

    def capture_activations_hook(
        self, module: nn.Module, forward_input: list[Tensor], forward_output: Tensor
    ) -> None:
        """Opacus's hook after a layer's forward; a linear layer's bias needs no inputs."""
        super().capture_activations_hook(module, forward_input, forward_output)
        kept = getattr(module, "activations", None)
        if kept and type(module) is nn.Linear and not module.weight.requires_grad:
            kept[-1] = [forward_input[0].new_empty(0)]

    def capture_backprops_hook(
        self, module: nn.Module, _: object, forward_output: Sequence[Tensor], **options: Any
    ) -> None:
        """Opacus's hook after a layer's backward."""
        if type(module) is not nn.Linear or not self.hooks_enabled:
            super().capture_backprops_hook(module, _, forward_output, **options)
            return
        [activation], backprop = module.activations.pop(), forward_output[0].detach()
        self._waiting.setdefault(module, []).append((activation, backprop))
        if module.activations:
            return
        activations, outputs = zip(*self._waiting.pop(module))
        backprops = _joined(outputs)
        if module.weight.requires_grad:
            module.weight.grad_sample = torch.bmm(backprops.transpose(1, 2), _joined(activations))
        if module.bias is not None and module.bias.requires_grad:
            module.bias.grad_sample = backprops.sum(dim=1)
        for parameter in module.parameters():
            parameter._forward_counter = 0

    def gradients(self, losses: Callable[[nn.Module], Tensor]) -> list[Tensor]:
        """The gradients (N, ...) of every trained parameter for losses (N,) computed with it.

        Raises:
            PrivacyError: a parameter that has none, or not one for each example.
        """
        with warnings.catch_warnings():
            # Opacus needs the gradients of outputs only, which both kinds of hooks have.
            warnings.filterwarnings("ignore", "(Using a non-full|Full) backward hook")
            values = losses(self)
            values.sum().backward()
        for name, parameter in self.trained.items():
            rows = getattr(parameter, "grad_sample", None)
            if not isinstance(rows, Tensor) or rows.shape != (len(values), *parameter.shape):
                shape = tuple(rows.shape) if isinstance(rows, Tensor) else rows
                expected = f"{len(values)} gradients of shape {tuple(parameter.shape)}"
                raise _mixed(name, expected, str(shape))
        return [parameter.grad_sample for parameter in self.trained.values()]

    def clear(self) -> None:
        """Forget all gradients."""
        for parameter in self._module.parameters():
            parameter.grad = parameter.grad_sample = None


def _joined(calls: Sequence[Tensor]) -> Tensor:
    """(N, ..., D) of each call of a layer as (N, T, D) of all."""
    return torch.cat([call.reshape(len(call), -1, call.size(-1)) for call in calls], dim=1)


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """A model's parameters that want gradients, by name."""
    return {
        name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad
    }


def without_dropout(model: nn.Module) -> nn.Module:
    """The model with all dropout set to 0, in place."""
    for module in model.modules():
        if isinstance(module, ChannelDropout):
            module.probability = 0.0
        elif isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
    return model


def made_up(model: AcousticModel, seed: int) -> Batch:
    """Three utterances of noise, of different lengths, with two tokens each."""
    drawn = stream(seed, "made-up examples")
    lengths = [16 * model.subsampling + 3 * extra for extra in (0, 5, 2)]
    shapes = [(length, model.feature_dim) for length in lengths]
    features = [torch.from_numpy(drawn.normal(size=shape)).float() for shape in shapes]
    tokens = drawn.integers(1, model.num_tokens, size=(3, 2)).tolist()
    return pad_batch(("0", "1", "2"), features, tokens)


def check_examples(
    gradients: ExampleGradients, model: AcousticModel, losses: Callable[[nn.Module, Batch], Tensor]
) -> None:
    """Check on noise that each row of the gradients belongs to one example, and to no other.

    Another second example must leave the gradients of the first and the third as they are, and the
    first's must be what the model itself has for it alone.

    Raises:
        PrivacyError: a layer that mixes examples, or does not have the batch first.
    """
    batch, other = (made_up(model, seed).to(model.mean.device) for seed in (0, 1))

    def rows_of(one: Batch) -> list[Tensor]:
        found = gradients.gradients(lambda twin: losses(twin, one))
        gradients.clear()
        return found

    features, targets = batch.features.clone(), batch.targets.clone()
    features[1], targets[1] = other.features[1], other.targets[1]
    changed = Batch(batch.ids, features, batch.lengths, targets, batch.target_lengths)
    before, after, alone = rows_of(batch), rows_of(changed), rows_of(batch.split(3)[0])
    plain = without_dropout(with_example_lstms(model)).train()
    losses(plain, batch.split(3)[0]).sum().backward()  # into the parameters, which all share
    expected = [parameter.grad for parameter in gradients.trained.values()]
    for name, old, new, single, own in zip(gradients.trained, before, after, alone, expected):
        scale = max(float(own.norm()), 1e-6)
        if any(float((old[row] - new[row]).norm()) > _TOLERANCE * scale for row in (0, 2)):
            raise _mixed(name, "gradients that do not depend on other examples", "that they do")
        if any(float((row - own).norm()) > _TOLERANCE * scale for row in (old[0], single[0])):
            raise _mixed(name, "an example's gradient in a batch to be that of it alone", "another")
    gradients.clear()


def _mixed(name: str, expected: str, found: str) -> PrivacyError:
    way_out = "replace that layer by one that keeps examples apart, or set isolate_units=true"
    return PrivacyError(f"parameter {name}", expected, found, way_out)
