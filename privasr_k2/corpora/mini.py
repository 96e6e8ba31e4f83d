"""The synthetic corpus ``mini``: made-up users of a voice assistant."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from privasr_k2.constraints import Checked, Count, Natural, NotNegative, one_of
from privasr_k2.corpora import voices
from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.mini_names import KINDS, Name, public_list
from privasr_k2.corpora.mini_text import Sentence
from privasr_k2.corpora.mini_users import Habits, User
from privasr_k2.corpora.voices import SAMPLING_RATE
from privasr_k2.fileio import write_json, write_text
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.tagged_files import write_tagged

if TYPE_CHECKING:
    from lhotse import CutSet, MonoCut

_WRITTEN, _PUBLIC, _TAGGED = "written.txt", "public.txt", "written.jsonl"


@dataclass(frozen=True)
class PartSize(Checked):
    """A part: its share of the users, relative to the other shares, and utterances per user."""

    share: NotNegative
    utterances: Count


@dataclass(frozen=True)
class Parts(Checked):
    """The parts, disjoint in users. ``adapt`` and ``pool`` are absent where their share is 0."""

    train: PartSize
    adapt: PartSize
    dev: PartSize
    test: PartSize
    pool: PartSize

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("train", "dev", "test"):
            if name not in self.shares:
                raise ValueError(f"parts.{name}.share must be above 0, got 0")

    @property
    def shares(self) -> dict[str, float]:
        """Share of each part that is not 0."""
        shares = {field.name: getattr(self, field.name).share for field in fields(self)}
        return {part: share for part, share in shares.items() if share > 0}


@dataclass(frozen=True)
class NamesPerUser(Checked):
    """Number of names of each kind that a user knows."""

    PER: Annotated[int, Ge(2)]
    LOC: Annotated[int, Ge(2)]
    ORG: Annotated[int, Ge(2)]
    MISC: Annotated[int, Ge(2)]


@dataclass(frozen=True)
class MiniConfig(Checked):
    """Everything that determines the corpus; values are explained in ``conf/corpora.yaml#mini``.

    Attributes:
        users: at least one for each part.
        first_user: number of the first user. Other numbers give other users of the same seed.
        accents: out of :data:`privasr_k2.corpora.voices.ACCENTS`; none: all of them.
        public_factor: names on a public list over the most that any part can use.
        written: further sentences per user of train, text for language models.
        public_writers: people who are no users; each writes ``written`` sentences.
    """

    seed: int
    users: int
    first_user: Natural
    accents: list[Annotated[str, one_of(*voices.ACCENTS)]]
    public_factor: Annotated[float, Ge(1)]
    written: Natural
    public_writers: Natural
    parts: Parts
    names: NamesPerUser
    habits: Habits
    speech: voices.Ranges

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.users < (least := len(self.parts.shares)):
            raise ValueError(f"users must be at least {least}, one per part, got {self.users}")


def users_per_part(users: int, parts: Parts) -> dict[str, int]:
    """Number of users of each part: at least one, the rest by largest remainder."""
    shares = parts.shares
    rest = users - len(shares)
    exact = {part: rest * share / sum(shares.values()) for part, share in shares.items()}
    counts = {part: 1 + math.floor(value) for part, value in exact.items()}
    by_remainder = sorted(exact, key=lambda part: math.floor(exact[part]) - exact[part])
    for part in by_remainder[: users - sum(counts.values())]:
        counts[part] += 1
    return counts


def public_lists(settings: MiniConfig) -> dict[str, list[Name]]:
    """Kind -> public list, drawn from the seed and sizes alone."""
    most_users = max(users_per_part(settings.users, settings.parts).values())
    factor = settings.public_factor * most_users
    sizes = {kind: factor * getattr(settings.names, kind) for kind in KINDS}
    return {kind: public_list(kind, size, settings.seed) for kind, size in sizes.items()}


def write_texts(
    settings: MiniConfig, public: Mapping[str, list[Name]]
) -> dict[str, dict[str, list[Sentence]]]:
    """Part -> user -> the user's sentences in the order of time."""
    texts: dict[str, dict[str, list[Sentence]]] = {}
    for part, user in _users(settings, public):
        utterances = getattr(settings.parts, part).utterances
        texts.setdefault(part, {})[user.id] = list(user.sentences(utterances))
    return texts


def further_texts(settings: MiniConfig, public: Mapping[str, list[Name]]) -> list[Sentence]:
    """``settings.written`` sentences of each user of train, drawn after the spoken ones."""
    written: list[Sentence] = []
    for part, user in _users(settings, public):
        if part == "train":
            deque(user.sentences(settings.parts.train.utterances), maxlen=0)  # what was said
            written.extend(user.sentences(settings.written))
    return written


def public_texts(settings: MiniConfig, public: Mapping[str, list[Name]]) -> list[Sentence]:
    """``settings.written`` sentences of each public writer, with names of the public lists."""
    counts = {kind: getattr(settings.names, kind) for kind in KINDS}
    written: list[Sentence] = []
    for number in range(settings.public_writers):
        writer = User(f"writer{number:04d}", settings.seed, settings.habits, public, counts)
        written.extend(writer.sentences(settings.written, strangers=True))
    return written


def _users(settings: MiniConfig, public: Mapping[str, list[Name]]) -> Iterator[tuple[str, User]]:
    counts = {kind: getattr(settings.names, kind) for kind in KINDS}
    sizes = users_per_part(settings.users, settings.parts)
    of_users = [part for part, size in sizes.items() for _ in range(size)]
    for number, part in enumerate(of_users, start=settings.first_user):
        yield part, User(f"user{number:04d}", settings.seed, settings.habits, public, counts)


def read(given: CorpusInput) -> dict[str, CutSet]:
    """Make the corpus in ``given.out_dir``: audio, texts, ``public_lists/*.txt`` and ``mini.json``.

    ``given.config_files`` and ``given.options`` (dotted keys, ``parts.train.utterances``) make a
    :class:`MiniConfig`, which alone determines the texts.
    """
    from lhotse import CutSet

    settings = given.settings(MiniConfig)
    public = public_lists(settings)
    texts = write_texts(settings, public)
    drawn = voices.draw_voices(
        settings.first_user + settings.users, settings.seed, settings.accents
    )
    users = (user for part in texts.values() for user in part)
    voice_of = dict(zip(users, drawn[settings.first_user :]))
    sentences = {
        f"{user}-{number:04d}": (part, user, sentence)
        for part, users in texts.items()
        for user, said in users.items()
        for number, sentence in enumerate(said)
    }
    lines = [(id_, sentence.text, voice_of[user]) for id_, (_, user, sentence) in sentences.items()]
    jobs = voices.plan(lines, settings.speech, settings.seed)
    spoken = voices.speak(jobs, given.out_dir / "audio", given.num_jobs)
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
    cuts = [(sentences[file.id][0], _cut(file, *sentences[file.id])) for file in spoken]
    return {part: CutSet.from_cuts(cut for of, cut in cuts if of == part) for part in texts}


def _tagged(number: int, user: str, sentence: Sentence) -> TaggedText:
    """A written sentence. Marks stick to words, so that normalizing keeps their number."""
    entities, words = tuple(Entity(*e) for e in sentence.entities), tuple(_words(sentence.text))
    return TaggedText(f"written{number:06d}", words, entities, user, cased=sentence.text)


def _cut(spoken: voices.Spoken, part: str, user: str, sentence: Sentence) -> MonoCut:
    from lhotse import AudioSource, MonoCut, Recording, SupervisionSegment

    length, id_ = spoken.duration, spoken.id
    source = AudioSource(type="file", channels=[0], source=str(spoken.path))
    recording = Recording(id_, [source], SAMPLING_RATE, spoken.num_samples, length)
    said = dict(text=sentence.text, speaker=user, language="English")
    custom = {"cased": sentence.text, "entities": [list(entity) for entity in sentence.entities]}
    supervision = SupervisionSegment(id_, id_, 0.0, length, **said, custom=custom)
    about = dict(recording=recording, supervisions=[supervision])
    return MonoCut(id_, 0.0, length, 0, **about, custom={"part": part, "synthetic": True})


def lm_text(given: CorpusInput) -> list[Path]:
    """The texts written by users of train and by public writers."""
    return [path for name in (_WRITTEN, _PUBLIC) if (path := given.out_dir / name).is_file()]


def describe(
    texts: Mapping[str, Mapping[str, list[Sentence]]],
    further: Sequence[Sentence],
    by_others: Sequence[Sentence],
    public: Mapping[str, list[Name]],
    spoken: list[voices.Spoken],
) -> dict[str, Any]:
    """The content of ``mini.json``: counts of each part.

    ``new_words`` is the share of running words that no text for language models holds. Of different
    names, ``on_public_list`` is the share on the list and ``new`` the share that train lacks;
    ``None`` without names.
    """
    durations: Counter[str] = Counter()
    for file in spoken:
        durations[file.id.split("-")[0]] += file.duration
    train = [sentence for part in (*texts["train"].values(), further) for sentence in part]
    train_words, train_names = {*_running([*train, *by_others])}, _names(train)
    listed = {kind: {name.text for name in names} for kind, names in public.items()}
    parts = {}
    for part, users in texts.items():
        sentences = [sentence for of_user in users.values() for sentence in of_user]
        words, names = _running(sentences), _names(sentences)
        parts[part] = {
            "users": len(users),
            "utterances": len(sentences),
            "hours": round(sum(durations[user] for user in users) / 3600.0, 4),
            "words": len(words),
            "different_words": len(set(words)),
            "new_words": round(sum(word not in train_words for word in words) / len(words), 4),
            "names": {k: _name_counts(names[k], listed[k], {*train_names[k]}) for k in KINDS},
        }
    of_test = _names(sentence for of_user in texts["test"].values() for sentence in of_user)
    all_test = {(kind, name) for kind, mentioned in of_test.items() for name in mentioned}
    all_public = {(kind, name) for kind, names_ in listed.items() for name in names_}
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
    return {"sentences": len(sentences), "words": len(_running(sentences))}


def _words(text: str) -> list[str]:
    return CORPUS.normalize(text).split()


def _running(sentences: Iterable[Sentence]) -> list[str]:
    return [word for sentence in sentences for word in _words(sentence.text)]


def _names(sentences: Iterable[Sentence]) -> dict[str, list[str]]:
    mentioned: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for sentence in sentences:
        words = sentence.text.split()
        for first, end, kind in sentence.entities:
            mentioned[kind].append(" ".join(words[first:end]).rstrip(".,?"))
    return mentioned


def _name_counts(names: list[str], listed: set[str], of_train: set[str]) -> dict[str, Any]:
    different = set(names)
    return {
        "mentions": len(names),
        "different": len(different),
        "on_public_list": _share(different, listed),
        "new": _share(different, different - of_train),
    }


def _share(of: set[Any], inside: set[Any]) -> float | None:
    return round(len(of & inside) / len(of), 4) if of else None


CORPUS = Corpus(
    "mini",
    read,
    lm_text=lm_text,
    sampling_rate=SAMPLING_RATE,
    synthetic=True,
    license="made by a program of this project (Apache-2.0)",
)
