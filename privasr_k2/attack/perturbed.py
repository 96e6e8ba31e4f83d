"""Recognizers that hear perturbed features: noise on all of an utterance, or noise in its place.

Each function wraps ``scores_of`` of :func:`privasr_k2.attack.membership.unit_losses`. What a model
remembers lies where its loss is low *and* rises fast around [carlini2022]; that is seen from noisy
copies of the features [teixeira2024].

[carlini2022] N. Carlini et al., Membership inference attacks from first principles, IEEE S&P 2022.
[teixeira2024] F. Teixeira et al., Exploring features for membership inference in ASR model
auditing, 2024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from privasr_k2.attack.membership import Scores
from privasr_k2.randomness import derive_seed


def moments(features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each utterance's features over its own frames, (N, 1, F) each.

    >>> mean, deviation = moments(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([2]))
    >>> mean.item(), deviation.item()
    (2.0, 1.0)
    """
    inside = torch.arange(features.size(1), device=features.device) < lengths[:, None]
    weights = inside.unsqueeze(2) / lengths[:, None, None]
    mean = (features * weights).sum(dim=1, keepdim=True)
    variance = ((features - mean).square() * weights).sum(dim=1, keepdim=True)
    return mean, variance.sqrt()


def noisy(scores_of: Scores, *, strength: float, copies: int, seed: int) -> Scores:
    """Scores of features with Gaussian noise, the mean over several draws.

    Args:
        strength: deviation of the noise by that of the utterance's feature in each dimension.
        copies: draws for each utterance.
        seed: of the noise.
    """
    generator = torch.Generator().manual_seed(derive_seed(seed, "noisy", f"{strength:g}"))

    def scores(
        features: Tensor, lengths: Tensor, hyps: Sequence[Sequence[Sequence[int]]]
    ) -> np.ndarray:
        _, deviation = moments(features, lengths)
        drawn = [
            scores_of(features + strength * deviation * _normal(features, generator), lengths, hyps)
            for _ in range(copies)
        ]
        return np.mean(drawn, axis=0)

    return scores


def silenced(scores_of: Scores, *, seed: int) -> Scores:
    """Scores of noise in place of all speech: of the utterance's mean and deviation, no more.

    Args:
        seed: of the noise.
    """
    generator = torch.Generator().manual_seed(derive_seed(seed, "silenced"))

    def scores(
        features: Tensor, lengths: Tensor, hyps: Sequence[Sequence[Sequence[int]]]
    ) -> np.ndarray:
        mean, deviation = moments(features, lengths)
        return scores_of(mean + deviation * _normal(features, generator), lengths, hyps)

    return scores


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    # Drawn on the CPU: the same on every device.
    return torch.randn(like.shape, generator=generator).to(like.device)


def loss_rise(
    clean: Mapping[str, np.ndarray], perturbed: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """How much higher perturbed losses are, the mean over strengths; units that all have.

    Args:
        clean, perturbed: unit -> (I,) losses of I models, in nats a token.

    >>> loss_rise({"a": np.array([1.0])}, [{"a": np.array([1.5])}, {"a": np.array([2.5])}])
    {'a': array([1.])}
    """
    kept = [unit for unit in clean if all(unit in one for one in perturbed)]
    return {unit: np.mean([one[unit] for one in perturbed], axis=0) - clean[unit] for unit in kept}
