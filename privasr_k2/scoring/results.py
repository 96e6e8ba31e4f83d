"""Error counts of one decoded role by part and speaker, with intervals; ``wer.json``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from privasr_k2 import randomness
from privasr_k2.constraints import Checked, Count, Delta
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.scoring.align import Pair, align, to_scored_units
from privasr_k2.scoring.bootstrap import (
    MIN_CLUSTERS,
    Interval,
    clusters_of,
    interval_over_speakers,
)
from privasr_k2.scoring.characters import count_character_errors
from privasr_k2.scoring.corpus_info import WORD
from privasr_k2.scoring.counts import ErrorCounts, count_pairs, total
from privasr_k2.scoring.entities import Classes, Entities
from privasr_k2.scoring.entity_scores import EntityScore
from privasr_k2.scoring.groups import GroupScore
from privasr_k2.scoring.hypotheses import Decoded, Utterance, Weights
from privasr_k2.scoring.name_errors import spans_of
from privasr_k2.scoring.speaker_counts import SpeakerCounts, read_speakers

WER_FILE = "wer.json"
UTTERANCES_FILE = "utterances.jsonl"

TwoTexts = tuple[tuple[str, ...], tuple[str, ...]]
"""The words of a reference and of a hypothesis."""


@dataclass(frozen=True)
class ScoreOptions(Checked):
    """Options of scoring and of its intervals; ``conf/common.yaml#wer`` explains the values."""

    role: str
    num_replicates: Count
    confidence: Delta
    seed: int


@dataclass(frozen=True)
class ScoredUtterance:
    """A reference and a hypothesis in scored units, and their alignment.

    Attributes:
        groups: group -> its value of this utterance, as :func:`.groups.read_groups` gives them.
        classes: of each word of ``ref``, the classes of names; ``None``: not annotated.
    """

    id: str
    part: str
    speaker: str
    no_path: bool
    ref: tuple[str, ...]
    hyp: tuple[str, ...]
    pairs: tuple[Pair, ...]
    counts: ErrorCounts
    groups: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[Classes, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """A record of ``utterances.jsonl``."""
        about = {name: getattr(self, name) for name in ("id", "part", "speaker", "no_path")}
        texts = {"ref": " ".join(self.ref), "hyp": " ".join(self.hyp)}
        more: dict[str, Any] = {"groups": dict(self.groups)} if self.groups else {}
        if self.classes is not None:
            more["entities"] = [list(span) for span in spans_of(self.classes)]
        return {**about, **texts, **self.counts.to_dict(), **more}


@dataclass(frozen=True)
class CharacterScore(SpeakerCounts):
    """The character errors of one part, counted in characters."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``wer.json``."""
        return {"cer_percent": self.counts.percent, **self.plain()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CharacterScore:
        """Read the output of :meth:`to_dict`."""
        return cls(**read_speakers(values))


_FURTHER: tuple[tuple[str, Any], ...] = (("characters", CharacterScore), ("entities", EntityScore))


@dataclass(frozen=True)
class PartScore:
    """The result on one part.

    Attributes:
        utterances: how many there are.
        speakers: counts of each speaker, sorted by name.
        interval: of the error rate; ``None`` with fewer than
            :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` speakers with reference words.
        no_path: ids of utterances without a path, whose words all count as deleted.
        oov: OOV words before any mapping to scored units; ``None``: no vocabulary was given.
        ref_words: reference words among which ``oov`` was counted.
        characters: character errors of the same words; ``None`` where units are phones.
        entities: the words of entities; ``None`` where no utterance is annotated.
        groups: group -> value -> the errors of its utterances.
    """

    utterances: int
    speakers: Mapping[str, ErrorCounts]
    interval: Interval | None
    no_path: tuple[str, ...]
    oov: int | None
    ref_words: int
    characters: CharacterScore | None = None
    entities: EntityScore | None = None
    groups: Mapping[str, Mapping[str, GroupScore]] = field(default_factory=dict)

    @property
    def counts(self) -> ErrorCounts:
        """All speakers together."""
        return total(self.speakers.values())

    @property
    def interval_note(self) -> str:
        """Why there is no interval; empty where there is one."""
        if self.interval is not None:
            return ""
        with_words = clusters_of([c.ref_words for c in self.speakers.values()])
        few = f"fewer than {MIN_CLUSTERS} speakers: {with_words}"
        return few if with_words else "no reference words"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``wer.json``; the rate in per cent follows from the counts."""
        more = {"characters": self.characters, "entities": self.entities}
        groups = {
            group: {value: score.to_dict() for value, score in of_group.items()}
            for group, of_group in self.groups.items()
        }
        return {
            "wer_percent": self.counts.percent,
            "interval": None if self.interval is None else asdict(self.interval),
            "interval_note": self.interval_note,
            "utterances": self.utterances,
            "counts": self.counts.to_dict(),
            "speakers": {name: c.to_dict() for name, c in self.speakers.items()},
            "no_path": list(self.no_path),
            "oov": self.oov,
            "ref_words": self.ref_words,
            **{name: score.to_dict() for name, score in more.items() if score is not None},
            **({"groups": groups} if groups else {}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PartScore:
        """Read the output of :meth:`to_dict`."""
        return cls(
            **read_speakers(values),
            utterances=values["utterances"],
            no_path=tuple(values["no_path"]),
            oov=values["oov"],
            ref_words=values["ref_words"],
            **{name: kind.from_dict(values[name]) for name, kind in _FURTHER if name in values},
            groups={
                group: {value: GroupScore.from_dict(score) for value, score in of_group.items()}
                for group, of_group in values.get("groups", {}).items()
            },
        )


def check_role(decoded: Decoded, role: str) -> None:
    """Refuse to score what was decoded for another role; an empty ``role`` accepts any.

    Raises:
        DataError: the role of the decoded utterances is not ``role``.
    """
    if role and decoded.role != role:
        expected = f"utterances of the role {role}"
        raise DataError(decoded.place, expected, f"the role {decoded.role}", "correct --in-hyps")


def score_utterances(
    utterances: Iterable[Utterance],
    weights: Weights,
    scored_units: Mapping[str, str],
    groups: Mapping[str, Mapping[str, str]] | None = None,
    entities: Entities | None = None,
) -> list[ScoredUtterance]:
    """Align utterances at one point of the grid with their references, in scored units.

    ``groups`` are those of :func:`privasr_k2.scoring.groups.read_groups`, by id.
    """
    scored, groups = [], groups or {}
    classes = {} if entities is None else entities.words
    for u in utterances:
        ref, hyp = (to_scored_units(words, scored_units) for words in (u.ref, u.hyp(weights)))
        pairs = align(ref, hyp)
        of_reference = u.id, u.part, u.speaker, u.no_path
        compared = ref, hyp, pairs, count_pairs(pairs)
        more = groups.get(u.id, {}), classes.get(u.id)
        scored.append(ScoredUtterance(*of_reference, *compared, *more))
    return scored


def score_part(
    part: str,
    scored: Sequence[ScoredUtterance],
    options: ScoreOptions,
    *,
    raw_refs: Iterable[Sequence[str]],
    vocabulary: Set[str] | None,
) -> PartScore:
    """Sum up one part, as a whole and by the groups of its utterances.

    Args:
        part: its name, which names the stream of draws: other parts do not shift its interval.
        scored: its utterances.
        options: of the interval.
        raw_refs: their references before any mapping to scored units.
        vocabulary: the words of the recognizer; ``None``: not known.
    """
    speakers, interval = over_speakers(part, ((u.speaker, u.counts) for u in scored), options)
    words = [word for ref in raw_refs for word in ref]
    return PartScore(
        utterances=len(scored),
        speakers=speakers,
        interval=interval,
        no_path=tuple(u.id for u in scored if u.no_path),
        oov=None if vocabulary is None else sum(word not in vocabulary for word in words),
        ref_words=len(words),
        groups=_by_group(part, scored, options),
    )


def _by_group(
    part: str, scored: Iterable[ScoredUtterance], options: ScoreOptions
) -> dict[str, dict[str, GroupScore]]:
    counts: dict[str, dict[str, list[tuple[str, ErrorCounts]]]] = {}
    for u in scored:
        for group, value in u.groups.items():
            counts.setdefault(group, {}).setdefault(value, []).append((u.speaker, u.counts))
    return {
        group: {
            value: GroupScore(*over_speakers(part, of_value, options), len(of_value))
            for value, of_value in sorted(of_group.items())
        }
        for group, of_group in counts.items()
    }


def score_characters(
    part: str, scored: Iterable[ScoredUtterance], options: ScoreOptions
) -> CharacterScore:
    """Count the character errors of one part, with an interval on the same draws as of the words.

    :mod:`privasr_k2.scoring.characters` defines the characters.
    """
    counts = ((u.speaker, count_character_errors(u.ref, u.hyp)) for u in scored)
    return CharacterScore(*over_speakers(part, counts, options))


def over_speakers(
    part: str, counts: Iterable[tuple[str, ErrorCounts]], options: ScoreOptions
) -> tuple[dict[str, ErrorCounts], Interval | None]:
    """Counts of each speaker, sorted by name, and the interval of the rate over them.

    Args:
        part: names the stream of draws.
        counts: speaker and counts of each utterance.
        options: of the interval.
    """
    by_speaker: dict[str, list[ErrorCounts]] = defaultdict(list)
    for speaker, of_utterance in counts:
        by_speaker[speaker].append(of_utterance)
    speakers = {name: total(by_speaker[name]) for name in sorted(by_speaker)}
    interval = interval_over_speakers(
        list(speakers.values()),
        randomness.stream(options.seed, "score", part),
        num_replicates=options.num_replicates,
        confidence=options.confidence,
    )
    return speakers, interval


@dataclass(frozen=True)
class Score:
    """A ``score_<role>`` folder.

    Attributes:
        place: the folder.
        system: name of the experiment, which is the folder around it.
        role: ``dev``, ``test``, ...
        weights: the point of the grid that was scored.
        options: of the intervals.
        parts: result of each part.
        unit: what was recognized, as in :class:`privasr_k2.scoring.corpus_info.CorpusInfo`.
    """

    place: Path
    system: str
    role: str
    weights: Weights
    options: ScoreOptions
    parts: Mapping[str, PartScore]
    unit: str = WORD

    def to_dict(self) -> dict[str, Any]:
        """The content of ``wer.json``. ``place`` and ``system`` are where the file lies."""
        return {
            "role": self.role,
            "unit": self.unit,
            **self.weights._asdict(),
            "options": asdict(self.options),
            "parts": {name: part.to_dict() for name, part in self.parts.items()},
        }


def system_of(folder: Path) -> str:
    """The name of the experiment that a ``score_<role>`` folder belongs to."""
    return folder.resolve().parent.name


def read_score(folder: Path) -> Score:
    """Read the ``wer.json`` of a folder that ``wer`` wrote.

    Raises:
        DataError: it is not what ``wer`` writes.
    """
    path = folder / WER_FILE
    content = read_json(path)
    try:
        weights = Weights(content["lm_weight"], content["insertion_penalty"])
        parts = {name: PartScore.from_dict(values) for name, values in content["parts"].items()}
        options = ScoreOptions(**content["options"])
        unit = content.get("unit", WORD)
        return Score(folder, system_of(folder), content["role"], weights, options, parts, unit)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(path, "what wer writes", repr(error), "run wer again") from error


def two_texts(record: Mapping[str, Any]) -> TwoTexts:
    """The words of a record of ``utterances.jsonl``."""
    return tuple(record["ref"].split()), tuple(record["hyp"].split())


def read_scored_words(folder: Path) -> dict[str, dict[str, TwoTexts]]:
    """The words that were scored: part -> id -> (reference, hypothesis), in scored units.

    Raises:
        DataError: the file is not what ``wer`` writes.
    """
    path = folder / UTTERANCES_FILE
    words: dict[str, dict[str, TwoTexts]] = defaultdict(dict)
    for record in read_jsonl(path):
        try:
            words[record["part"]][record["id"]] = two_texts(record)
        except (KeyError, AttributeError) as error:
            raise DataError(path, "what wer writes", repr(error), "run wer again") from error
    return dict(words)
