"""The sum of units' gradients, which no unit moves by more than the clip, the same in any order.

A unit's gradient is scaled down to the clip where it is longer, rounded to whole steps of
:func:`privasr_k2.privacy.clipping.grid_step`, and added in float64, where whole numbers of steps add up
without rounding: adding or removing a unit moves the sum by what it adds, exactly. As rounding is to the
nearest, by which a norm may grow by sqrt(P) / 2 steps, units are clipped as much earlier.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from privasr_k2.privacy.clipping import grid_step

_STEP_WITHOUT_CLIP = 2.0**-32
# Values of a block, in float64 on the way: they stay in a cache.
_BLOCK = 1 << 16


class UnitSum:
    """A sum over units that grows by some at a time.

    Args:
        size: P, values of all parameters together.
        clip: the largest L2 norm that a unit adds; None = no limit.

    Attributes:
        count: units that were added; left_out: those with a value that is not finite, which add nothing.
    """

    def __init__(self, size: int, clip: float | None, device: torch.device) -> None:
        self.clip, self.step = clip, _STEP_WITHOUT_CLIP if clip is None else grid_step(clip)
        self._steps = torch.zeros(size, dtype=torch.float64, device=device)
        # More than any order of summation, the products and the rounding can be off, relatively.
        self._margin = (size + 16) * 2.0**-52 + math.sqrt(size) * 2.0**-32
        self.count = self.left_out = 0

    def add(self, gradients: Sequence[Tensor]) -> None:
        """Add K units.

        Args:
            gradients: (K, ...) of each parameter, P values a unit together.

        >>> total = UnitSum(2, 2.5, torch.device("cpu"))
        >>> total.add([torch.tensor([[3.0], [0.0]]), torch.tensor([[-4.0], [1.0]])])
        >>> total.values().numpy().round(6).tolist()
        [1.5, -1.0]
        """
        rows = [one.reshape(len(one), -1) for one in gradients]
        squares = torch.zeros(len(rows[0]), dtype=torch.float64, device=self._steps.device)
        for _, part in _blocks(rows):
            squares += part.double().square_().sum(dim=1)
        norms = squares.sqrt()
        finite = torch.isfinite(norms)
        if not bool(finite.all()):
            rows, norms = [one[finite] for one in rows], norms[finite]
        factor = torch.full_like(norms, 1.0 / self.step)
        if self.clip is not None:
            scaled = self.clip / self.step * (1 - self._margin) / norms
            factor = torch.where(norms <= self.clip * (1 - 2 * self._margin), factor, scaled)
        for where, part in _blocks(rows):
            self._steps[where] += (part.double() * factor.unsqueeze(1)).round_().sum(dim=0)
        self.count += len(norms)
        self.left_out += int((~finite).sum())

    def values(self) -> Tensor:
        """The sum, (P,) float64."""
        return self._steps * self.step


def _blocks(rows: Sequence[Tensor]) -> Iterator[tuple[slice, Tensor]]:
    """Pieces (K, B) of all parameters one after the other, and where they belong."""
    start = 0
    for one in rows:
        width = max(1, _BLOCK // max(1, len(one))) if one.device.type == "cpu" else max(1, one.size(1))
        for part in one.split(width, dim=1):
            yield slice(start, start + part.size(1)), part
            start += part.size(1)
