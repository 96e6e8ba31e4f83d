"""Units that an audit puts into a training: :mod:`privasr_k2.privacy.audit.marks`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

#: How marks are called: sorted, they are in the order of their coordinates.
_NAME = "mark-{:09}"


class Marks(Mapping[str, Tensor]):
    """Gradients of units that are one coordinate each, made when they are asked for.

    >>> marks = Marks([3], size=5, length=2.0)
    >>> {name: gradient.tolist() for name, gradient in marks.items()}
    {'mark-000000003': [0.0, 0.0, 0.0, 2.0, 0.0]}

    Args:
        coordinates: of the units that are in.
        size: values of a gradient.
        length: of a mark.
    """

    def __init__(self, coordinates: Sequence[int], size: int, length: float) -> None:
        self._places = {_NAME.format(place): place for place in coordinates}
        self._size, self._length = size, length

    def __getitem__(self, name: str) -> Tensor:
        gradient = torch.zeros(self._size)
        gradient[self._places[name]] = self._length
        return gradient

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
