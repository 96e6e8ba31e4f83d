"""The sum of clients' updates, which no client moves by more than the clip, the same in any order.

Every update is scaled down to the clip where it is longer, rounded to a multiple of the step of
:func:`privasr_k2.privacy.clipping.grid_step`, and added in float64, where whole numbers of steps add up
without rounding. It is what :func:`privasr_k2.privacy.clipping.clip_rows` does, client after client and block
after block, so that a cohort needs one vector; as rounding is to the nearest, which is quicker, by which a
norm may grow by sqrt(P) / 2 steps, it clips as much earlier. An update with a value that is not finite counts
as zero: under a claim the denominator is fixed, and nothing else changes.

Without a clip the step is 2^-32: sums are then the same for any number of processes, too.

Adaptive clipping [andrew2021]: a client also sends whether its update was within the clip, as +1/2 or -1/2.
The noisy sum of those moves the clip towards a quantile of the norms. Noise of the sum and of the bits
together are one Gaussian mechanism: with the multiplier z of the whole and sigma_b that of the bits,

    z_sum = (z^-2 - (2 sigma_b)^-2)^(-1/2)    [andrew2021, theorem 1]

[andrew2021] G. Andrew, O. Thakkar, H. B. McMahan and S. Ramaswamy, Differentially private learning with
adaptive clipping, NeurIPS 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from privasr_k2.privacy.clipping import grid_step

_STEP_WITHOUT_CLIP = 2.0**-32
# Values of a block, in float64 on the way: they stay in a cache.
_BLOCK = 1 << 16
_HALF = 0.5
# Added and taken away again, it leaves the nearest whole number of anything below 2^51.
_ROUNDING = 1.5 * 2.0**52


@dataclass
class UpdateSum:
    """A sum that grows client by client.

    Args:
        size: P, values of an update.
        clip: the largest L2 norm that a client of weight 1 adds; None = no limit.
        device: where updates come from.

    Attributes:
        steps: (P,) float64, whole numbers of :attr:`step`.
        weight: sum of the weights of the clients that were added.
        within: clients within the clip minus those beyond, halved.
        count: clients that were added.
        norm: sum of the norms before clipping. It is private, as ``within`` and ``count`` are.
    """

    size: int
    clip: float | None
    device: torch.device

    def __post_init__(self) -> None:
        self.step = _STEP_WITHOUT_CLIP if self.clip is None else grid_step(self.clip)
        self.steps = torch.zeros(self.size, dtype=torch.float64, device=self.device)
        self.weight = self.within = self.norm = 0.0
        self.count = 0
        width = _BLOCK if self.device.type == "cpu" else self.size
        self._buffer = torch.empty(min(width, self.size), dtype=torch.float64, device=self.device)

    def add(self, update: Tensor, weight: float) -> bool:
        """Add ``weight`` times the clipped ``update`` (P,); nothing where a value of it is not finite.

        Args:
            weight: above 0; at most 1 under a claim.

        Returns:
            whether it was added.

        >>> total = UpdateSum(2, 2.5, torch.device("cpu"))
        >>> total.add(torch.tensor([3.0, -4.0]), 1.0), total.values().round(decimals=6).tolist()
        (True, [1.5, -2.0])
        """
        norm = math.sqrt(sum(self._squares(update)))
        if not math.isfinite(norm):
            return False
        # More than any order of summation, the products below and the rounding can be off, relatively.
        margin = (self.size + 16) * 2.0**-52 + math.sqrt(self.size) * 2.0**-32
        is_within = self.clip is None or norm <= self.clip * (1 - 2 * margin)
        factor = (
            weight / self.step if is_within else weight * (self.clip or 0) / self.step * (1 - margin) / norm
        )
        for total, part in zip(self.steps.split(_width(self)), update.split(_width(self))):
            own = self._buffer[: len(part)].copy_(part)
            total.add_(own.mul_(factor).add_(_ROUNDING).sub_(_ROUNDING))
        self.weight += weight
        self.within += _HALF if is_within else -_HALF
        self.count += 1
        self.norm += norm
        return True

    def _squares(self, update: Tensor) -> list[float]:
        found = []
        for part in update.split(_width(self)):
            own = self._buffer[: len(part)].copy_(part)
            found.append(float(own @ own))
        return found

    def values(self) -> Tensor:
        """The sum, (P,) float64; it takes the place of :attr:`steps`: ask once, in the end."""
        return self.steps.mul_(self.step)


def _width(total: UpdateSum) -> int:
    return max(1, len(total._buffer))


@dataclass(frozen=True)
class QuantileClip:
    """How the clip follows a quantile of the norms.

    Args:
        quantile: gamma, the share of clients that shall be within the clip, in (0, 1).
        lr: eta_C of the geometric update.
        count_noise: sigma_b, standard deviation of the noise on the sum of the bits, in clients.
    """

    quantile: float
    lr: float
    count_noise: float

    def next_clip(self, clip: float, noisy_within: float, clients: float) -> float:
        """C exp(-eta_C (b - gamma)) [andrew2021, section 2.2].

        Args:
            noisy_within: the noisy sum of the bits +1/2 and -1/2.
            clients: the fixed number that it is divided by.

        >>> round(QuantileClip(0.5, 0.2, 5.0).next_clip(1.0, -50.0, 100.0), 4)
        1.1052
        """
        share = min(1.0, max(0.0, noisy_within / clients + _HALF))
        return clip * math.exp(-self.lr * (share - self.quantile))


def noise_of_sum(noise_multiplier: float, count_noise: float) -> float:
    """z_sum of the module's docstring, with which the sum and the bits together cost ``noise_multiplier``.

    >>> round(noise_of_sum(1.0, 5.0), 4)
    1.005
    """
    rest = noise_multiplier**-2 - (2 * count_noise) ** -2
    if rest <= 0:
        raise ValueError(
            f"count_noise must be above noise / 2 = {noise_multiplier / 2:g}, got {count_noise:g}: the bits "
            "alone would cost more than the whole"
        )
    return rest**-0.5
