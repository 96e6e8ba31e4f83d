"""Canaries that an audit inserts into a training: see :mod:`privasr_k2.privacy.audit.canaries`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import torch
from torch import Tensor

#: Names sort by coordinate. The text decides who is sampled, so it stays.
_NAME = "mark-{:09}"


class CanaryGradients(Mapping[str, Tensor]):
    """Gradients with one nonzero coordinate in each of some layers, created on access.

    >>> canaries = CanaryGradients([3], size=5, length=2.0)
    >>> {name: gradient.tolist() for name, gradient in canaries.items()}
    {'mark-000000003': [0.0, 0.0, 0.0, 2.0, 0.0]}

    Args:
        coordinates: of the canaries that were inserted.
        size: values of a gradient.
        length: value of that coordinate.
        starts: where the layers begin from which coordinates count: of :func:`layers_for`.
    """

    def __init__(
        self, coordinates: Sequence[int], size: int, length: float, starts: Sequence[int] = (0,)
    ) -> None:
        self._coordinates = {_NAME.format(number): number for number in coordinates}
        self._size, self._length, self._starts = size, length, torch.tensor(starts)

    def __getitem__(self, name: str) -> Tensor:
        gradient = torch.zeros(self._size)
        gradient[self._starts + self._coordinates[name]] = self._length
        return gradient

    def __iter__(self) -> Iterator[str]:
        return iter(self._coordinates)

    def __len__(self) -> int:
        return len(self._coordinates)


def layers_for(marks: int, layers: Sequence[int]) -> tuple[list[int], int]:
    """Where canaries lie if each layer is clipped by itself: one coordinate in every layer.

    One layer alone would hold only its share of the clip. Layers without a coordinate for each
    canary are left out. If all are, the largest is given, which the audit then refuses.

    Args:
        layers: values of a gradient in each layer.

    Returns:
        where those layers begin, and how many values the smallest of them has.

    >>> layers_for(4, [6, 2, 5])
    ([0, 8], 5)
    """
    starts = [0, *accumulate(layers)]
    least = min(marks, max(layers))
    chosen = [number for number, size in enumerate(layers) if size >= least]
    return [starts[number] for number in chosen], min(layers[number] for number in chosen)
