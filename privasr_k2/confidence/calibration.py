"""From scores to probabilities: isotonic regression, or Platt's sigmoid for few words.

[zadrozny2002] B. Zadrozny and C. Elkan, Transforming classifier scores into accurate multiclass
probability estimates, KDD 2002. [platt1999] J. Platt, Probabilistic outputs for support vector
machines, 1999. [lin2007] H.-T. Lin et al., A note on Platt's probabilistic outputs, 2007.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

log = logging.getLogger(__name__)

AUTO, ISOTONIC, PLATT, NONE = "auto", "isotonic", "platt", "none"
KINDS = (AUTO, ISOTONIC, PLATT, NONE)

_STEPS = 100


@dataclass(frozen=True)
class Calibrator:
    """A function from log-odds scores to probabilities.

    Attributes:
        kind: ``isotonic``, ``platt`` or ``none``.
        x, y: isotonic: (K,) increasing scores and their probabilities, interpolated linearly;
            platt: the slope and the offset; none: empty.
    """

    kind: str
    x: np.ndarray
    y: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """(N,) probabilities in [0, 1]."""
        if self.kind == ISOTONIC:
            return np.interp(scores, self.x, self.y)
        if self.kind == PLATT:
            scores = self.x[0] * scores + self.y[0]
        return sigmoid(scores)


IDENTITY = Calibrator(NONE, np.zeros(0), np.zeros(0))
"""Takes scores for log-odds."""


def sigmoid(scores: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-s)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -scores))


def fit(kind: str, scores: np.ndarray, correct: np.ndarray, *, isotonic_from: int) -> Calibrator:
    """A calibrator from words that the scores were not trained on.

    Args:
        kind: of :data:`KINDS`; ``auto`` is isotonic from ``isotonic_from`` words on, else Platt.
        scores: (N,) log-odds.
        correct: (N,) whether each word is correct.
    """
    if kind == AUTO:
        kind = ISOTONIC if len(scores) >= isotonic_from else PLATT
    if kind == ISOTONIC:
        return isotonic(scores, correct)
    return platt(scores, correct) if kind == PLATT else IDENTITY


def isotonic(scores: np.ndarray, correct: np.ndarray) -> Calibrator:
    """The increasing step function with the least squared error [zadrozny2002].

    A wrong word above all others and a correct one below keep it strictly between 0 and 1.

    >>> isotonic(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 1])).y.round(2).tolist()
    [0.5, 0.5]
    """
    from sklearn.isotonic import IsotonicRegression

    x = np.concatenate([[scores.min()], scores, [scores.max()]]).astype(np.float64)
    y = np.concatenate([[1.0], correct.astype(np.float64), [0.0]])
    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=True).fit(x, y)
    return Calibrator(ISOTONIC, np.asarray(fitted.X_thresholds_), np.asarray(fitted.y_thresholds_))


def platt(scores: np.ndarray, correct: np.ndarray) -> Calibrator:
    """The sigmoid 1 / (1 + exp(-(a s + b))) with the greatest likelihood, by Newton's method.

    Targets are (n + 1) / (n + 2) and 1 / (m + 2) for n correct and m wrong words [platt1999,
    lin2007]. The slope a is at least 0: at 0 all words get the share of correct ones.

    >>> platt(np.array([0.0, 1.0, 2.0]), np.array([True, True, False])).x.tolist()
    [0.0]
    """
    right = float(np.count_nonzero(correct))
    wrong = len(correct) - right
    targets = np.where(correct, (right + 1) / (right + 2), 1 / (wrong + 2))
    inputs = np.column_stack([scores, np.ones(len(scores))])

    def loss(weights: np.ndarray) -> float:
        z = inputs @ weights
        return float((np.logaddexp(0.0, z) - targets * z).sum())

    weights = np.array([0.0, np.log((right + 1) / (wrong + 1))])
    value = loss(weights)
    for _ in range(_STEPS):
        p = sigmoid(inputs @ weights)
        gradient = inputs.T @ (p - targets)
        curvature = (inputs * (p * (1 - p))[:, None]).T @ inputs + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-10 and loss(weights - size * step) > value:
            size /= 2
        new = loss(weights - size * step)
        if value - new < 1e-10 * max(1.0, abs(value)):
            break
        weights, value = weights - size * step, new
    if weights[0] < 0:  # the greatest likelihood with a slope of at least 0
        share = targets.mean()
        weights = np.array([0.0, np.log(share / (1 - share))])
        log.warning("scores of held-out words do not tell correct from wrong: train on more words")
    return Calibrator(PLATT, weights[:1], weights[1:])
