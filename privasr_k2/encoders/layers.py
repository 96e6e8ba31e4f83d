"""The layers that are used: one, or a mixture whose weights are learned.

Yang et al. (2021), "SUPERB: speech processing universal performance benchmark", section 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class LayerMixture(nn.Module):
    """sum_k softmax(w)_k x_k over the layers that were asked for: (K, N, T, D) -> (N, T, D).

    With a single layer it is that layer, and nothing is learned.

    Attributes:
        layers: what :meth:`PublicEncoder.forward` takes as ``layers``.
    """

    def __init__(self, layers: Sequence[int]) -> None:
        super().__init__()
        self.layers = tuple(layers)
        is_learned = len(self.layers) > 1
        self.weights = nn.Parameter(torch.zeros(len(self.layers)), requires_grad=is_learned)

    def forward(self, outputs: Tensor) -> Tensor:
        return torch.tensordot(self.weights.softmax(dim=0), outputs, dims=1)
