"""Reading hypotheses token by token: what searches and votes need of a model, many prefixes at
once.

A model is a distribution over token sequences. Whatever its architecture, it gives the
log-probability of every next token, and of the end, after each of M prefixes: the chain rule's
factors, which sum to the sequence's own log-probability. Token 0, never inside a sequence, stands
for the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Prefixes:
    """M prefixes of hypotheses.

    Attributes:
        scores: (M, C) float64 natural log; what each token adds after each prefix, and at 0 the
            end.
        memory: what the model needs to read on: tensors whose first dimension is M.
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
    """Several models at once: weighted sums of their log-probabilities.

    Watanabe et al. (2017), "Hybrid CTC/attention architecture for end-to-end speech recognition",
    eq. 47. Such scores are no log-probabilities, but never above 0 either.

    Args:
        parts: steppers over the same utterances with their weights, of which none is below 0.
    """

    def __init__(self, parts: Sequence[tuple[float, Stepper]]) -> None:
        self._parts = [(weight, stepper) for weight, stepper in parts if weight > 0]
        self.num = self._parts[0][1].num

    def start(self) -> Prefixes:
        """As :meth:`Stepper.start`."""
        return self._joint([stepper.start() for _, stepper in self._parts])

    def extend(self, prefixes: Prefixes, rows: Tensor, tokens: Tensor) -> Prefixes:
        """As :meth:`Stepper.extend`."""
        pairs = zip(self._parts, prefixes.memory)
        return self._joint([stepper.extend(one, rows, tokens) for (_, stepper), one in pairs])

    def _joint(self, found: list[Prefixes]) -> Prefixes:
        weighted = [weight * one.scores for (weight, _), one in zip(self._parts, found)]
        return Prefixes(torch.stack(weighted).sum(0), found)


def scanned(weights: Tensor, entering: Tensor) -> Tensor:
    """y(t) = log(exp(y(t - 1) + w(t - 1)) + exp(e(t))) with y(-1) = -inf, all t at once.

    With W(t) = w(0) + ... + w(t - 1) it is W(t) + log(sum of exp(e(s) - W(s)) over s <= t), so that
    no loop over frames is needed; in double precision, because W may be some thousands.

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
    """log P(next | prefix) (M, C) from log P(prefix, next) (M, C) and log P(prefix) (M,); -inf
    stays -inf.
    """
    return (joint - prefix.unsqueeze(1)).masked_fill(joint.isinf(), -float("inf"))
