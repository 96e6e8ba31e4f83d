"""log P(words | features) of one model or of several, with gradients by the features."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from privasr_k2.am.kinds import new_model
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.sequence import SequenceModel
from privasr_k2.data.batches import needed_frames
from privasr_k2.errors import ConfigError

#: Features, lengths, targets and their lengths to (I, N) losses in nats, differentiable.
Losses = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Target:
    """The target of an attack: one model, or several whose probabilities are averaged.

    Attributes:
        models: I of them, ready to score, of the same tokens and features.
        log_weights: (I,) natural log; the weights sum to 1.
        losses: of all models.
    """

    models: tuple[Any, ...]
    log_weights: Tensor
    losses: Losses

    def log_likelihoods(self, features: Tensor, tokens: Sequence[int]) -> Tensor:
        """log sum over i of w_i P_i(tokens | features) [yang2022, eq. 3, for whole transcripts].

        Args:
            features: (N, T, F) float32, without padding.
            tokens: of one transcript, from 1.

        Returns:
            (N,) with gradients by the features. Of hybrid models it is minus their training loss,
            a mean of two log-probabilities.
        """
        lengths = torch.full((len(features),), features.size(1), device=features.device)
        targets = torch.tensor([*tokens], device=features.device).expand(len(features), -1)
        target_lengths = torch.full_like(lengths, len(tokens))
        # cuDNN's recurrent layers have no gradients outside of training mode.
        cudnn = torch.backends.cudnn.flags(enabled=False)
        plain = cudnn if features.is_cuda else contextlib.nullcontext()
        with plain:
            losses = self.losses(features, lengths, targets, target_lengths)
        weights = self.log_weights.to(features.device).unsqueeze(1)
        return (weights - losses.double()).logsumexp(0)

    def fewest_frames(self, tokens: Sequence[int]) -> int:
        """Input frames below which no model has room for the tokens."""
        needed = needed_frames(tokens)
        frames = 1
        while min(model.output_frames(frames) for model in self.models) < needed:
            frames += 1
        return frames


def _losses(models: Sequence[Any], *batch: Tensor) -> Tensor:
    """Of one model after the other; ``batch`` as of :data:`Losses`."""
    features, lengths, targets, target_lengths = batch

    def of_one(model: Any) -> Tensor:
        if isinstance(model, SequenceModel):
            return model(features, lengths, targets, target_lengths)
        return ctc_loss(*model(features, lengths), targets, target_lengths)

    return torch.stack([of_one(model) for model in models])


def attacked(
    models: Sequence[Any], weights: Sequence[float] = (), losses: Losses | None = None
) -> Target:
    """The models in evaluation mode and without gradients by their parameters.

    Args:
        weights: above 0, sum 1; none: uniform.
        losses: of all models at once, where they share layers; none: of one after the other.

    Raises:
        ConfigError: another number of weights than of models.
    """
    if weights and len(weights) != len(models):
        expected, found = f"one for each of {len(models)} models", str(len(weights))
        raise ConfigError("weights", expected, found, "give as many, or none")
    for model in models:
        model.eval().requires_grad_(False)
    given = torch.tensor([*weights] or [1 / len(models)] * len(models), dtype=torch.float64)
    return Target(tuple(models), given.log(), losses or partial(_losses, models))


def randomly_initialized(like: Any, mean: Tensor, deviation: Tensor, seed: int) -> Target:
    """The control: a model of the same form that has seen no private data.

    Args:
        like: the model whose form it takes.
        mean, deviation: (F,) of public features.
    """
    model = new_model(like.spec, seed)
    model.mean, model.deviation, model.tokens = mean.clone(), deviation.clone(), like.tokens
    return attacked([model.to(like.mean.device)])
