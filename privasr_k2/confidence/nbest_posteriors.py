"""Confidences of words from the scores of an N-best list alone (Rueber 1997)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privasr_k2.confidence.features import FeatureSettings, agreement
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import NbestList

_DIGITS = 6
_UNWEIGHTED = Weights(0.0, 0.0)


def with_posteriors(nbest: NbestList, scale: float, weights: Weights = _UNWEIGHTED) -> NbestList:
    """The list with a confidence for each word: the share of the hypotheses that have it there.

    Args:
        scale: on total scores, before the shares of hypotheses are normalized.
        weights: of the total; without them it is am_score.
    """
    if not nbest.hyps:
        return nbest
    settings = FeatureSettings(weights, nbest_scale=scale, around=0)
    counts = [len(hyp.words.split()) for hyp in nbest.hyps]
    values = np.split(agreement(nbest, settings), np.cumsum(counts)[:-1])
    hyps = (
        replace(hyp, confidences=tuple(round(float(value), _DIGITS) for value in of_hyp))
        for hyp, of_hyp in zip(nbest.hyps, values)
    )
    return replace(nbest, hyps=tuple(hyps))
