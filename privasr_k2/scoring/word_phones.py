"""Phone errors of models that write words: how far off wrong words sound.

Reference and hypothesis are read by the same lexicon, each word by its first pronunciation, and
phones are folded. A right word has no errors, however it was said, and neither has a homophone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl
from privasr_k2.scoring.align import align
from privasr_k2.scoring.bootstrap import Interval
from privasr_k2.scoring.counts import ErrorCounts, count_pairs, total
from privasr_k2.scoring.results import UTTERANCES_FILE, Score, over_speakers, two_texts

#: Phones by word, folded.
Spoken = Mapping[str, Sequence[str]]


class Place(NamedTuple):
    """A part, or those of its utterances that have a value of a group."""

    part: str
    group: str = ""
    value: str = ""


class PhoneRate(NamedTuple):
    """Phone errors of some utterances.

    Attributes:
        counts: in phones.
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
    groups: Mapping[str, str]

    @property
    def places(self) -> list[Place]:
        """The part, and each of its groups."""
        return [Place(self.part), *(Place(self.part, *pair) for pair in self.groups.items())]


def words_of(scores: Iterable[Score]) -> tuple[set[str], set[str]]:
    """The words of all references, and those of all hypotheses."""
    utterances = [utterance for score in scores for utterance in _utterances(score)]
    refs = {word for utterance in utterances for word in utterance.ref}
    return refs, {word for utterance in utterances for word in utterance.hyp}


def phone_rates(score: Score, spoken: Spoken) -> dict[Place, PhoneRate]:
    """The phone error rate of the words, by part, and by the groups within each.

    Args:
        spoken: has all words of references.

    Raises:
        DataError: the words of the score are not there, or a reference's word has no phones.
    """
    counts: dict[Place, list[tuple[str, ErrorCounts]]] = defaultdict(list)
    unspoken: Counter[Place] = Counter()
    for record in _utterances(score):
        unknown = next((word for word in record.ref if word not in spoken), None)
        if unknown is not None:
            expected = "phones of every reference's word"
            raise DataError(score.place, expected, f"none of {unknown!r}", "use g2p")
        phones = (
            tuple(phone for word in words for phone in spoken.get(word, (word,)))
            for words in (record.ref, record.hyp)
        )
        errors = record.speaker, count_pairs(align(*phones))
        for place in record.places:
            counts[place].append(errors)
            unspoken[place] += sum(word not in spoken for word in record.hyp)
    rates = {}
    for place, of_place in counts.items():
        speakers, interval = over_speakers(place.part, of_place, score.options)
        rates[place] = PhoneRate(total(speakers.values()), interval, unspoken[place])
    return rates


def _utterances(score: Score) -> list[_Utterance]:
    path = score.place / UTTERANCES_FILE
    try:
        return [
            _Utterance(
                record["part"], record["speaker"], *two_texts(record), record.get("groups", {})
            )
            for record in read_jsonl(path)
        ]
    except (KeyError, AttributeError, TypeError) as error:
        raise DataError(path, "what wer writes", repr(error), "run wer again") from error
