"""Criteria that choose lambda: word errors of rescoring, or perplexity."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from privasr_k2.decoding.lm_scores import candidates_of, read_lm_scores
from privasr_k2.decoding.rescoring import read_rescoring
from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_scores import World
from privasr_k2.federated.fmp_simulation import client_perplexities
from privasr_k2.scoring.corpus_info import read_corpus_info


def word_errors(
    world: World,
    scores: np.ndarray,
    name: str,
    others: Sequence[Path],
    weights: Path,
    manifests: Path | None,
) -> list[float]:
    """Word errors of the lists that have hypotheses, for each column of scores.

    Args:
        scores: (W, K) of the adapted model.
        name: of that model in the weights.
        others: files of lm_scores of all other models of the weights.

    Raises:
        DataError: the weights are of other models.
    """
    names, interpolation, point = read_rescoring(weights)
    logs = {**read_lm_scores(others, world.lists), name: scores[:, 0]}
    if set(names) != set(logs):
        found = f"scores of {' '.join(sorted(logs))}"
        raise DataError(weights, f"the LMs {' '.join(names)}", found, "set name= as they do")
    units = read_corpus_info(manifests).scored_units
    candidates = candidates_of(world.lists, logs, units)
    lambdas = dict(zip(names, point.lambdas))
    found_errors: list[float] = []
    for column in scores.T:
        logs[name] = column  # the candidates look at this dictionary
        totals = candidates.lm_totals(lambdas, interpolation=interpolation)
        best = candidates.best(totals, *np.array([[point.lm_weight], [point.insertion_penalty]]))
        found_errors.append(float(candidates.errors[best[0]].sum()))
    return found_errors


def perplexities(world: World, scores: np.ndarray) -> list[float]:
    """Perplexity of the best hypotheses for each column of normalized scores (W, K)."""
    return [client_perplexities(world.spoken, column, 1).total for column in scores.T]
