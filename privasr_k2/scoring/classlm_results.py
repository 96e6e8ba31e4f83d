"""What the stages of recipe ``classlm`` measured, by setting and system, for its report.

A setting is how the text of the models was made, a system which model recognized with it [turan2022]:

    sanitized, original        M1 M2 M3 M4
    adapt_<percent>            M1_eq1 M1_eq2 M2_eq1 M2_eq2 M3 M4
    direct_<percent>           M1 M2 M3 M4
    mixed                      M1_M2 M1_M2_exact M1_M2_M3 M1_M2_M3_exact M1_M2_M4

Of the mixtures M1_M2 and M1_M2_M3 are static, one model for a pass of its own, all others dynamic: eq. 3.
Both stand in the paths of the recipe: ``<setting>/lm/<system>*`` is a model,
``<setting>/<system>/score_<role>`` an error rate. Other systems of these settings are reported as well.

[turan2022] M. A. T. Turan, D. Klakow, E. Vincent, D. Jouvet, Adapting language models when training on
privacy-transformed data, LREC 2022.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from privasr_k2 import randomness
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.scoring.align import align
from privasr_k2.scoring.bootstrap import interval_over_speakers
from privasr_k2.scoring.comparisons import PartWords, check_same_references
from privasr_k2.scoring.counts import ErrorCounts
from privasr_k2.scoring.entities import ALL, EntityCounts, EntityScore
from privasr_k2.scoring.matched_pairs import errors_by_slot
from privasr_k2.scoring.results import (
    PartScore,
    Score,
    read_score,
    read_scored_words,
    with_recall_intervals,
)

SANITIZED, ORIGINAL, MIXED, ADAPT, DIRECT = "sanitized", "original", "mixed", "adapt", "direct"
EXACT = "_exact"
TEST = "test"
TEXTS_FILE = "about.json"
_SETTING = re.compile(f"{SANITIZED}|{ORIGINAL}|{MIXED}|(?:{ADAPT}|{DIRECT})_[0-9]+(?:\\.[0-9]+)?")
_SETTINGS = "sanitized, original, adapt_<percent>, direct_<percent>, mixed"
_ORDER = (SANITIZED, ORIGINAL, ADAPT, DIRECT, MIXED)


class System(NamedTuple):
    """A setting and a model.

    >>> str(System("adapt_12", "M1_eq2")), System("adapt_12", "M1_eq2").model, System("adapt_12", "M3").size
    ('adapt_12/M1_eq2', 'M1', 12.0)
    """

    setting: str
    name: str

    def __str__(self) -> str:
        return f"{self.setting}/{self.name}"

    @property
    def model(self) -> str:
        """The name without the equation of its adaptation."""
        return self.name.partition("_eq")[0]

    @property
    def one_pass(self) -> str:
        """Of an exact mixture the name of the static one of the same models; else its own name."""
        return self.name.removesuffix(EXACT)

    @property
    def kind(self) -> str:
        """The setting without a size."""
        return self.setting.partition("_")[0]

    @property
    def size(self) -> float:
        """In per cent; 0 where the setting has none."""
        return float(self.setting.partition("_")[2] or 0)

    @property
    def order(self) -> tuple[int, float, str, str]:
        """To sort by: settings as in the table above, sizes by number, exact mixtures after static."""
        return _ORDER.index(self.kind), self.size, self.one_pass, self.name


def in_order(systems: Iterable[System]) -> list[System]:
    """Systems as tables have them."""
    return sorted(systems, key=lambda system: system.order)


def setting_of(kind: str, size: float) -> str:
    """The setting of an adaptation text's size.

    >>> setting_of("adapt", 12.0), setting_of("direct", 2.5)
    ('adapt_12', 'direct_2.5')
    """
    return f"{kind}_{size:g}"


@dataclass(frozen=True)
class TextPart:
    """A row of the table of texts.

    Attributes:
        name: ``background``, ``adapt_<percent>``, ``dev``, ``test``, ...
        percent: its words by those of the background, of adaptation text; else ``None``.
        minutes: of its speech, ``None`` where there is none.
        utterances, spoken, users, unique_words, words: counts.
        names: class -> mentions, and how many of them differ.
        heard: users of adaptation text whose speech is in train.
    """

    name: str
    percent: float | None
    minutes: float | None
    utterances: int
    spoken: int
    users: int
    unique_words: int
    words: int
    names: Mapping[str, tuple[int, int]]
    heard: int


@dataclass(frozen=True)
class Perplexities:
    """A file of verb ``perplexity``.

    Attributes:
        treatment: of sentence ends and unknown words, in words.
        ppl: of each system.
        with_oov: the same with P(<unk>); ``None`` where a model has none.
        words, sentences, oov: of the text, the same for all systems.
    """

    treatment: str
    ppl: Mapping[System, float]
    with_oov: Mapping[System, float | None]
    words: int
    sentences: int
    oov: int


@dataclass(frozen=True)
class Measured:
    """A system on all parts of the role test together.

    Attributes:
        score: as it was read.
        result: all its parts as one.
        slots: (part, id) of an utterance -> its errors, of
            :func:`privasr_k2.scoring.matched_pairs.errors_by_slot`.
    """

    score: Score
    result: PartScore
    slots: Mapping[tuple[str, str], Sequence[int]]


def read_texts(folder: Path) -> list[TextPart]:
    """The ``about.json`` of ``split_text``: its parts in their order.

    Raises:
        DataError: something else.
    """
    path = folder / TEXTS_FILE
    content = read_json(path)
    try:
        sizes = content["sizes"]
        return [
            TextPart(
                name=name,
                percent=sizes[name]["percent"] if name in sizes else None,
                minutes=values["minutes"],
                utterances=int(values["utterances"]),
                spoken=int(values["spoken_utterances"]),
                users=int(values["users"]),
                unique_words=int(values["unique_words"]),
                words=int(values["words"]),
                names={c: (int(n["mentions"]), int(n["unique"])) for c, n in values["entities"].items()},
                heard=len(sizes[name]["users_with_speech_in_train"]) if name in sizes else 0,
            )
            for name, values in content["parts"].items()
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(path, "what split_text writes", repr(error), "split the text again") from error


def read_perplexities(path: Path) -> Perplexities:
    """The figures of all models on one text.

    Raises:
        DataError: something else, a model of no setting or given twice, or models on other texts.
    """
    content = read_json(path)
    ppl: dict[System, float] = {}
    with_oov: dict[System, float | None] = {}
    texts: dict[tuple[int, int, int], str] = {}
    try:
        treatment = str(content["treatment"])
        for record in content["lms"]:
            system = system_of_lm(record["lm"], path)
            if system in ppl:
                raise DataError(path, "every model once", f"{system} twice", "name it once")
            ppl[system], with_oov[system] = float(record["ppl"]), record["ppl_with_oov"]
            texts[int(record["words"]), int(record["sentences"]), int(record["oov"])] = record["lm"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(path, "what perplexity writes", repr(error), "compute it again") from error
    if len(texts) != 1:
        found = " and ".join(texts.values()) or "no model"
        raise DataError(path, "models on one text", found, "give all of them to one call of perplexity")
    [(words, sentences, oov)] = texts
    return Perplexities(treatment, ppl, with_oov, words, sentences, oov)


def system_of_lm(lm: str, place: Path) -> System:
    """The system of a model's path.

    Raises:
        DataError: not ``<setting>/lm/<system>...``.

    >>> str(system_of_lm("exp/classlm/adapt_12/lm/M1_eq1.arpa.gz", Path("perplexity.json")))
    'adapt_12/M1_eq1'
    """
    parts = Path(lm).parts
    if len(parts) < 3 or parts[-2] != "lm" or not _SETTING.fullmatch(parts[-3]):
        raise DataError(place, f"<setting>/lm/<system>, a setting of {_SETTINGS}", lm, "move the model there")
    return System(parts[-3], parts[-1].partition(".")[0])


def name_in_setting(path: Path) -> str:
    """A short name for a file: its setting and what follows, or its own name; without suffixes.

    >>> name_in_setting(Path("exp/classlm/adapt_12/lm/M1_eq1.json")), name_in_setting(Path("a/b.json"))
    ('adapt_12/M1_eq1', 'b')
    """
    parts = (*path.parts[:-1], path.name.partition(".")[0])
    places = [i for i, part in enumerate(parts) if _SETTING.fullmatch(part)]
    return "/".join(part for part in parts[places[-1] :] if part != "lm") if places else parts[-1]


def read_systems(folders: Iterable[Path]) -> dict[System, Measured]:
    """The error rates on test; those of dev are passed over, since weights were chosen there.

    Raises:
        DataError: a folder of no setting, given twice, of another role, scored with other options, or with
            other utterances or references than the first one.
    """
    found: dict[System, Measured] = {}
    first: tuple[Score, Mapping[str, PartWords]] | None = None
    for folder in folders:
        score = read_score(folder)
        setting = folder.resolve().parent.parent.name
        if not _SETTING.fullmatch(setting):
            raise DataError(folder, f"<setting>/<system>/score_<role>, a setting of {_SETTINGS}", setting,
                            "move it there")  # fmt: skip
        if score.role == "dev":
            continue
        system = System(setting, score.system)
        if score.role != TEST:
            raise DataError(folder, "the role test", score.role, "name folders of test")
        if system in found:
            raise DataError(folder, "every system once", f"{system} twice", "name it once")
        words = read_scored_words(folder)
        first = first or (score, words)
        _check_alike(score, words, *first)
        slots = {
            (part, name): bytes(min(count, 255) for count in errors_by_slot(align(ref, hyp)))
            for part, of_part in words.items()
            for name, (ref, hyp) in of_part.items()
        }
        found[system] = Measured(score, pooled(score), slots)
    return found


def pooled(score: Score) -> PartScore:
    """All parts as one; intervals are drawn anew where there are several."""
    if len(score.parts) == 1:
        return next(iter(score.parts.values()))
    name, options, parts = "+".join(score.parts), score.options, list(score.parts.values())
    speakers: dict[str, ErrorCounts] = {}
    for part in parts:
        for speaker, counts in part.speakers.items():
            speakers[speaker] = speakers.get(speaker, ErrorCounts()) + counts
    speakers = dict(sorted(speakers.items()))
    return PartScore(
        utterances=sum(part.utterances for part in parts),
        speakers=speakers,
        interval=interval_over_speakers(
            list(speakers.values()),
            randomness.stream(options.seed, "score", name),
            num_replicates=options.num_replicates,
            confidence=options.confidence,
        ),
        no_path=tuple(one for part in parts for one in part.no_path),
        oov=None if any(part.oov is None for part in parts) else sum(part.oov or 0 for part in parts),
        ref_words=sum(part.ref_words for part in parts),
        entities=_pooled_entities(name, [part.entities for part in parts if part.entities], score),
    )


def _pooled_entities(name: str, parts: Sequence[EntityScore], score: Score) -> EntityScore | None:
    if not parts:
        return None
    names = sorted({label for part in parts for label in part.classes})
    people = sorted({speaker for part in parts for speaker in part.speakers})

    def of(speaker: str, label: str) -> EntityCounts:
        counts = (part.speakers.get(speaker, {}).get(label, EntityCounts()) for part in parts)
        return sum(counts, EntityCounts())

    classes = {
        label: sum((part.classes.get(label, EntityCounts()) for part in parts), EntityCounts())
        for label in names
    }
    speakers = {
        speaker: {
            label: of(speaker, label)
            for label in (ALL, *names)
            if label == ALL or of(speaker, label) != EntityCounts()
        }
        for speaker in people
    }
    merged = EntityScore(sum(part.utterances for part in parts), classes, speakers)
    return with_recall_intervals(name, merged, score.options)


def _check_alike(score: Score, words: Mapping[str, Any], other: Score, theirs: Mapping[str, Any]) -> None:
    if (score.unit, list(score.parts), score.options) != (other.unit, list(other.parts), other.options):
        expected = f"the unit, parts and options of {other.place}"
        raise DataError(score.place, expected, "others", "score all systems alike")
    for part in score.parts:
        check_same_references(score, words.get(part, {}), other, theirs.get(part, {}), part)
