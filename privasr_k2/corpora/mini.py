"""The corpus ``mini``: a voice assistant with users that do not exist, made on the spot; all
synthetic.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from privasr_k2 import config
from privasr_k2.constraints import Checked, Count, Natural, NotNegative, one_of
from privasr_k2.corpora.base import GENERAL_OPTIONS, Corpus, CorpusInput
from privasr_k2.corpora.mini_names import KINDS, Name, public_list
from privasr_k2.corpora.mini_text import Sentence
from privasr_k2.corpora.mini_users import Habits, User
from privasr_k2.corpora.voices import (
    ACCENTS,
    SAMPLING_RATE,
    Ranges,
    Spoken,
    draw_voices,
    plan,
    speak,
)
from privasr_k2.fileio import write_json, write_text
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.tagged_files import write_tagged

if TYPE_CHECKING:
    from lhotse import CutSet, MonoCut

_WRITTEN, _PUBLIC, _TAGGED = "written.txt", "public.txt", "written.jsonl"


@dataclass(frozen=True)
class PartSize(Checked):
    """A part: its share of the users, relative to the other parts' shares, and utterances for each
    user.
    """

    share: NotNegative
    utterances: Count


@dataclass(frozen=True)
class Parts(Checked):
    """The parts. No user is in two of them; one with share 0 is not there, which adapt and pool may
    be.
    """

    train: PartSize
    adapt: PartSize
    dev: PartSize
    test: PartSize
    pool: PartSize

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("train", "dev", "test"):
            if getattr(self, name).share <= 0:
                raise ValueError(
                    f"parts.{name}.share must be above 0, got {getattr(self, name).share}"
                )

    @property
    def shares(self) -> dict[str, float]:
        """The parts that are there, and their shares."""
        found = {field.name: getattr(self, field.name).share for field in fields(self)}
        return {part: share for part, share in found.items() if share > 0}


@dataclass(frozen=True)
class NamesPerUser(Checked):
    """Number of names of each kind that a user knows."""

    PER: Annotated[int, Ge(2)]
    LOC: Annotated[int, Ge(2)]
    ORG: Annotated[int, Ge(2)]
    MISC: Annotated[int, Ge(2)]


@dataclass(frozen=True)
class MiniConfig(Checked):
    """All that decides what the corpus is; ``conf/corpora.yaml#mini`` says what the values mean.

    Attributes:
        seed: of everything.
        users: at least one for each part.
        first_user: number of the first of them, 0 or more. Corpora of one seed with other numbers
            have other users, with other voices and habits.
        accents: of the users, out of :data:`privasr_k2.corpora.voices.ACCENTS`; none: all of those.
        public_factor: names on a public list over the most that any part can use.
        written: sentences that each user of train wrote besides what was spoken: text for language
            models.
        public_writers: people who are no users; each wrote as many sentences, and names anybody on
            the lists.
        parts, names, habits, speech: see there.
    """

    seed: int
    users: int
    first_user: Natural
    accents: list[Annotated[str, one_of(*ACCENTS)]]
    public_factor: Annotated[float, Ge(1)]
    written: Natural
    public_writers: Natural
    parts: Parts
    names: NamesPerUser
    habits: Habits
    speech: Ranges

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.users < len(self.parts.shares):
            raise ValueError(
                f"users must be at least {len(self.parts.shares)}, one for each part, got"
                f" {self.users}"
            )


def users_per_part(users: int, parts: Parts) -> dict[str, int]:
    """Return the number of users of each part: at least one, the rest by largest remainder."""
    shares = parts.shares
    rest = users - len(shares)
    exact = {part: rest * share / sum(shares.values()) for part, share in shares.items()}
    counts = {part: 1 + math.floor(value) for part, value in exact.items()}
    by_remainder = sorted(exact, key=lambda part: math.floor(exact[part]) - exact[part])
    for part in by_remainder[: users - sum(counts.values())]:
        counts[part] += 1
    return counts


def public_lists(settings: MiniConfig) -> dict[str, list[Name]]:
    """Kind -> public list: drawn from the seed and sizes alone, before there are users."""
    most_users = max(users_per_part(settings.users, settings.parts).values())
    return {
        kind: public_list(
            kind, settings.public_factor * most_users * getattr(settings.names, kind), settings.seed
        )
        for kind in KINDS
    }


def write_texts(
    settings: MiniConfig, public: Mapping[str, list[Name]]
) -> dict[str, dict[str, list[Sentence]]]:
    """Part -> user -> what the user says, in the order of time."""
    texts: dict[str, dict[str, list[Sentence]]] = {}
    for part, user in _users(settings, public):
        utterances = getattr(settings.parts, part).utterances
        texts.setdefault(part, {})[user.id] = list(user.sentences(utterances))
    return texts


def further_texts(settings: MiniConfig, public: Mapping[str, list[Name]]) -> list[Sentence]:
    """Return ``settings.written`` sentences of each user of train, drawn after the spoken ones."""
    written: list[Sentence] = []
    for part, user in _users(settings, public):
        if part == "train":
            deque(user.sentences(settings.parts.train.utterances), maxlen=0)  # what was said
            written.extend(user.sentences(settings.written))
    return written


def public_texts(settings: MiniConfig, public: Mapping[str, list[Name]]) -> list[Sentence]:
    """Return ``settings.written`` sentences of each person who is not a user, with names of the
    lists.
    """
    counts = {kind: getattr(settings.names, kind) for kind in KINDS}
    writers = (
        User(f"writer{number:04d}", settings.seed, settings.habits, public, counts)
        for number in range(settings.public_writers)
    )
    return [
        sentence for one in writers for sentence in one.sentences(settings.written, strangers=True)
    ]


def _users(settings: MiniConfig, public: Mapping[str, list[Name]]) -> Iterator[tuple[str, User]]:
    counts = {kind: getattr(settings.names, kind) for kind in KINDS}
    sizes = users_per_part(settings.users, settings.parts)
    of_users = [part for part, size in sizes.items() for _ in range(size)]
    for number, part in enumerate(of_users, start=settings.first_user):
        yield part, User(f"user{number:04d}", settings.seed, settings.habits, public, counts)


def read(given: CorpusInput) -> dict[str, CutSet]:
    """Make the corpus in ``given.out_dir``: audio, text, ``public_lists/*.txt`` and ``mini.json``;
    and what users of train wrote, plain and with entities.

    ``given.config_files`` and ``given.options`` (dotted keys, as ``users`` or
    ``parts.train.utterances``) make a :class:`MiniConfig`. The texts depend on it alone; so do the
    bytes of audio on one machine.
    """
    from lhotse import CutSet

    overrides = [
        f"{key}={value}" for key, value in given.options.items() if key not in GENERAL_OPTIONS
    ]
    settings = config.load(MiniConfig, given.config_files, overrides)
    public = public_lists(settings)
    texts = write_texts(settings, public)
    drawn = draw_voices(settings.first_user + settings.users, settings.seed, settings.accents)
    voices = dict(
        zip((user for part in texts.values() for user in part), drawn[settings.first_user :])
    )
    sentences = {
        f"{user}-{number:04d}": (part, user, sentence)
        for part, users in texts.items()
        for user, said in users.items()
        for number, sentence in enumerate(said)
    }
    lines = [(id_, sentence.text, voices[user]) for id_, (_, user, sentence) in sentences.items()]
    spoken = speak(
        plan(lines, settings.speech, settings.seed), given.out_dir / "audio", given.num_jobs
    )
    for kind, names in public.items():
        path = given.out_dir / "public_lists" / f"{kind.lower()}.txt"
        write_text(path, "".join(name.text + "\n" for name in names))
    further = further_texts(settings, public)
    if further:
        write_text(given.out_dir / _WRITTEN, "".join(sentence.text + "\n" for sentence in further))
        writers = [user for user in texts["train"] for _ in range(settings.written)]
        write_tagged(given.out_dir / _TAGGED, map(_tagged, range(len(further)), writers, further))
    by_others = public_texts(settings, public)
    if by_others:
        write_text(given.out_dir / _PUBLIC, "".join(sentence.text + "\n" for sentence in by_others))
    write_json(given.out_dir / "mini.json", describe(texts, further, by_others, public, spoken))
    cuts = [(sentences[one.id][0], _cut(one, *sentences[one.id])) for one in spoken]
    return {part: CutSet.from_cuts(cut for of, cut in cuts if of == part) for part in texts}


def _tagged(number: int, user: str, sentence: Sentence) -> TaggedText:
    """A sentence that was written; marks stick to words, so that normalizing leaves their number as
    it is.
    """
    entities = tuple(Entity(*entity) for entity in sentence.entities)
    return TaggedText(
        f"written{number:06d}", tuple(_words(sentence.text)), entities, user, cased=sentence.text
    )


def _cut(spoken: Spoken, part: str, user: str, sentence: Sentence) -> MonoCut:
    from lhotse import AudioSource, MonoCut, Recording, SupervisionSegment

    recording = Recording(
        id=spoken.id,
        sources=[AudioSource(type="file", channels=[0], source=str(spoken.path))],
        sampling_rate=SAMPLING_RATE,
        num_samples=spoken.num_samples,
        duration=spoken.duration,
    )
    supervision = SupervisionSegment(
        id=spoken.id,
        recording_id=spoken.id,
        start=0.0,
        duration=spoken.duration,
        text=sentence.text,
        speaker=user,
        language="English",
        custom={"cased": sentence.text, "entities": [list(entity) for entity in sentence.entities]},
    )
    return MonoCut(
        id=spoken.id,
        start=0.0,
        duration=spoken.duration,
        channel=0,
        recording=recording,
        supervisions=[supervision],
        custom={"part": part, "synthetic": True},
    )


def lm_text(given: CorpusInput) -> list[Path]:
    """Return the texts that users of train and other people wrote."""
    return [path for name in (_WRITTEN, _PUBLIC) if (path := given.out_dir / name).is_file()]


def describe(
    texts: Mapping[str, Mapping[str, list[Sentence]]],
    further: Sequence[Sentence],
    by_others: Sequence[Sentence],
    public: Mapping[str, list[Name]],
    spoken: list[Spoken],
) -> dict[str, Any]:
    """Return the corpus's counts as plain values, for ``mini.json``.

    For each part: users, utterances, hours, words, different words; share of running words that
    neither the speech of train nor what was written holds (``new_words``); for each kind of name
    mentions, different names, and of the different names the shares that are on the public list
    (``on_public_list``) and that train does not use (``new``); ``None`` where there are no names.
    """
    durations = {one.id.split("-")[0]: 0.0 for one in spoken}
    for one in spoken:
        durations[one.id.split("-")[0]] += one.duration
    train = {**texts["train"], "": further}
    texts_of_lms = [*train.values(), by_others]
    train_words = {
        word for said in texts_of_lms for sentence in said for word in _words(sentence.text)
    }
    train_names = _names(train)
    parts = {}
    for part, users in texts.items():
        words = [
            word for said in users.values() for sentence in said for word in _words(sentence.text)
        ]
        names = _names(users)
        parts[part] = {
            "users": len(users),
            "utterances": sum(len(said) for said in users.values()),
            "hours": round(sum(durations[user] for user in users) / 3600.0, 4),
            "words": len(words),
            "different_words": len(set(words)),
            "new_words": round(sum(word not in train_words for word in words) / len(words), 4),
            "names": {
                kind: {
                    "mentions": len(names[kind]),
                    "different": len(set(names[kind])),
                    "on_public_list": _share(
                        set(names[kind]), {name.text for name in public[kind]}
                    ),
                    "new": _share(set(names[kind]), set(names[kind]) - set(train_names[kind])),
                }
                for kind in KINDS
            },
        }
    all_test = {
        (kind, name) for kind, mentioned in _names(texts["test"]).items() for name in mentioned
    }
    all_public = {(kind, name.text) for kind, names in public.items() for name in names}
    return {
        "label": "synthetic",
        "speech": "espeak-ng voices with made-up noise and reverberation; no human speaks",
        "public_lists": {kind: len(names) for kind, names in public.items()},
        "written": _size(further),
        "public_text": _size(by_others),
        "test_names_on_public_lists": _share(all_test, all_public),
        "parts": parts,
    }


def _size(sentences: Sequence[Sentence]) -> dict[str, int]:
    return {"sentences": len(sentences), "words": sum(len(_words(s.text)) for s in sentences)}


def _words(text: str) -> list[str]:
    return CORPUS.normalize(text).split()


def _names(users: Mapping[str, Sequence[Sentence]]) -> dict[str, list[str]]:
    mentioned: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for said in users.values():
        for sentence in said:
            words = sentence.text.split()
            for first, end, kind in sentence.entities:
                mentioned[kind].append(" ".join(words[first:end]).rstrip(".,?"))
    return mentioned


def _share(of: set[Any], inside: set[Any]) -> float | None:
    return round(len(of & inside) / len(of), 4) if of else None


CORPUS = Corpus(
    name="mini", read=read, lm_text=lm_text, sampling_rate=SAMPLING_RATE, synthetic=True
)
