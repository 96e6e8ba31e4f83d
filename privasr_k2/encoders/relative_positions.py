"""WavLM's gated relative position bias: Chen et al. (2022), section III-A, eq. 3 to 6."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class RelativePositions(nn.Module):
    """Weighs the scores by relative position with a gate of each query.

    Equations, with the gates a and b of a query and head: (a (b s - 1) + 2) d.
    """

    _GATE_DIM = 8

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.gate = nn.Linear(dim // heads, self._GATE_DIM)
        self.scale = nn.Parameter(torch.ones(1, heads, 1, 1))

    def forward(self, x: Tensor, distances: Tensor) -> Tensor:
        """(N, H, T, T), added to the scores of attention.

        Args:
            x: the input of the attention, (N, T, D).
            distances: :meth:`scores`.
        """
        n, t, d = x.shape
        queries = x.view(n, t, self.heads, d // self.heads).transpose(1, 2)
        halves = self.gate(queries).view(n, self.heads, t, 2, self._GATE_DIM // 2).sum(dim=4)
        a, b = halves.sigmoid().unsqueeze(3).unbind(dim=4)  # each (N, H, T, 1)
        return (a * (b * self.scale - 1.0) + 2.0) * distances

    @staticmethod
    def scores(embedding: nn.Embedding, num: int, longest: int) -> Tensor:
        """(H, T, T) for T frames, from an embedding of buckets of distances."""
        frames = torch.arange(num, device=embedding.weight.device)
        places = buckets(frames - frames.unsqueeze(1), embedding.num_embeddings, longest)
        return embedding(places).permute(2, 0, 1)


def buckets(distances: Tensor, number: int, longest: int) -> Tensor:
    """Buckets of distances, as T5 has them: half for each sign, exact up to a half of these.

    Farther ones are logarithmic; ``longest`` and beyond share the last.

    >>> buckets(torch.tensor([-800, -3, 0, 3, 4000]), 320, 800).tolist()
    [159, 3, 0, 163, 319]
    """
    half = number // 2
    exact = half // 2
    size = distances.abs()
    steps = (size.clamp(min=1).float() / exact).log() / math.log(longest / exact)
    far = (exact + steps * (half - exact)).long().clamp(max=half - 1)
    return (distances > 0).long() * half + torch.where(size < exact, size, far)
