"""The matrix products of a computation alone: what is left if all else takes no time."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: Place of the first factor among the arguments of each operation that is a product.
_FACTORS = {"mm": 0, "addmm": 1, "addmm_": 1}
Form = tuple[tuple[int, ...], tuple[int, ...]]


class Products(TorchDispatchMode):
    """Counts the products within it by the sizes and strides of their factors.

    >>> with Products() as products:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> [*products.counts.items()]
    [((((2, 3), (3, 1)), ((3, 4), (4, 1))), 1)]
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[Form, Form]] = Counter()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        first = _FACTORS.get(str(function).split(".")[1])
        if first is not None:
            left, right = args[first : first + 2]
            forms = tuple((tuple(one.shape), one.stride()) for one in (left, right))
            self.counts[forms] += 1  # type: ignore[index]
        return function(*args, **(kwargs or {}))

    def seconds(self) -> float:
        """Seconds of all of them, one after the other, on factors that stay in the caches."""
        total = 0.0
        for forms, count in self.counts.items():
            left, right = (torch.empty_strided(*form).fill_(0.5) for form in forms)
            out = torch.mm(left, right)
            begun = time.perf_counter()
            for _ in range(count):
                torch.mm(left, right, out=out)
            total += time.perf_counter() - begun
        return total
