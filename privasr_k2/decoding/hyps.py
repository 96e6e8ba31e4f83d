"""The record of a decoded utterance: a line of ``decode_<role>/JOB.jsonl``, written by ``decode``.

:func:`privasr_k2.scoring.hypotheses.read_decoded` reads a folder of them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from privasr_k2.graph.class_delimiters import Span


@dataclass(frozen=True)
class Hyp:
    """The words with the greatest ``am + lm_weight * lm - insertion_penalty * words`` at one point.

    Args:
        lm_weight: the factor of the LM score, at least 0.
        insertion_penalty: the cost of a word; a reward below 0.
        words: separated by spaces.
        am_score: natural log of the acoustic model's probability of the path.
        lm_score: natural log of the graph's probability of the path (back-off included).
        classes: spans ``(first word, last word + 1, class)`` of names, where the graph has classes.
    """

    lm_weight: float
    insertion_penalty: float
    words: str
    am_score: float
    lm_score: float
    classes: tuple[Span, ...] | None = None


@dataclass(frozen=True)
class Record:
    """An utterance with its hypotheses.

    Args:
        id: the utterance.
        part: the corpus's name of the part that it is scored with.
        speaker: the user who spoke.
        ref: the normalized reference.
        no_path: the search found no complete path; the hypotheses are then empty.
        hyps: one for each point of the grid.
    """

    id: str
    part: str
    speaker: str
    ref: str
    no_path: bool
    hyps: tuple[Hyp, ...]

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values; ``classes`` only where the graph has classes.

        >>> record = Record("u1", "dev", "s1", "hi", True, (Hyp(1.0, 0.0, "", 0.0, 0.0),))
        >>> record.to_dict()["hyps"][0]["words"]
        ''
        """
        record = dataclasses.asdict(self)
        for hyp in record["hyps"]:
            if hyp["classes"] is None:
                del hyp["classes"]
        return record
