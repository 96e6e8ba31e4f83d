"""Parts of Transformer blocks: attention of Vaswani et al. (2017), section 3.2, and GELU."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def gelu(x: Tensor) -> Tensor:
    """x times the normal distribution's function of x: Hendrycks & Gimpel (2016), eq. 1.

    The backward pass of ``functional.gelu`` reads memory that nobody has written, in torch 1.13 on
    a processor, where the gradient is laid out in another order than the input. So it gets one of
    the usual order.
    """
    y = nn.functional.gelu(x.contiguous())
    if y.requires_grad:
        y.register_hook(Tensor.contiguous)
    return y


class SelfAttention(nn.Module):
    """Multi-head attention of true frames to true frames: (N, T, D) -> (N, T, D).

    Args:
        key_bias: whether keys have a bias; Whisper's have none.
    """

    def __init__(self, dim: int, heads: int, *, key_bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim, bias=key_bias)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor, valid: Tensor, bias: Tensor | None = None) -> Tensor:
        """Attended frames.

        Args:
            valid: (N, T), whether a frame is true.
            bias: added to the scores, (N, H, T, T).
        """
        n, t, d = x.shape
        shape = (n, t, self.heads, d // self.heads)
        query = self.query(x).view(shape).transpose(1, 2)  # (N, H, T, E)
        key = self.key(x).view(shape).permute(0, 2, 3, 1)
        value = self.value(x).view(shape).transpose(1, 2)
        scores = (query * (d // self.heads) ** -0.5) @ key
        if bias is not None:
            scores = scores + bias
        scores = scores.masked_fill(~valid[:, None, None], torch.finfo(scores.dtype).min)
        attended = scores.softmax(dim=3) @ value
        return self.out(attended.transpose(1, 2).reshape(n, t, d))
