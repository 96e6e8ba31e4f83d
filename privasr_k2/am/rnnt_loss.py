"""Sums over the alignments of an RNN transducer, from log-probabilities of blanks and next labels.

Graves (2012), "Sequence transduction with recurrent neural networks", section 2.4: a blank leads
from frame t to t + 1, a label from u labels to u + 1 within a frame, and the last blank ends the
sequence. By k2 where it is installed, else along anti-diagonals of independent cells.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from privasr_k2.errors import ConfigError

_NONE = -1e30  # finite, so that differences of it are


def log_likelihood(
    blank: Tensor, label: Tensor, lengths: Tensor, target_lengths: Tensor, *, backend: str
) -> Tensor:
    """(N,) log P(labels | frames), summed over all alignments, differentiable.

    Args:
        blank: (N, T, U + 1) natural log of a blank at frame t after u labels.
        label: (N, T, U) natural log of label u + 1 at frame t after u labels.
        lengths: (N,) true frames, at least 1.
        target_lengths: (N,) true labels.
        backend: ``auto`` (k2 where it is installed), ``k2`` or ``torch``.

    >>> half, size = torch.full((1, 2, 2), 0.5).log(), torch.tensor([1])  # 2 frames, 1 label
    >>> total = log_likelihood(half, half[:, :, :1], 2 * size, size, backend="torch")
    >>> round(total.exp().item(), 4)  # 2 alignments, each 1/2 * 1/2 * 1/2
    0.25
    """
    k2 = find_k2() if backend != "torch" else None
    if backend == "k2" and k2 is None:
        way_out = "set it to auto or torch"
        raise ConfigError("transducer.backend", "k2 to be installed", "none", way_out)
    if k2 is None or label.size(2) == 0 or blank.dtype not in (torch.float32, torch.float64):
        return Alignments.apply(blank, label, lengths, target_lengths)
    # k2 has labels behind the last blank, too, unless they are impossible.
    frames = torch.arange(label.size(1) + 1, device=label.device)
    behind = (frames >= lengths.unsqueeze(1)).unsqueeze(1)  # (N, 1, T + 1)
    px = functional.pad(label.transpose(1, 2), (0, 1)).masked_fill(behind, -float("inf"))
    edges = boundary(lengths, target_lengths)
    total: Tensor = k2.mutual_information_recursion(px, blank.transpose(1, 2), edges)
    return total


@lru_cache
def find_k2() -> ModuleType | None:
    """k2, where it is installed."""
    try:
        import k2
    except ImportError:
        return None
    return k2  # type: ignore[no-any-return]


def boundary(lengths: Tensor, target_lengths: Tensor) -> Tensor:
    """(N, 4) k2's way to say how long utterances are."""
    zero = torch.zeros_like(lengths)
    return torch.stack((zero, zero, target_lengths, lengths), dim=1)


class Alignments(torch.autograd.Function):
    """Forward and backward variables of all alignments (Graves 2012, eq. 16, 18, 20).

    Cell (t, u) lies on diagonal t + u. Arrays are laid out by diagonals, (T + U, N, U + 1), so that
    a step is one operation on a slice.
    """

    @staticmethod
    def forward(
        ctx: Any, blank: Tensor, label: Tensor, lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """As :func:`log_likelihood`."""
        num_diagonals = blank.size(1) + label.size(2)
        blanks, labels = _by_diagonals(blank, num_diagonals), _by_diagonals(label, num_diagonals)
        _, num, width = blanks.shape
        alphas = blanks.new_full((num_diagonals, num, width), _NONE)
        alphas[0, :, 0] = 0.0
        for d in range(1, num_diagonals):
            alphas[d] = alphas[d - 1] + blanks[d - 1]
            spoken = alphas[d - 1, :, :-1] + labels[d - 1]
            alphas[d, :, 1:] = torch.logaddexp(alphas[d, :, 1:], spoken)
        rows = torch.arange(num, device=blank.device)
        last = (lengths - 1 + target_lengths, rows, target_lengths)
        total = alphas[last] + blanks[last]
        ctx.save_for_backward(blanks, labels, alphas, total, lengths, target_lengths)
        ctx.frames = blank.size(1)
        return total

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        """Posteriors of the arcs: derivatives of a log-likelihood by their log-probabilities."""
        blanks, labels, alphas, total, lengths, target_lengths = ctx.saved_tensors
        num_diagonals, num, width = blanks.shape
        rows = torch.arange(num, device=blanks.device)
        last = lengths - 1 + target_lengths  # (N,) diagonal of each utterance's last cell
        ended = blanks.new_full((num, width), _NONE)
        ended[rows, target_lengths] = 0.0
        of_blank, of_label = torch.empty_like(blanks), torch.empty_like(labels)
        betas = blanks.new_full((num, width), _NONE)  # of the diagonal behind
        for d in reversed(range(num_diagonals)):
            # Only a blank of the last cell leads behind the last diagonal.
            behind = torch.where((last == d).unsqueeze(1), ended, betas)
            through = blanks[d] + behind
            of_blank[d] = (alphas[d] + through - total.unsqueeze(1)).exp()
            spoken = labels[d] + betas[:, 1:]
            of_label[d] = (alphas[d, :, :-1] + spoken - total.unsqueeze(1)).exp()
            betas = through.clone()
            betas[:, :-1] = torch.logaddexp(betas[:, :-1], spoken)
        scale = outer[0].view(1, -1, 1)
        gradients = (_by_frames(arc * scale, ctx.frames) for arc in (of_blank, of_label))
        return (*gradients, None, None)


def _by_diagonals(x: Tensor, num_diagonals: int) -> Tensor:
    """(N, T, W) to (D, N, W): place (d, n, u) holds x[n, d - u, u], or -1e30 at the edges."""
    num, frames, width = x.shape
    diagonals, positions = (torch.arange(n, device=x.device) for n in (num_diagonals, width))
    times = diagonals.unsqueeze(1) - positions
    rows = times.clamp(0, frames - 1).unsqueeze(1).expand(-1, num, -1)
    outside = ((times < 0) | (times >= frames)).unsqueeze(1)
    return x.transpose(0, 1).gather(0, rows).masked_fill(outside, _NONE)


def _by_frames(x: Tensor, frames: int) -> Tensor:
    """The inverse of :func:`_by_diagonals`."""
    _, num, width = x.shape
    times, positions = (torch.arange(n, device=x.device) for n in (frames, width))
    places = times.unsqueeze(1) + positions
    return x.gather(0, places.unsqueeze(1).expand(-1, num, -1)).transpose(0, 1)
