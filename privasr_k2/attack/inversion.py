"""Model inversion: features that a model takes for a given word [yang2022, section 4.3].

    maximize  log P(word | x) - prior mean(z^2) - smoothness mean((z_t - z_(t-1))^2),
    x = mean + sd z,

where mean and sd are those of public speech: the maximum a posteriori of an attacker who has the
model, but no private utterance [fredrikson2015]. The white-box attacker has the gradient. The
black-box one has a limited number of scores, and estimates the gradient by evolution strategies
with mirrored samples [ilyas2018], in a space of slow cosines over time.

[fredrikson2015] M. Fredrikson et al., Model inversion attacks that exploit confidence information
and basic countermeasures, CCS 2015.
[ilyas2018] A. Ilyas et al., Black-box adversarial attacks with limited queries and information,
ICML 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privasr_k2.attack.background import Background
from privasr_k2.attack.likelihood import Target
from privasr_k2.attack.settings import InversionConfig
from privasr_k2.randomness import stream
from privasr_k2.recipe.progress import report_progress


@dataclass(frozen=True)
class Inverted:
    """The reconstruction of one word.

    Attributes:
        features: (T, F) float32, the best of all restarts by the attacker's own objective.
        log_likelihood: of the word, in nats.
        begun_at: log-likelihood of its starting point.
        queries: number of scores (black box) or gradients (white box) of the target.
    """

    features: np.ndarray
    log_likelihood: float
    begun_at: float
    queries: int


def invert(
    target: Target,
    text: str,
    tokens: Sequence[int],
    background: Background,
    config: InversionConfig,
    device: torch.device | str,
) -> Inverted:
    """Attack one word or phrase."""
    frames = max(background.frames_of(text, len(tokens)), target.fewest_frames(tokens))
    public = (background.mean, background.deviation)
    mean, deviation = (torch.from_numpy(values).to(device) for values in public)
    generator = stream(config.seed, "inversion", text)

    def score(z: Tensor) -> Tensor:
        return target.log_likelihoods(mean + deviation * z, tokens)

    shape = (frames, len(background.mean))
    if config.attack == "white_box":
        best = _white_box(score, shape, config, generator, device)
    else:
        number = math.ceil(frames * background.frame_shift * config.components_per_second)
        best = _black_box(score, shape, min(max(1, number), frames), config, generator, device)
    z, log_likelihood, begun_at, queries = best
    return Inverted((mean + deviation * z).float().cpu().numpy(), log_likelihood, begun_at, queries)


def penalty(z: Tensor, config: InversionConfig) -> Tensor:
    """(N,) of (N, T, F): distance from public speech, by the terms of the prior."""
    steps = z.diff(dim=1)
    jumps = steps.square().mean((1, 2)) if z.size(1) > 1 else steps.new_zeros(len(z))
    return config.prior * z.square().mean((1, 2)) + config.smoothness * jumps


def cosines(frames: int, number: int) -> Tensor:
    """(T, K) orthonormal columns: the K slowest cosines over T frames.

    >>> basis = cosines(5, 3)
    >>> bool(torch.allclose(basis.T @ basis, torch.eye(3), atol=1e-6))
    True
    """
    times = (torch.arange(frames) + 0.5) / frames
    waves = torch.cos(math.pi * times.unsqueeze(1) * torch.arange(number))
    return waves / waves.norm(dim=0)


_Found = tuple[Tensor, float, float, int]


def _white_box(
    score: Callable[[Tensor], Tensor],
    shape: tuple[int, int],
    config: InversionConfig,
    generator: np.random.Generator,
    device: torch.device | str,
) -> _Found:
    """Adam on all restarts at once; each has its best point kept."""

    def noise(scale: float) -> Tensor:
        drawn = scale * generator.standard_normal((config.restarts, *shape))
        return torch.from_numpy(drawn).float().to(device)

    z = noise(config.start).requires_grad_()
    optimizer = torch.optim.Adam([z], lr=config.lr)
    best = z.detach().clone()
    best_value = torch.full((config.restarts,), -math.inf, device=device).double()
    likelihood = begun_at = best_value
    for step in range(config.steps + 1):
        report_progress(step, config.steps, "step")
        moved = z + noise(config.jitter) if config.jitter and step < config.steps else z
        scores = score(moved)
        values = scores - penalty(moved, config).double()
        with torch.no_grad():
            if step == 0:
                begun_at = scores
            better = values > best_value
            best = torch.where(better.view(-1, 1, 1), moved, best)
            best_value = torch.where(better, values, best_value)
            likelihood = torch.where(better, scores, likelihood)
        if step < config.steps:
            [z.grad] = torch.autograd.grad(-values.sum(), z)
            optimizer.step()
    winner = int(best_value.argmax())
    scored = float(likelihood[winner]), float(begun_at[winner])
    return best[winner], *scored, (config.steps + 1) * config.restarts


def _black_box(
    score: Callable[[Tensor], Tensor],
    shape: tuple[int, int],
    number: int,
    config: InversionConfig,
    generator: np.random.Generator,
    device: torch.device | str,
) -> _Found:
    """Evolution strategies: scores at mirrored random points make a gradient; Adam follows it."""
    basis = cosines(shape[0], number).to(device)

    def drawn(*size: int) -> Tensor:
        return torch.from_numpy(generator.standard_normal(size)).float().to(device)

    def scored(weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = torch.einsum("tk,nkf->ntf", basis, weights)
        with torch.no_grad():
            scores = score(z)
        return z, scores, scores - penalty(z, config).double()

    center = (config.start * drawn(number, shape[1])).requires_grad_()
    optimizer = torch.optim.Adam([center], lr=config.lr)
    z, scores, values = scored(center.detach().unsqueeze(0))
    best, best_value, likelihood = z[0], float(values[0]), float(scores[0])
    begun_at = likelihood
    steps = (config.queries - 1) // (2 * config.population)  # one query is for the start
    for _ in range(steps):
        directions = drawn(config.population, number, shape[1])
        mirrored = torch.cat([directions, -directions])
        z, scores, values = scored(center.detach() + config.spread * mirrored)
        first = int(values.argmax())
        if float(values[first]) > best_value:
            best, best_value, likelihood = z[first], float(values[first]), float(scores[first])
        # Values differ by orders of magnitude from step to step.
        shaped = (values - values.mean()) / values.std().clamp(min=1e-12)
        center.grad = -torch.einsum("n,nkf->kf", shaped.float(), mirrored) / len(mirrored)
        optimizer.step()
    return best, likelihood, begun_at, 1 + 2 * config.population * steps
