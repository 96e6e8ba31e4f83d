"""``score_<role>``: error rates and names of one system, and data of its paired tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from privasr_k2.report.measures import Context, Measure, Paired, Reading
from privasr_k2.report.readers.names import name_measures, name_pairs
from privasr_k2.report.readers.words import WordErrors, Words, ends_of, rate_of
from privasr_k2.scoring.bootstrap import clusters_of
from privasr_k2.scoring.groups import GroupScore
from privasr_k2.scoring.results import PartScore, Score, read_score
from privasr_k2.scoring.speaker_counts import SpeakerCounts


def score(path: str, context: Context) -> Reading:
    """A folder of verb ``wer``."""
    scored = read_score(Path(path))
    words = Words(Path(path))
    measures = [measure for part in scored.parts for measure in _measures(scored, part)]
    pairs: dict[tuple[str, str], Paired] = {}
    for part in scored.parts:
        pairs[part, "wer"] = errors = WordErrors(scored, part, words)
        pairs |= {(part, name): of for name, of in name_pairs(scored, part, errors).items()}
    return Reading(tuple(measures), pairs)


def _measures(score: Score, part: str) -> Iterator[Measure]:
    result = score.parts[part]
    yield from _counted(score, result, part)
    for group, of_group in result.groups.items():
        for value, of_value in of_group.items():
            yield from _counted(score, of_value, part, value, group)
    yield Measure("no_path", len(result.no_path), part=part)
    rates = [c.percent for c in result.speakers.values() if c.percent is not None]
    if rates:
        yield Measure("speaker_min", min(rates), part=part)
        yield Measure("speaker_max", max(rates), part=part)
    if result.oov is not None and result.ref_words:
        yield Measure("oov", 100 * result.oov / result.ref_words, part=part)
    if result.characters is not None:
        characters = result.characters
        yield _rate("cer", characters, part)
    yield from name_measures(result.entities, part)


def _counted(score: Score, result: PartScore | GroupScore, *where: str) -> Iterator[Measure]:
    """Errors of a part, or of a value of a group in it."""
    counts = result.counts
    yield _rate(rate_of(score), result, *where)
    for name in ("errors", "insertions", "deletions", "substitutions"):
        yield Measure(name, getattr(counts, name), None, None, *where)
    yield Measure("words", counts.ref_words, None, None, *where)
    yield Measure("utterances", result.utterances, None, None, *where)
    yield Measure("speakers", len(result.speakers), None, None, *where)


def _rate(metric: str, of: PartScore | SpeakerCounts, *where: str) -> Measure:
    """An error rate with its interval over speakers."""
    return Measure.drawn(metric, of.counts.percent, ends_of(of.interval), _drawn_from(of), *where)


def _drawn_from(of: PartScore | SpeakerCounts) -> int:
    return clusters_of([counts.ref_words for counts in of.speakers.values()])
