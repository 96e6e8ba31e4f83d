"""A clip that follows a quantile of the norms of clients' updates [andrew2021].

A client also sends whether its update was within the clip, as +1/2 or -1/2; the noisy sum of these
bits moves the clip. The noise of the sum and of the bits is one Gaussian mechanism: with its
multiplier z and sigma_b of the bits,

    z_sum = (z^-2 - (2 sigma_b)^-2)^(-1/2)    [andrew2021, theorem 1]

[andrew2021] G. Andrew et al., Differentially private learning with adaptive clipping, NeurIPS 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_HALF = 0.5  # what a bit is worth, either way


@dataclass(frozen=True)
class QuantileClip:
    """How the clip follows a quantile of the norms.

    Args:
        quantile: gamma, the share of clients to be within the clip, in (0, 1).
        lr: eta_C of the geometric update.
        count_noise: sigma_b, standard deviation of the noise on the sum of the bits, in clients.
    """

    quantile: float
    lr: float
    count_noise: float

    def next_clip(self, clip: float, noisy_within: float, clients: float) -> float:
        """C exp(-eta_C (b - gamma)) [andrew2021, section 2.2], b from the noisy sum of bits.

        >>> round(QuantileClip(0.5, 0.2, 5.0).next_clip(1.0, -50.0, 100.0), 4)
        1.1052
        """
        share = min(1.0, max(0.0, noisy_within / clients + _HALF))
        return clip * math.exp(-self.lr * (share - self.quantile))


def noise_of_sum(noise_multiplier: float, count_noise: float) -> float:
    """z_sum, with which the sum and the bits together cost ``noise_multiplier``.

    >>> round(noise_of_sum(1.0, 5.0), 4)
    1.005
    """
    rest = noise_multiplier**-2 - (2 * count_noise) ** -2
    if rest <= 0:
        raise ValueError(
            f"count_noise must be above noise / 2 = {noise_multiplier / 2:g}, got {count_noise:g}:"
            " the bits alone would cost more than the whole"
        )
    return rest**-0.5
