"""Per-example gradients of the package's own layers for Opacus.

Opacus finds a layer's rule by its exact class: ``Pointwise`` takes that of ``nn.Conv1d``, and
``nn.LSTM`` becomes ``DPLSTM``, a mixture of layers has one of its own. All other parameters are in
layers that Opacus knows.
"""

from __future__ import annotations

from torch import nn

from privasr_k2.am.encoders.common import Pointwise
from privasr_k2.encoders.layers import LayerMixture, example_gradients


def register() -> None:
    """Tell Opacus how to treat the package's own layers; may be called again."""
    from opacus.grad_sample import GradSampleModule

    GradSampleModule.GRAD_SAMPLERS[Pointwise] = GradSampleModule.GRAD_SAMPLERS[nn.Conv1d]
    GradSampleModule.GRAD_SAMPLERS[LayerMixture] = example_gradients


def with_replaceable_layers(model: nn.Module) -> nn.Module:
    """Put ``DPLSTM`` in place of every ``nn.LSTM``; weights keep their names."""
    from opacus.layers import DPLSTM

    for name, child in [*model.named_children()]:
        if type(child) is nn.LSTM:
            lstm = DPLSTM(
                child.input_size, child.hidden_size, child.num_layers, batch_first=child.batch_first
            )
            lstm.load_state_dict(child.state_dict())
            setattr(model, name, lstm.to(child.weight_ih_l0.device).train(child.training))
        else:
            with_replaceable_layers(child)
    return model
