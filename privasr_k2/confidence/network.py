"""The classifier's network: standardized features to log-odds of "correct" [liu2021, section 3.2].

[liu2021] Z. Liu et al., Private language model adaptation for speech recognition.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from privasr_k2.randomness import derive_seed, stream
from privasr_k2.recipe.progress import report_progress

log = logging.getLogger(__name__)


class ConfidenceNetwork(nn.Module):
    """Linear layers with ReLU between them, on F standardized features.

    ``hidden`` are the widths of hidden layers; none gives logistic regression.
    """

    def __init__(self, num_features: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("scale", torch.ones(num_features))
        layers: list[nn.Module] = []
        width = num_features
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, features: Tensor) -> Tensor:
        """(N, F) raw features to (N,) log-odds."""
        return self.layers((features - self.mean) / self.scale).squeeze(1)

    def scores(self, features: np.ndarray) -> np.ndarray:
        """(N,) float64 log-odds of (N, F) features."""
        self.eval()
        with torch.no_grad():
            return self(torch.from_numpy(features.astype(np.float32))).double().numpy()


def train_network(
    features: np.ndarray,
    correct: np.ndarray,
    *,
    hidden: Sequence[int],
    epochs: int,
    batch_size: int,
    lr: float,
    weight_decay: float,
    seed: int,
) -> ConfidenceNetwork:
    """Minimize the cross-entropy with AdamW and a cosine learning rate, deterministic by ``seed``.

    Args:
        features: (N, F).
        correct: (N,) bool.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "weights"))
        network = ConfidenceNetwork(features.shape[1], hidden)
    inputs = torch.from_numpy(features.astype(np.float32))
    # A feature that is the same for all words (the depth of lists without a lattice) stays 0.
    spread = inputs.std(dim=0, unbiased=False)
    network.mean.copy_(inputs.mean(dim=0))
    network.scale.copy_(torch.where(spread > 1e-6, spread, torch.ones_like(spread)))
    targets = torch.from_numpy(correct.astype(np.float32))
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=weight_decay)
    steps = epochs * -(-len(features) // batch_size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    network.train()
    for epoch in range(epochs):
        report_progress(epoch, epochs, "epoch")
        order = torch.from_numpy(stream(seed, "batches", epoch).permutation(len(features)))
        total = 0.0
        for batch in order.split(batch_size):
            log_odds = network(inputs[batch])
            loss = nn.functional.binary_cross_entropy_with_logits(log_odds, targets[batch])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(batch)
        log.debug("epoch %d: %.4f nats a word", epoch + 1, total / len(features))
    return network.eval()
