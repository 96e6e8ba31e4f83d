"""Server optimizers on the average of the clients' updates: pure functions from state to state.

[reddi2021] S. Reddi et al., Adaptive federated optimization, ICLR 2021.
[hsu2019] T.-M. H. Hsu, H. Qi and M. Brown, Measuring the effects of non-identical data distribution
for federated visual classification, 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from privasr_k2.constraints import Checked, Positive, ShareBelowOne, one_of

OPTIMIZERS = ("fedadam", "fedavg", "fedavgm")


@dataclass(frozen=True)
class ServerConfig(Checked):
    """FedAdam [liu2021, eq. 6-8], FedAvg or FedAvgM [hsu2019]; see ``conf/fedlm.yaml#fedlm``."""

    optimizer: Annotated[str, one_of(*OPTIMIZERS)]
    lr: Positive
    beta1: ShareBelowOne
    beta2: ShareBelowOne
    adam_eps: Positive


@dataclass(frozen=True, eq=False)
class ServerState:
    """The state of a server optimizer.

    Attributes:
        weights: theta_t, (P,) float32.
        first, second: m and v, (P,) float32; of length 0 where the optimizer has none.
        steps: t - 1, the steps made so far.
    """

    weights: Tensor
    first: Tensor
    second: Tensor
    steps: int


def begin(weights: Tensor, config: ServerConfig) -> ServerState:
    """The state before the first step: m_0 = 0, v_0 = 0."""
    nothing = weights.new_zeros(0)
    first = nothing if config.optimizer == "fedavg" else torch.zeros_like(weights)
    second = torch.zeros_like(weights) if config.optimizer == "fedadam" else nothing
    return ServerState(weights.clone(), first, second, 0)


def step(state: ServerState, delta: Tensor, config: ServerConfig) -> ServerState:
    """The state after a step along ``delta`` (P,), the averaged theta_t - theta_i of the clients.

    FedAdam [liu2021, equations 6 to 8]:

        m = beta1 m + (1 - beta1) delta,     m^ = m / (1 - beta1^t)
        v = beta2 v + (1 - beta2) delta^2,   v^ = v / (1 - beta2^t)
        theta = theta - eta m^ / sqrt(v^ + eps)

    FedAvgM: m = beta1 m + delta, theta = theta - eta m. FedAvg: theta = theta - eta delta.

    >>> config = ServerConfig(optimizer="fedadam", lr=0.1, beta1=0.9, beta2=0.99, adam_eps=1e-8)
    >>> after = step(begin(torch.tensor([1.0, 1.0]), config), torch.tensor([0.5, -2.0]), config)
    >>> after.weights.double().numpy().round(4).tolist()
    [0.9, 1.1]
    """
    steps = state.steps + 1
    first, second = state.first, state.second
    if config.optimizer == "fedavg":
        return ServerState(state.weights - config.lr * delta, first, second, steps)
    if config.optimizer == "fedavgm":
        first = config.beta1 * first + delta
        return ServerState(state.weights - config.lr * first, first, second, steps)
    first = torch.lerp(delta, first, config.beta1)
    second = torch.lerp(delta.square(), second, config.beta2)
    root = (second / (1 - config.beta2**steps)).add_(config.adam_eps).sqrt_()
    moved = (first / (1 - config.beta1**steps)).div_(root)
    return ServerState(state.weights - config.lr * moved, first, second, steps)
