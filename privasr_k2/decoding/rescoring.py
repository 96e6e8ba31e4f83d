"""Choose among the hypotheses of N-best lists with several language models, on a grid of weights.

    score = am + lm_weight * L(words) - insertion_penalty * (number of words)
    linear      L = sum over words of ln sum_k lambda_k P_k(word | history)
    log-linear  L = sum_k lambda_k ln P_k(words)

with K models, lambda_k >= 0, sum_k lambda_k = 1, and the sentence end among the words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import MinLen

from privasr_k2.constraints import Checked, Natural, NotNegative, one_of
from privasr_k2.decoding.tune import TUNING_ROLE, edges_of
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json

INTERPOLATIONS = ("linear", "log_linear")
_BLOCK = 8_000_000  # scores of one block of grid points
_ROUNDING = 1e-9  # of weights that add up to 1


@dataclass(frozen=True)
class Candidates:
    """The hypotheses of all utterances, concatenated, those of each utterance by rank.

    Attributes:
        utterance: (H,) number of the utterance, from 0, ascending, without gaps.
        am: (H,) natural log of the acoustic score.
        num_words: (H,) words.
        errors: (H,) word errors against the reference.
        log_probs: for each LM (W,), natural logs of all words and sentence ends, W = sum of
            ``num_words`` + H.
    """

    utterance: np.ndarray
    am: np.ndarray
    num_words: np.ndarray
    errors: np.ndarray
    log_probs: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        steps = np.diff(self.utterance)
        if not len(steps) + 1 == len(self.utterance) or self.utterance[0] or set(steps) - {0, 1}:
            raise ValueError("utterances must be numbered 0, 1, ... and have hypotheses")
        total = int(self.num_words.sum()) + len(self.num_words)
        for name, values in self.log_probs.items():
            if values.shape != (total,):
                raise ValueError(f"{name}: {total} log-probabilities expected, got {values.shape}")
            if not np.isfinite(values).all():
                first = np.flatnonzero(~np.isfinite(values))[0]
                at = int(np.searchsorted(self.word_starts, first, "right")) - 1
                place = f"LM {name}, hypothesis {at} (utterance {self.utterance[at]})"
                way_out = "give unknown words a probability (<unk>), or leave the LM out"
                raise DataError(place, "finite log-probabilities", "others", way_out)

    @cached_property
    def starts(self) -> np.ndarray:
        """(N,) the first hypothesis of each utterance."""
        return np.flatnonzero(np.diff(self.utterance, prepend=-1))

    @cached_property
    def word_starts(self) -> np.ndarray:
        """(H,) the first log-probability of each hypothesis."""
        return np.concatenate([[0], np.cumsum(self.num_words + 1)[:-1]])

    def lm_totals(self, weights: Mapping[str, float], *, interpolation: str) -> np.ndarray:
        """(H,) L of every hypothesis; ``weights`` are the lambda of each LM.

        Raises:
            ValueError: weights below 0 or of another sum than 1, or an unknown interpolation.
        """
        used = {name: weight for name, weight in weights.items() if weight > 0}
        if abs(sum(used.values()) - 1) > _ROUNDING or min(weights.values()) < 0:
            raise ValueError(f"weights must be 0 or more and add up to 1, got {dict(weights)}")
        if interpolation not in INTERPOLATIONS:
            raise ValueError(_unknown(interpolation))
        if interpolation == "log_linear":
            by_word = sum(weight * self.log_probs[name] for name, weight in used.items())
        else:
            parts = [np.log(w) + self.log_probs[name] for name, w in used.items()]
            by_word = np.logaddexp.reduce(parts)
        return np.add.reduceat(by_word, self.word_starts)

    def best(
        self, lm_totals: np.ndarray, lm_weights: np.ndarray, penalties: np.ndarray
    ) -> np.ndarray:
        """(G, N) the best hypothesis of each utterance at G points; among equals the first.

        Args:
            lm_totals: (H,) of :meth:`lm_totals`.
            lm_weights, penalties: (G,) each.
        """
        chosen = np.empty((len(lm_weights), len(self.starts)), dtype=np.int64)
        rows = max(1, _BLOCK // len(self.am))
        for start in range(0, len(lm_weights), rows):
            points = slice(start, start + rows)
            scores = self.am + lm_weights[points, None] * lm_totals  # (g, H)
            scores -= penalties[points, None] * self.num_words
            top = np.maximum.reduceat(scores, self.starts, axis=1)
            is_top = scores == top[:, self.utterance]
            first = np.where(is_top, np.arange(len(self.am)), len(self.am))
            chosen[points] = np.minimum.reduceat(first, self.starts, axis=1)
        return chosen

    def oracle(self) -> np.ndarray:
        """(N,) the hypothesis with the fewest errors of each utterance, of the lowest rank."""
        top = np.minimum.reduceat(self.errors, self.starts)
        first = np.where(self.errors == top[self.utterance], np.arange(len(self.am)), len(self.am))
        return np.minimum.reduceat(first, self.starts)


@dataclass(frozen=True)
class Point:
    """One setting of all weights; ``lambdas`` in the order of the grid's LMs."""

    lm_weight: float
    insertion_penalty: float
    lambdas: tuple[float, ...]


@dataclass(frozen=True)
class GridConfig(Checked):
    """The grid of weights that is tried on dev.

    Args:
        insertion_penalties: the cost of a word; a reward below 0.
        steps: lambdas are multiples of 1 / steps; 0: all LMs have the same weight.
    """

    interpolation: Annotated[str, one_of(*INTERPOLATIONS)]
    lm_weights: Annotated[list[NotNegative], MinLen(1)]
    insertion_penalties: Annotated[list[float], MinLen(1)]
    steps: Natural


def frozen(config: GridConfig, point: Point) -> GridConfig:
    """The grid with the LM weight and the insertion penalty of a point alone.

    >>> grid = GridConfig("linear", lm_weights=[0.5, 1.0], insertion_penalties=[0.0], steps=10)
    >>> frozen(grid, Point(0.7, -1.0, (1.0,)))
    GridConfig(interpolation='linear', lm_weights=[0.7], insertion_penalties=[-1.0], steps=10)
    """
    penalties = [point.insertion_penalty]
    return dataclasses.replace(config, lm_weights=[point.lm_weight], insertion_penalties=penalties)


def simplex(num: int, steps: int) -> list[tuple[float, ...]]:
    """All weights of ``num`` models that are multiples of 1 / steps and add up to 1.

    >>> simplex(2, 2)
    [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    """

    def parts(left: int, places: int) -> list[tuple[int, ...]]:
        if places == 1:
            return [(left,)]
        return [
            (first, *rest) for first in range(left + 1) for rest in parts(left - first, places - 1)
        ]

    return [tuple(part / steps for part in whole) for whole in parts(steps, num)]


def grid_errors(
    candidates: Candidates, names: Sequence[str], config: GridConfig
) -> dict[Point, int]:
    """The summed errors of the choices at every point of the grid, with the LMs ``names``."""
    grid = np.meshgrid(config.lm_weights, config.insertion_penalties, indexing="ij")
    weights, penalties = (values.ravel() for values in grid)
    errors: dict[Point, int] = {}
    even = config.steps == 0 or len(names) == 1
    for lambdas in [(1 / len(names),) * len(names)] if even else simplex(len(names), config.steps):
        totals = candidates.lm_totals(dict(zip(names, lambdas)), interpolation=config.interpolation)
        summed = candidates.errors[candidates.best(totals, weights, penalties)].sum(axis=1)
        for weight, penalty, count in zip(weights.tolist(), penalties.tolist(), summed.tolist()):
            errors[Point(weight, penalty, lambdas)] = count
    return errors


def choose(errors: Mapping[Point, int]) -> Point:
    """The point with the fewest errors.

    Among equals the smallest LM weight wins, then the penalty nearest to 0, then even lambdas.
    """

    def order(point: Point) -> tuple[float, ...]:
        uneven = max(point.lambdas) - min(point.lambdas)
        penalty = abs(point.insertion_penalty), point.insertion_penalty
        return errors[point], point.lm_weight, *penalty, uneven

    return min(errors, key=order)


@dataclass(frozen=True)
class Rescoring:
    """The choice on dev: the content of ``rescoring.json``.

    Attributes:
        lms: names of the LMs, in the order of ``point.lambdas``.
        role: the role of the choice.
        errors: of the whole grid.
        ref_words: reference words of the lists with hypotheses.
    """

    lms: tuple[str, ...]
    interpolation: str
    point: Point
    role: str
    errors: Mapping[Point, int]
    ref_words: int

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "role": self.role,
            "lms": list(self.lms),
            "interpolation": self.interpolation,
            **dataclasses.asdict(self.point),
            "errors": self.errors[self.point],
            "ref_words": self.ref_words,
            "edges": list(edges_of(self.point, self.errors)),
            "grid": [{**dataclasses.asdict(p), "errors": e} for p, e in self.errors.items()],
        }


def _unknown(interpolation: Any) -> str:
    return f"interpolation must be one of {' '.join(INTERPOLATIONS)}, got {interpolation!r}"


def _check_rescoring(lms: Any, interpolation: Any, point: Point) -> None:
    named = isinstance(lms, list) and all(isinstance(name, str) for name in lms)
    if not named or not len(set(lms)) == len(lms) == len(point.lambdas):
        raise ValueError(
            f"lms must be different names, one for each of {len(point.lambdas)} lambdas"
        )
    if interpolation not in INTERPOLATIONS:
        raise ValueError(_unknown(interpolation))
    if not np.isfinite([point.lm_weight, point.insertion_penalty]).all() or point.lm_weight < 0:
        raise ValueError("lm_weight (0 or more) and insertion_penalty must be finite")
    if not (min(point.lambdas) >= 0 and abs(sum(point.lambdas) - 1) <= _ROUNDING):
        raise ValueError(f"lambdas must be 0 or more and add up to 1, got {point.lambdas}")


def read_rescoring(path: Path) -> tuple[tuple[str, ...], str, Point]:
    """The LMs, the interpolation and the point of a ``rescoring.json``.

    Raises:
        DataError: it was not chosen on dev, or is not what ``tune_weights`` writes.
    """
    content = read_json(path)
    try:
        if content["role"] != TUNING_ROLE:
            expected = f"weights that were chosen on {TUNING_ROLE}"
            raise DataError(path, expected, str(content["role"]), "choose on dev")
        weights = float(content["lm_weight"]), float(content["insertion_penalty"])
        point = Point(*weights, tuple(map(float, content["lambdas"])))
        lms, interpolation = content["lms"], content["interpolation"]
        _check_rescoring(lms, interpolation, point)
        return tuple(lms), interpolation, point
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        expected, way_out = "what tune_weights writes", "run tune_weights again"
        raise DataError(path, expected, repr(error), way_out) from error
