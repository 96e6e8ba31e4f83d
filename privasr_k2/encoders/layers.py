"""A mixture of layers whose weights are learned.

Yang et al. (2021), "SUPERB: speech processing universal performance benchmark", section 2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LayerMixture(nn.Module):
    """sum_k softmax(w)_k x_k over K layers: (N, K, ...) -> (N, ...).

    >>> LayerMixture(2)(torch.tensor([[[1.0], [3.0]]])).tolist()  # at first the mean
    [[2.0]]
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))

    def forward(self, outputs: Tensor) -> Tensor:
        return torch.einsum("k,nk...->n...", self.weights.softmax(dim=0), outputs)


def example_gradients(
    layer: LayerMixture, activations: list[Tensor], backprops: Tensor
) -> dict[nn.Parameter, Tensor]:
    """The gradient of each example by the weights, (N, K), as Opacus asks for it."""
    shares = layer.weights.detach().softmax(dim=0)
    by_share = torch.einsum("nk...,n...->nk", activations[0], backprops)
    mean = (by_share * shares).sum(dim=1, keepdim=True)
    return {layer.weights: shares * (by_share - mean)}
