"""The largest epsilon that a test rejects, where its p-value rises with epsilon."""

from __future__ import annotations

from collections.abc import Callable

_PRECISION = 1e-9


def largest_rejected(p_value: Callable[[float], float], *, error: float) -> float:
    """The largest epsilon with p_value(epsilon) <= ``error``, or 0; rounded down by 1e-9 at most.

    ``p_value`` rises with epsilon, above ``error`` for a large one.

    >>> round(largest_rejected(lambda epsilon: epsilon / 10, error=0.2), 6)
    2.0
    """
    if p_value(0.0) > error:
        return 0.0
    low, high = 0.0, 1.0
    while p_value(high) <= error:
        low, high = high, 2 * high
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(middle) <= error else (low, middle)
    return low
