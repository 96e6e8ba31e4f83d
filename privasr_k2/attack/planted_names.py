"""Canaries of names: real sentences in which another, drawn name is said [carlini2019].

A canary is a name of two words, drawn uniformly out of R candidates. It is said in place of a
person's annotated name in ``repeats`` sentences of the private text, and these are added to it. The
words of half of the canaries stand on the public lists, whose words may be kept. Those of the other
half stand on none: half of the names of persons is held out of the lists for them.

Sanitizing must not tell which candidate was drawn. What a tagger misses stays as it was said.

[carlini2019] N. Carlini et al., The secret sharer, USENIX Security 2019.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privasr_k2.constraints import Checked, Count, Natural, ShareBelowOne
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, read_json, write_json, write_text
from privasr_k2.privacy.audit.drawn_secrets import draw_canaries
from privasr_k2.randomness import derive_seed, stream
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.name_lists import NameList
from privasr_k2.text.tagged_files import write_tagged

GOLD, LISTS, FILE = "gold.jsonl.gz", "lists", "canaries.json"
WORDS_OF_A_NAME = 2
_FORMAT = "privasr_k2 name canaries 1"
_PERSON = "PER"
_MARKS = re.compile(r"^(\W*)(.*?)(\W*)$")
# Shorter words are initials, or words that are hardly ever names.
_LEAST_LETTERS = 3

Normalize = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True)
class NameCanaryConfig(Checked):
    """Section ``plant_names`` of ``conf/classlm.yaml``.

    Args:
        canaries: K names of each of the four kinds: on the lists or not, said once or often.
        candidates: R names that each might be; exposure is at most log2 of it.
        repeats: sentences with a name that is said often.
        most_words: of a sentence.
        held_out: share of the persons' names that stands on no list.
        seed: of all draws.
    """

    canaries: Count
    candidates: Count
    repeats: Count
    most_words: Count
    held_out: ShareBelowOne
    seed: Natural


@dataclass(frozen=True)
class NameCanary:
    """One name.

    Attributes:
        kind: ``listed_once``, ``listed_often``, ``unlisted_once`` or ``unlisted_often``.
        candidates: R names of two words; ``planted``: the number of the drawn one.
        places: text and first word of each mention.
    """

    kind: str
    candidates: tuple[tuple[str, ...], ...]
    planted: int
    places: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Planted:
    """The text with canaries, their secrets, and the lists without the words held out."""

    texts: list[TaggedText]
    canaries: list[NameCanary]
    lists: dict[str, tuple[str, ...]]


def plant_names(
    texts: Sequence[TaggedText],
    lists: Mapping[str, NameList],
    config: NameCanaryConfig,
    normalize: Normalize,
) -> Planted:
    """Add sentences with drawn names to annotated text.

    Args:
        texts: with gold entities and their written form.
        lists: class -> public names, ``PER`` among them.
        normalize: what makes words of the tokens of the written form.

    Raises:
        DataError: no list of persons, too few words on it or beside it, or fewer sentences with a
            person's name of two words than ``repeats``.
    """
    if _PERSON not in lists:
        raise DataError("--in-public-lists", "per.txt", "none", "give names of persons")
    kept, words = _hold_out(lists, config, normalize)
    carriers = [found for text in texts for found in _carriers(text, config.most_words, normalize)]
    if len(carriers) < config.repeats:
        expected = f"{config.repeats} sentences that name a person by two words"
        way_out = "set a smaller repeats, or give more annotated text"
        raise DataError("--in-text", expected, str(len(carriers)), way_out)
    planted, added = [], []
    for kind, repeats in kinds(config.repeats).items():
        drawn = draw_canaries(
            words[kind.startswith("listed")],
            canaries=config.canaries,
            candidates=config.candidates,
            secret_words=WORDS_OF_A_NAME,
            seed=derive_seed(config.seed, kind),
        )
        for number, canary in enumerate(drawn):
            name = canary.candidates[canary.planted]
            order = stream(config.seed, kind, number).permutation(len(carriers))[:repeats]
            said = [
                _said(carriers[place], name, f"canary_{kind}_{number}_{time}-0")
                for time, place in enumerate(order.tolist())
            ]
            places = tuple((text.id, first) for text, first in said)
            planted.append(NameCanary(kind, canary.candidates, canary.planted, places))
            added += [text for text, _ in said]
    wrong = [text.id for text in added if tuple(normalize(text.cased.split())) != text.words]
    if wrong:
        found = "others after normalization"
        raise DataError(wrong[0], "the words of a name", found, "say how text is normalized")
    return Planted([*texts, *added], planted, kept)


def kinds(repeats: int) -> dict[str, int]:
    """Kind of canaries -> how often each is said.

    >>> kinds(8)
    {'listed_once': 1, 'listed_often': 8, 'unlisted_once': 1, 'unlisted_often': 8}
    """
    return {
        f"{where}_{often}": times
        for where in ("listed", "unlisted")
        for often, times in (("once", 1), ("often", repeats))
    }


def _hold_out(
    lists: Mapping[str, NameList], config: NameCanaryConfig, normalize: Normalize
) -> tuple[dict[str, tuple[str, ...]], dict[bool, list[str]]]:
    """The lists without what is held out; and words of persons on them (True), and on none."""
    persons = lists[_PERSON].names
    order = stream(config.seed, "held out").permutation(len(persons))
    held = {persons[place] for place in order[: round(config.held_out * len(persons))]}
    kept = {label: of_class.names for label, of_class in lists.items()}
    kept[_PERSON] = tuple(name for name in persons if name not in held)
    if not kept[_PERSON]:
        raise DataError("held_out", "a name that stays on the list", "none", "set a smaller share")

    def change(text: str) -> str:
        return " ".join(normalize(text.split()))

    def name_words(names: Iterable[str]) -> set[str]:
        words = {word for name in names for word in change(name).split()}
        return {w for w in words if len(w) >= _LEAST_LETTERS and w.isascii() and w.isalpha()}

    listed = name_words(kept[_PERSON])
    unlisted = name_words(held) - {word for names in kept.values() for word in name_words(names)}
    return kept, {True: sorted(listed), False: sorted(unlisted)}


def _carriers(
    text: TaggedText, most_words: int, normalize: Normalize
) -> Iterator[tuple[TaggedText, int]]:
    """The text with the first word of a person's name of two words, where tokens are words."""
    tokens = text.cased.split()
    if not len(tokens) == len(text.words) <= most_words:
        return
    if tuple(word for token in tokens for word in normalize([token])) != text.words:
        return
    for first, end, label in text.entities or ():
        words = text.words[first:end]
        if label == _PERSON and len(words) == WORDS_OF_A_NAME and all(map(str.isalpha, words)):
            yield text, first


def _said(where: tuple[TaggedText, int], name: Sequence[str], id: str) -> tuple[TaggedText, int]:
    """The text with another name at this word; marks around its tokens stay."""
    carrier, first = where
    words, tokens = list(carrier.words), carrier.cased.split()
    for place, word in enumerate(name, start=first):
        before, _, behind = _MARKS.match(tokens[place]).groups()  # type: ignore[union-attr]
        words[place], tokens[place] = word, f"{before}{word.capitalize()}{behind}"
    cased = " ".join(tokens)
    return replace(carrier, id=id, words=tuple(words), cased=cased, place=""), first


def write_planted(planted: Planted, out: Path) -> None:
    """Write the folder ``out``: :data:`GOLD`, :data:`FILE`, and :data:`LISTS`."""
    with atomic_path(out) as folder:
        (folder / LISTS).mkdir(parents=True)
        for label, names in planted.lists.items():
            lines = "".join(f"{name}\n" for name in names)
            write_text(folder / LISTS / f"{label.lower()}.txt", lines)
        write_tagged(folder / GOLD, planted.texts)
        records: list[dict[str, Any]] = [
            {
                "kind": canary.kind,
                "planted": canary.planted,
                "places": [list(place) for place in canary.places],
                "candidates": [" ".join(name) for name in canary.candidates],
            }
            for canary in planted.canaries
        ]
        write_json(folder / FILE, {"format": _FORMAT, "canaries": records})


def read_canaries(folder: Path) -> list[NameCanary]:
    """The canaries of a folder of :func:`write_planted`.

    Raises:
        DataError: another file.
    """
    content = read_json(folder / FILE)
    if content.get("format") != _FORMAT:
        raise DataError(folder / FILE, _FORMAT, "another file", "give a folder of plant_canaries")
    return [
        NameCanary(
            of["kind"],
            tuple(tuple(name.split()) for name in of["candidates"]),
            int(of["planted"]),
            tuple((str(id), int(first)) for id, first in of["places"]),
        )
        for of in content["canaries"]
    ]


def vocabulary_of(
    texts: Iterable[TaggedText], canaries: Iterable[NameCanary], lists: Mapping[str, Sequence[str]]
) -> list[str]:
    """All words of text, candidates and lists, sorted: one vocabulary for all models."""
    words = {word for text in texts for word in text.words}
    words |= {w for canary in canaries for name in canary.candidates for w in name}
    return sorted(words.union(*lists.values()))
