"""DP-SGD by Opacus's optimizer, with units in place of examples and this package's clip and noise.

Abadi et al. (2016), "Deep learning with differential privacy", algorithm 1, on Poisson batches:

    gradient = (sum over units of clip(g_unit) + N(0, (z C)^2)) / (rate * units)

clip(g) clips g whole to C, or each of its L layers to C / sqrt(L): see
:mod:`privasr_k2.training.unit_sum`. Opacus itself sums in float32, and draws its noise from a
predictable generator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import torch
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn

from privasr_k2.privacy.noise import GaussianNoise
from privasr_k2.randomness import NoiseStream
from privasr_k2.training.unit_sum import LayerSum


class UnitOptimizer(DPOptimizer):
    """Accumulates a Poisson batch in parts, one a ``step()``, and updates weights with the last.

    As in Opacus, ``signal_skip_step`` says whether more parts follow. Rows of ``grad_sample`` of
    one unit are summed before the clip, also across parts.

    Args:
        optimizer: updates the weights by the noisy gradient.
        clip: C, the largest L2 norm of a unit's gradient; None = no limit, without noise only.
        layers: for each layer that is clipped by itself, how many parameters it has; None: the
            gradient is clipped whole.
        noise_multiplier: standard deviation of the noise by the clip; 0 = none.
        expected: mean number of units in a batch, the divisor of the noisy sum.

    Attributes:
        owners: for :meth:`step`, the unit (from 0) of each row in the part.
        ends: for :meth:`step`, whether the units of the part are complete with it.
        stream: the noise of this batch, where there is noise.
        layers: the values of each layer's parameters; a single one where it is clipped whole.
        gradient: (P,) float32, noisy, of the last update.
        count, left_out: units in the last sum, and units left out as not finite; private.
    """

    gradient: Tensor

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        clip: float | None,
        noise_multiplier: float,
        expected: float,
        layers: Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            optimizer,
            noise_multiplier=noise_multiplier,
            max_grad_norm=float("inf") if clip is None else clip,
            expected_batch_size=expected,  # type: ignore[arg-type]
        )
        self.noise: GaussianNoise | None = None
        if noise_multiplier and clip is not None:
            self.noise = GaussianNoise(noise_multiplier=noise_multiplier, l2_sensitivity=clip)
        self.owners: Sequence[int] = ()
        self.ends = True
        self.stream: NoiseStream | None = None
        self.count = self.left_out = 0
        self._clip, self._open = clip, list[Tensor]()
        sizes = iter([parameter.numel() for parameter in self.params])
        numbers = [len(self.params)] if layers is None else layers
        self.layers = [[*islice(sizes, number)] for number in numbers]
        self._total = self._new_sum()

    def _new_sum(self) -> LayerSum:
        return LayerSum(self.layers, self._clip, self.params[0].device)

    def clip_and_accumulate(self) -> None:
        """Add the rows of the part to the sum, unit by unit."""
        rows = [getattr(parameter, "grad_sample", None) for parameter in self.params]
        if rows[0] is None:  # an empty part, or an empty batch
            return
        if len(self.owners) > 1 + max(self.owners):
            owners = torch.tensor(self.owners, device=rows[0].device)
            num = 1 + max(self.owners)
            zeros = (part.new_zeros(num, *part.shape[1:]) for part in rows)
            rows = [zero.index_add_(0, owners, part) for zero, part in zip(zeros, rows)]
        if self._open:
            rows = [part + before for part, before in zip(rows, self._open)]
        self._open = [] if self.ends else rows
        if self.ends:
            self._total.add(rows)

    def add_given(self, gradient: Tensor) -> None:
        """Add a unit whose gradient (P,) is given, clipped as any other; for audits."""
        sizes = [parameter.numel() for parameter in self.params]
        self._total.add([part.unsqueeze(0) for part in gradient.split(sizes)])

    def pre_step(self, closure: Callable[[], float] | None = None) -> bool:
        """As Opacus's method, for batches that may be empty."""
        self.clip_and_accumulate()
        self._is_last_step_skipped = self._check_skip_next_step()
        if self._is_last_step_skipped:
            return False
        self.add_noise()
        self.scale_grad()
        return True

    def add_noise(self) -> None:
        """Add noise to the clipped sum: sum over units of clip(g_unit) + N(0, (z C)^2)."""
        values = self._total.values()
        self.count, self.left_out = self._total.count, self._total.left_out
        if self.noise is not None:
            if self.stream is None:
                raise ValueError("a batch needs a stream for its noise")
            noisy = self.noise.add(values.cpu().numpy(), self.stream)
            values, self.stream = torch.from_numpy(noisy).to(values.device), None
        self._noisy, self._total = values, self._new_sum()

    def scale_grad(self) -> None:
        """Divide the noisy sum by the expected number of units: the gradient of each parameter."""
        self.gradient = (self._noisy / self.expected_batch_size).float()
        sizes = [parameter.numel() for parameter in self.params]
        for parameter, part in zip(self.params, self.gradient.split(sizes)):
            parameter.grad = part.view_as(parameter)


def make_optimizer(
    parameters: Mapping[str, nn.Parameter], *, kind: str, lr: float, momentum: float
) -> torch.optim.Optimizer:
    """SGD or Adam over parameters by name; ``momentum`` is Adam's first beta."""
    if kind == "sgd":
        return torch.optim.SGD([*parameters.values()], lr=lr, momentum=momentum)
    return torch.optim.Adam([*parameters.values()], lr=lr, betas=(momentum, 0.98))
