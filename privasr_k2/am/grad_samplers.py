"""Per-example gradients of the package's own layers for Opacus, in one place.

Opacus looks a layer's rule up by its exact class. Our classes with parameters of their own are
Opacus's known ones under another name; recurrent layers are ``nn.LSTM``, for which it has
``DPLSTM``. Everything else holds its parameters in layers that Opacus knows.
"""

from __future__ import annotations

from torch import nn

from privasr_k2.am.encoders.common import Pointwise


def register() -> None:
    """Tell Opacus how to treat the package's own layers; may be called again."""
    from opacus.grad_sample import GradSampleModule

    GradSampleModule.GRAD_SAMPLERS[Pointwise] = GradSampleModule.GRAD_SAMPLERS[nn.Conv1d]


def with_replaceable_layers(model: nn.Module) -> nn.Module:
    """The model with ``DPLSTM`` in place of every ``nn.LSTM``, of the same weights and names of
    weights.

    It is changed in place. ``state_dict`` of either loads into the other.
    """
    from opacus.layers import DPLSTM

    for name, child in [*model.named_children()]:
        if type(child) is nn.LSTM:
            made = DPLSTM(
                child.input_size, child.hidden_size, child.num_layers, batch_first=child.batch_first
            )
            made.load_state_dict(child.state_dict())
            setattr(model, name, made.to(child.weight_ih_l0.device).train(child.training))
        else:
            with_replaceable_layers(child)
    return model
