"""The hypotheses that rescoring selects, as records of ``decode`` that ``wer`` reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from privasr_k2.decoding.hyps import Hyp, Record
from privasr_k2.decoding.lm_scores import with_hypotheses
from privasr_k2.decoding.rescoring import Candidates, Point
from privasr_k2.errors import DataError
from privasr_k2.scoring.nbest_lists import NbestLists


def rescored_records(
    lists: NbestLists,
    candidates: Candidates,
    lms: Sequence[str],
    interpolation: str,
    point: Point,
    *,
    place: Path,
) -> list[Record]:
    """The best hypothesis of each list at one point, read from ``place``.

    Raises:
        DataError: the point is for other LMs.
    """
    if set(lms) != set(candidates.log_probs) or len(lms) != len(point.lambdas):
        found = ", ".join(sorted(candidates.log_probs))
        expected = f"scores of {', '.join(lms)}"
        raise DataError(place, expected, found, "give the scores that were tuned with")
    totals = candidates.lm_totals(dict(zip(lms, point.lambdas)), interpolation=interpolation)
    weights, penalties = np.array([point.lm_weight]), np.array([point.insertion_penalty])
    (chosen,) = candidates.best(totals, weights, penalties)
    return _records(lists, candidates, chosen, totals, point.lm_weight, point.insertion_penalty)


def oracle_records(lists: NbestLists, candidates: Candidates) -> list[Record]:
    """The hypothesis with the fewest errors of each list."""
    return _records(lists, candidates, candidates.oracle(), np.zeros(len(candidates.am)), 0.0, 0.0)


def _records(
    lists: NbestLists,
    candidates: Candidates,
    chosen: np.ndarray,
    lm_totals: np.ndarray,
    lm_weight: float,
    insertion_penalty: float,
) -> list[Record]:
    hyps = [hyp for nbest in with_hypotheses(lists) for hyp in nbest.hyps]
    at = iter(chosen.tolist())
    records = []
    for nbest in lists.lists:
        if nbest.hyps:
            best = next(at)
            scores = float(candidates.am[best]), float(lm_totals[best])
            hyp = Hyp(lm_weight, insertion_penalty, hyps[best].words, *scores, hyps[best].classes)
        else:
            hyp = Hyp(lm_weight, insertion_penalty, "", 0.0, 0.0)
        facts = nbest.id, nbest.part, nbest.speaker, nbest.ref, nbest.no_path
        records.append(Record(*facts, (hyp,)))
    return records
