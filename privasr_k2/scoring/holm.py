"""P-values that allow for many tests: Holm's correction [holm1979].

It keeps the chance that any equal pair is called different below the level, whatever the tests have
to do with each other. With the p-values in increasing order p_1 <= ... <= p_m,

    adjusted_i = min(1, max_{j <= i} (m - j + 1) p_j).

[holm1979] S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
Statistics 6, 1979.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values, in the order given.

    Args:
        p_values: of the whole family. ``None``, a test without a p-value, counts as a comparison
            like any other, and stays ``None``.

    >>> [round(p, 3) for p in holm([0.03, 0.01, 0.02])]
    [0.04, 0.03, 0.04]
    >>> holm([0.03, None])
    [0.06, None]
    """
    values = np.array([1.0 if p is None else p for p in p_values])
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1.0)
    return [None if p is None else float(a) for p, a in zip(p_values, adjusted, strict=True)]
