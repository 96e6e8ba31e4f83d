"""The LM weight and the insertion penalty with the fewest errors on dev, and only on dev.

``weights.json`` has the choice with the counts of the whole grid, which show whether it lies on
a plateau. A test set is scored once, at this point.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.scoring.align import to_scored_units
from privasr_k2.scoring.counts import ErrorCounts, count_errors
from privasr_k2.scoring.hypotheses import Decoded, Weights

log = logging.getLogger(__name__)

TUNING_ROLE = "dev"
_LISTED = 3


@dataclass(frozen=True)
class Choice:
    """The chosen weights and the counts of the whole grid.

    Attributes:
        weights: the point with the fewest errors.
        grid: error counts of every point, over all utterances.
        role: the role that was tuned on.
        no_path: utterances without a path, at any point.
        edges: the weights at an end of their range: wider ranges might do better.
    """

    weights: Weights
    grid: Mapping[Weights, ErrorCounts]
    role: str
    no_path: int
    edges: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The content of ``weights.json``."""
        grid = [{**point._asdict(), **counts.to_dict()} for point, counts in self.grid.items()]
        return {
            **self.weights._asdict(),
            "role": self.role,
            "wer_percent": self.grid[self.weights].percent,
            "no_path": self.no_path,
            "edges": list(self.edges),
            "grid": grid,
        }


#: The keys of the grids, in sections such as ``decode``.
_GRIDS = {"lm_weight": "lm_weights", "insertion_penalty": "insertion_penalties"}


def tuning_role(nbest: Path) -> str:
    """The role of a folder ``nbest_<role>``, dev.

    Raises:
        DataError: lists of another role.
    """
    role = nbest.name.removeprefix("nbest_")
    if role != TUNING_ROLE:
        found, way_out = f"those of {role}", "choose on dev, not on what is scored"
        raise DataError(nbest, f"the lists of {TUNING_ROLE}", found, way_out)
    return role


def tune(decoded: Decoded, scored_units: Mapping[str, str]) -> Choice:
    """Choose the point of the grid with the fewest errors on dev.

    Among equals the smallest LM weight wins, then the penalty nearest to 0, below 0 before above.

    Args:
        decoded: dev, decoded at every point of a grid.
        scored_units: as for :func:`privasr_k2.scoring.align.to_scored_units`; may be empty.

    Raises:
        DataError: the utterances are not dev's, or have no reference words.
    """
    if decoded.role != TUNING_ROLE:
        expected, found = f"utterances of the role {TUNING_ROLE}", f"the role {decoded.role}"
        raise DataError(decoded.place, expected, found, "choose on dev, or the error is too small")
    grid = grid_counts(decoded, scored_units)
    if not grid[decoded.grid[0]].ref_words:
        expected, found = "references with words", "only empty ones"
        raise DataError(decoded.place, expected, found, "give dev transcripts")

    def order(point: Weights) -> tuple[float, ...]:
        penalty = point.insertion_penalty
        return grid[point].errors, point.lm_weight, abs(penalty), penalty

    chosen = min(grid, key=order)
    edges = edges_of(chosen, decoded.grid)
    for edge in edges:
        message = (
            "the best %s on dev, %s, is at the edge of its grid: widen %s of the section of conf/ "
            "that dev is decoded with"
        )
        log.warning(message, edge, getattr(chosen, edge), _GRIDS[edge])
    return Choice(chosen, grid, decoded.role, sum(u.no_path for u in decoded.utterances), edges)


def grid_counts(decoded: Decoded, scored_units: Mapping[str, str]) -> dict[Weights, ErrorCounts]:
    """Error counts over all utterances for every point of the grid, in the grid's order."""
    grid = {point: ErrorCounts() for point in decoded.grid}
    for utterance in decoded.utterances:
        ref = to_scored_units(utterance.ref, scored_units)
        # Neighbouring points mostly agree: each different hypothesis is aligned once.
        known: dict[tuple[str, ...], ErrorCounts] = {}
        for point in decoded.grid:
            hyp = utterance.hyp(point)
            if hyp not in known:
                known[hyp] = count_errors(ref, to_scored_units(hyp, scored_units))
            grid[point] += known[hyp]
    return grid


def edges_of(chosen: Any, grid: Collection[Any]) -> tuple[str, ...]:
    """Which of LM weight and insertion penalty lies at an end of its range.

    A range of one value has no edge, and an LM weight of 0 is none: nothing lies below it.

    >>> grid = tuple(Weights(lm, penalty) for lm in (0.25, 0.5, 1.0) for penalty in (0.0, 1.0))
    >>> edges_of(Weights(0.5, 1.0), grid)
    ('insertion_penalty',)
    """
    edges = []
    for name in Weights._fields:
        values = {getattr(point, name) for point in grid}
        value = getattr(chosen, name)
        lowest = value == min(values) and (name, value) != ("lm_weight", 0)
        at_end = value == max(values) or lowest
        if len(values) > 1 and at_end:
            edges.append(name)
    return tuple(edges)


def choose_point(decoded: Decoded, weights: Weights | None) -> Weights:
    """The point of the grid to score.

    Args:
        weights: chosen on dev; ``None`` is enough for a grid of one point.

    Raises:
        DataError: ``weights`` are not in the grid, or are missing where there is a choice.
    """
    if weights is None:
        if len(decoded.grid) > 1:
            expected = "one LM weight and insertion penalty"
            way_out = "add --in-weights weights.json, chosen on dev"
            raise DataError(decoded.place, expected, f"{len(decoded.grid)} of them", way_out)
        return decoded.grid[0]
    if weights not in decoded.grid:
        points = ", ".join(str(tuple(point)) for point in decoded.grid[:_LISTED])
        more = f" and {len(decoded.grid) - _LISTED} more" if len(decoded.grid) > _LISTED else ""
        expected = f"the LM weight and insertion penalty {tuple(weights)}"
        way_out = "decode again with the weights that were chosen, or with dev's grid"
        raise DataError(decoded.place, expected, f"only {points}{more}", way_out)
    return weights


def read_weights(path: Path) -> Weights:
    """The chosen weights of a ``weights.json``.

    Raises:
        DataError: they were not chosen on dev, or are no numbers.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("role") != TUNING_ROLE:
        role = content.get("role") if isinstance(content, dict) else None
        expected = f"weights that were chosen on {TUNING_ROLE}"
        raise DataError(path, expected, f"the role {role}", "run tune_weights on dev")
    try:
        weights = Weights(float(content["lm_weight"]), float(content["insertion_penalty"]))
    except (KeyError, TypeError, ValueError) as error:
        expected, way_out = "lm_weight and insertion_penalty", "run tune_weights again"
        raise DataError(path, expected, repr(error), way_out) from error
    if not all(math.isfinite(w) for w in weights):
        raise DataError(path, "finite weights", str(tuple(weights)), "run tune_weights again")
    return weights
