"""The sum of units' vectors, which no unit moves by more than the clip, the same in any order.

A unit is what a guarantee protects: a client with its update, a speaker with a gradient. Vectors
are scaled down to the clip, rounded to whole steps of
:func:`privasr_k2.privacy.clipping.grid_step`, and added in float64, without rounding. It is
:func:`privasr_k2.privacy.clipping.clip_rows` unit by unit, in blocks. Rounding is to the nearest
step and may add sqrt(P) / 2 steps to a norm: it clips as much earlier. A vector with a value that
is not finite adds nothing.

Without a clip the step is 2^-32: sums are the same for any number of processes.

:class:`LayerSum` clips each of L layers of a model by itself, to C / sqrt(L) [Pelikan et al. 2023,
"Federated learning with differential privacy for end-to-end speech recognition", arXiv 2310.00098].
Over all layers no unit moves the sum by more than C, as where it is clipped whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.clipping import MAX_UNITS, grid_step

_STEP_WITHOUT_CLIP = 2.0**-32
# Values of a block, in float64 on the way: they stay in a cache.
_BLOCK = 1 << 18
_HALF = 0.5
# Added and taken away again, it leaves the nearest whole number of anything below 2^51.
_ROUNDING = 1.5 * 2.0**52


@dataclass
class UnitSum:
    """A sum over units that grows by some at a time.

    Args:
        size: P, values of a unit.
        clip: the largest L2 norm that a unit of weight 1 adds; None = no limit.
        device: where the vectors come from.

    Attributes:
        steps: (P,) float64, whole numbers of :attr:`step`.
        weight: sum of the weights of the units that were added.
        within: units within the clip minus those beyond, halved.
        norm: sum of the norms before clipping.
        count, left_out: units that were added, or had a value that is not finite. All of these are
            private, as the sum is.
    """

    size: int
    clip: float | None
    device: torch.device

    def __post_init__(self) -> None:
        self.step = _STEP_WITHOUT_CLIP if self.clip is None else grid_step(self.clip)
        self.steps = torch.zeros(self.size, dtype=torch.float64, device=self.device)
        self.weight = self.within = self.norm = 0.0
        self.count = self.left_out = 0
        # More than the relative error of summation in any order, products and rounding.
        self._margin = (self.size + 16) * 2.0**-52 + math.sqrt(self.size) * 2.0**-32
        self._buffer = torch.empty(0, dtype=torch.float64, device=self.device)

    def add(
        self, vectors: Sequence[Tensor], weight: float = 1.0, norms: Tensor | None = None
    ) -> int:
        """Add ``weight`` times the clipped vectors of K units.

        Args:
            vectors: (K, ...) of each parameter, P values a unit together.
            weight: of each unit: above 0; at most 1 under a claim.
            norms: of :meth:`norms`, where they are known.

        Returns:
            how many were added: those without a value that is not finite.

        >>> total = UnitSum(2, 2.5, torch.device("cpu"))
        >>> total.add([torch.tensor([[3.0], [0.0]]), torch.tensor([[-4.0], [1.0]])])
        2
        >>> total.values().numpy().round(6).tolist()
        [1.5, -1.0]
        """
        rows = _rows(vectors)
        norms = self.norms(rows) if norms is None else norms
        finite = torch.isfinite(norms)
        added = int(finite.sum())
        if added < len(norms):
            rows, norms = [row[finite] for row in rows], norms[finite]
        factor = torch.full_like(norms, weight / self.step)
        is_within = torch.ones_like(norms, dtype=torch.bool)
        if self.clip is not None:
            is_within = norms <= self.clip * (1 - 2 * self._margin)
            factor = torch.where(is_within, factor, factor * self.clip * (1 - self._margin) / norms)
        for where, part in self._blocks(rows):
            part.mul_(factor.unsqueeze(1)).add_(_ROUNDING).sub_(_ROUNDING)
            self.steps[where].add_(part[0] if added == 1 else part.sum(dim=0))
        self.weight += weight * added
        self.within += _HALF * (2 * int(is_within.sum()) - added)
        self.norm += float(norms.sum())
        self.count += added
        if self.clip is not None and self.count > MAX_UNITS:
            found, way_out = f"{self.count:,}", "take a smaller cohort"
            raise PrivacyError("a sum", f"at most {MAX_UNITS:,} units", found, way_out)
        self.left_out += len(finite) - added
        return added

    def values(self) -> Tensor:
        """The sum, (P,) float64, in place of :attr:`steps`: ask once, in the end."""
        return self.steps.mul_(self.step)

    def norms(self, vectors: Sequence[Tensor]) -> Tensor:
        """L2 norms of K units' vectors, (K,) float64; not finite where a value is not."""
        rows = _rows(vectors)
        if self.clip is None:  # nothing is claimed: their own precision will do where it suffices
            parts = [torch.linalg.vector_norm(row, dim=1).double() for row in rows]
            norms = torch.linalg.vector_norm(torch.stack(parts), dim=0)
            if norms.isfinite().all():
                return norms
        squares = torch.zeros(len(rows[0]), dtype=torch.float64, device=self.device)
        for _, part in self._blocks(rows):
            squares += part.square_().sum(dim=1)
        return squares.sqrt()

    def _blocks(self, rows: Sequence[Tensor]) -> Iterator[tuple[slice, Tensor]]:
        """Copies (K, B) in float64 of all parameters, by pieces in one buffer, and their places."""
        start = 0
        for row in rows:
            width = row.size(1) if row.device.type != "cpu" else _BLOCK // max(1, len(row))
            for part in row.split(max(1, width), dim=1):
                if len(self._buffer) < part.numel():
                    self._buffer = self._buffer.new_empty(part.numel())
                own = self._buffer[: part.numel()].view_as(part)
                yield slice(start, start + part.size(1)), own.copy_(part)
                start += part.size(1)


class LayerSum:
    """The sum of units' vectors of L layers, each clipped by itself; see the module.

    A unit with a value that is not finite, in whatever layer, adds nothing to any. With one layer
    it is a :class:`UnitSum`.

    Args:
        layers: for each layer the values of a unit's vectors in it.
        clip: C, the largest L2 norm that a unit adds over all layers; None = no limit.
        device: where the vectors come from.

    >>> total = LayerSum([[1], [1, 2]], 2.0, torch.device("cpu"))
    >>> total.add([torch.tensor([[9.0]]), torch.tensor([[0.5]]), torch.tensor([[0.0, 1.0]])])
    >>> total.values().numpy().round(6).tolist()
    [1.414214, 0.5, 0.0, 1.0]
    """

    def __init__(
        self, layers: Sequence[Sequence[int]], clip: float | None, device: torch.device
    ) -> None:
        own = clip if clip is None or len(layers) == 1 else layer_clip(clip, len(layers))
        self._sums = [UnitSum(sum(sizes), own, device) for sizes in layers]
        self._vectors = [len(sizes) for sizes in layers]

    @property
    def count(self) -> int:
        """Units that were added; private."""
        return self._sums[0].count

    @property
    def left_out(self) -> int:
        """Units with a value that is not finite; private."""
        return self._sums[0].left_out

    def add(self, vectors: Sequence[Tensor]) -> None:
        """Add the clipped vectors (K, ...) of K units, those of the first layer first."""
        given = iter(vectors)
        layers = [[*islice(given, number)] for number in self._vectors]
        norms = [own.norms(layer) for own, layer in zip(self._sums, layers)]
        finite = torch.stack(norms).isfinite().all(dim=0)
        for own, layer, lengths in zip(self._sums, layers, norms):
            own.add(layer, norms=torch.where(finite, lengths, torch.nan))

    def values(self) -> Tensor:
        """The sum, (P,) float64: ask once, in the end."""
        values = [own.values() for own in self._sums]
        return values[0] if len(values) == 1 else torch.cat(values)


def layer_clip(clip: float, layers: int) -> float:
    """C / sqrt(L), rounded down: L squares of it are at most C^2, exactly.

    >>> layer_clip(1.0, 4) <= 0.5
    True
    """
    return clip / math.sqrt(layers) * (1 - 2.0**-50)


def _rows(vectors: Sequence[Tensor]) -> list[Tensor]:
    """(K, ...) as (K, D)."""
    return [vector.reshape(len(vector), -1) for vector in vectors]
