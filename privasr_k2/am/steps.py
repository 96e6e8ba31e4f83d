"""Reading hypotheses token by token, many prefixes at once, for searches and votes.

A model is a distribution over token sequences: after each of M prefixes it gives the
log-probability of every next token and of the end, the chain rule's factors. Token 0, never
inside a sequence, stands for the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Prefixes:
    """M prefixes of hypotheses.

    Attributes:
        scores: (M, C) float64 natural log of each token after each prefix; of the end at 0.
        memory: tensors whose first dimension is M, from which the model reads on.
    """

    scores: Tensor
    memory: Any


class Stepper(Protocol):
    """Reads prefixes of the transcripts of N utterances."""

    num: int

    def start(self) -> Prefixes:
        """The N empty prefixes, one an utterance."""

    def extend(self, prefixes: Prefixes, rows: Tensor, tokens: Tensor) -> Prefixes:
        """M prefixes, each one of ``prefixes`` and a token more.

        Args:
            rows: (M,) which of ``prefixes``; they may repeat.
            tokens: (M,) from 1.
        """


class JointSteps:
    """Several models at once: weighted sums of their log-probabilities, never above 0.

    Watanabe et al. (2017), "Hybrid CTC/attention architecture for end-to-end speech recognition",
    eq. 47.

    Args:
        parts: steppers over the same utterances with their weights, 0 or more.
    """

    def __init__(self, parts: Sequence[tuple[float, Stepper]]) -> None:
        self._parts = [(weight, stepper) for weight, stepper in parts if weight > 0]
        self.num = self._parts[0][1].num

    def start(self) -> Prefixes:
        return self._joint([stepper.start() for _, stepper in self._parts])

    def extend(self, prefixes: Prefixes, rows: Tensor, tokens: Tensor) -> Prefixes:
        pairs = zip(self._parts, prefixes.memory)
        return self._joint([stepper.extend(part, rows, tokens) for (_, stepper), part in pairs])

    def _joint(self, parts: list[Prefixes]) -> Prefixes:
        weighted = [weight * part.scores for (weight, _), part in zip(self._parts, parts)]
        return Prefixes(torch.stack(weighted).sum(0), parts)


class MeanSteps:
    """Several models at once: the log of the mean of their probabilities of the next token.

    Args:
        parts: steppers over the same utterances, one at least.
    """

    def __init__(self, parts: Sequence[Stepper]) -> None:
        self._parts = tuple(parts)
        self.num = self._parts[0].num

    def start(self) -> Prefixes:
        return self._mean([stepper.start() for stepper in self._parts])

    def extend(self, prefixes: Prefixes, rows: Tensor, tokens: Tensor) -> Prefixes:
        pairs = zip(self._parts, prefixes.memory)
        return self._mean([stepper.extend(part, rows, tokens) for stepper, part in pairs])

    def _mean(self, parts: list[Prefixes]) -> Prefixes:
        scores = torch.stack([part.scores for part in parts])
        return Prefixes(scores.logsumexp(0) - math.log(len(parts)), parts)


def scanned(weights: Tensor, entering: Tensor) -> Tensor:
    """y(t) = log(exp(y(t - 1) + w(t - 1)) + exp(e(t))) with y(-1) = -inf, all t at once.

    With W(t) = w(0) + ... + w(t - 1) it is W(t) + log(sum of exp(e(s) - W(s)) over s <= t), in
    double precision because W may be some thousands.

    Args:
        weights: (M, T), finite.
        entering: (M, T), -inf where nothing enters.

    >>> y = scanned(torch.tensor([[-1.0, -2.0, -3.0]]), torch.tensor([[0.0, -float("inf"), -3.0]]))
    >>> [round(value, 4) for value in y[0].tolist()]  # 0; 0 - 1; log(exp(-1 - 2) + exp(-3))
    [0.0, -1.0, -2.3069]
    """
    weights, entering = weights.double(), entering.double()
    before = weights.cumsum(1) - weights
    return before + (entering - before).logcumsumexp(1)


def relative(joint: Tensor, prefix: Tensor) -> Tensor:
    """log P(next | prefix) (M, C) from log P(prefix, next) (M, C) and log P(prefix) (M,)."""
    return (joint - prefix.unsqueeze(1)).masked_fill(joint.isinf(), -float("inf"))
