"""Phone errors of models that write words: how far off wrong words sound.

Reference and hypothesis are read by the same lexicon, each word by its first pronunciation, and
phones are folded. A right word has no errors, however it was said, and neither has a homophone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl
from privasr_k2.randomness import stream
from privasr_k2.scoring.align import align
from privasr_k2.scoring.bootstrap import Interval, interval_over_speakers
from privasr_k2.scoring.counts import ErrorCounts, count_pairs, total
from privasr_k2.scoring.results import UTTERANCES_FILE, Score, two_texts

#: Phones by word, folded.
Spoken = Mapping[str, Sequence[str]]


class PhoneRate(NamedTuple):
    """Phone errors in one part.

    Attributes:
        counts: of all its utterances, in phones.
        interval: of the rate, the speakers drawn as for words.
        unspoken: words of hypotheses without phones; each counts as a phone that fits nothing.
    """

    counts: ErrorCounts
    interval: Interval | None
    unspoken: int


class _Utterance(NamedTuple):
    part: str
    speaker: str
    ref: tuple[str, ...]
    hyp: tuple[str, ...]


def words_of(scores: Iterable[Score]) -> tuple[set[str], set[str]]:
    """The words of all references, and those of all hypotheses."""
    utterances = [utterance for score in scores for utterance in _utterances(score)]
    refs = {word for utterance in utterances for word in utterance.ref}
    return refs, {word for utterance in utterances for word in utterance.hyp}


def phone_rates(score: Score, spoken: Spoken) -> dict[str, PhoneRate]:
    """The phone error rate of the words, by part.

    Args:
        spoken: has all words of references.

    Raises:
        DataError: the words of the score are not there, or a reference's word has no phones.
    """
    counts: dict[str, dict[str, list[ErrorCounts]]] = defaultdict(lambda: defaultdict(list))
    unspoken: dict[str, int] = defaultdict(int)
    for record in _utterances(score):
        unknown = next((word for word in record.ref if word not in spoken), None)
        if unknown is not None:
            expected = "phones of every reference's word"
            raise DataError(score.place, expected, f"none of {unknown!r}", "use g2p")
        phones = (
            tuple(phone for word in words for phone in spoken.get(word, (word,)))
            for words in record[2:]
        )
        counts[record.part][record.speaker].append(count_pairs(align(*phones)))
        unspoken[record.part] += sum(word not in spoken for word in record.hyp)
    rates = {}
    for part, speakers in counts.items():
        by_speaker = [total(speakers[name]) for name in sorted(speakers)]
        interval = interval_over_speakers(
            by_speaker,
            stream(score.options.seed, "score", part),
            num_replicates=score.options.num_replicates,
            confidence=score.options.confidence,
        )
        rates[part] = PhoneRate(total(by_speaker), interval, unspoken[part])
    return rates


def _utterances(score: Score) -> list[_Utterance]:
    path = score.place / UTTERANCES_FILE
    try:
        return [
            _Utterance(record["part"], record["speaker"], *two_texts(record))
            for record in read_jsonl(path)
        ]
    except (KeyError, AttributeError, TypeError) as error:
        raise DataError(path, "what score writes", repr(error), "score again") from error
