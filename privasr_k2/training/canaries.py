"""Canaries that an audit inserts into a training: see :mod:`privasr_k2.privacy.audit.canaries`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

#: Names sort by coordinate. The text decides who is sampled, so it stays.
_NAME = "mark-{:09}"


class CanaryGradients(Mapping[str, Tensor]):
    """Gradients with one nonzero coordinate each, created on access.

    >>> canaries = CanaryGradients([3], size=5, length=2.0)
    >>> {name: gradient.tolist() for name, gradient in canaries.items()}
    {'mark-000000003': [0.0, 0.0, 0.0, 2.0, 0.0]}

    Args:
        coordinates: of the canaries that were inserted.
        size: values of a gradient.
        length: value of that coordinate.
    """

    def __init__(self, coordinates: Sequence[int], size: int, length: float) -> None:
        self._coordinates = {_NAME.format(number): number for number in coordinates}
        self._size, self._length = size, length

    def __getitem__(self, name: str) -> Tensor:
        gradient = torch.zeros(self._size)
        gradient[self._coordinates[name]] = self._length
        return gradient

    def __iter__(self) -> Iterator[str]:
        return iter(self._coordinates)

    def __len__(self) -> int:
        return len(self._coordinates)
