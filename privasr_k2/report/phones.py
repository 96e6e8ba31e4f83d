"""Phone error rates of systems that write words, as further measures of their scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from privasr_k2.recipe.systems import System
from privasr_k2.report.measures import Measure
from privasr_k2.scoring.results import read_score
from privasr_k2.scoring.word_phones import phone_rates, words_of


def phone_measures(
    systems: Iterable[System], cmudict: str, g2p: str
) -> Mapping[str, list[Measure]]:
    """``word_per`` of each system with a ``score_test``, by part and group, in TIMIT's 39 phones.

    Args:
        cmudict, g2p: as in ``conf/common.yaml#lang``: where pronunciations are from.
    """
    from privasr_k2.corpora.timit import PHONES_48_TO_39
    from privasr_k2.graph.lexicon import cmudict_path, spell_in_phones

    folders = {s.name: s.artifacts["score_test"] for s in systems if "score_test" in s.artifacts}
    scores = {name: read_score(Path(folder)) for name, folder in folders.items()}
    said, recognized = words_of(scores.values())
    spelling = spell_in_phones(
        said, recognized, corpus_lexicon=None, cmudict=cmudict_path(cmudict), g2p=g2p
    )
    spoken = {
        word: [PHONES_48_TO_39[phone.lower()] for phone in first]
        for word, (first, *_) in spelling.variants.items()
    }
    measures: dict[str, list[Measure]] = {}
    for name, score in scores.items():
        for place, rate in phone_rates(score, spoken).items():
            within = rate.interval
            low, high = (None, None) if within is None else (100 * within.low, 100 * within.high)
            where = place.part, place.value, place.group
            measure = Measure("word_per", rate.counts.percent, low, high, *where)
            measures.setdefault(name, []).append(measure)
    return measures
