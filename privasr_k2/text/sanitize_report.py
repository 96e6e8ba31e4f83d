"""Counts of replaced names for the owner of the text; no release covers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import guarantees, shown
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.name_lists import split_suffix

NOTE = (
    "For the owner of the text only: these counts were taken from it without noise, and no epsilon"
    " covers them. The text is sanitized, not private: names that were not found stay in it as they"
    " were said."
)


def entity_counts(
    texts: Sequence[TaggedText],
    sanitized: Sequence[TaggedText] | None,
    lists: Mapping[str, Sequence[str]] | None,
) -> dict[str, dict[str, int]]:
    """Class -> counts of entities and of their replacement.

    Args:
        texts: tagged.
        sanitized: after replacement, in any order and with any ids; ``None``: no replacement.
        lists: class -> words of its list, if there are lists.

    Returns:
        ``mentions``, ``words``, ``different_words``; with ``lists`` ``off_list_words``; with
        ``sanitized`` ``changed_words_at_least``. The latter compares all texts that differ in
        nothing but names with each other; it is exact where no two texts do.

    Raises:
        DataError: ``sanitized`` is not of these texts.

    >>> from privasr_k2.text.entities import Entity
    >>> text = TaggedText("u", ("call", "ann"), (Entity(1, 2, "PER"),))
    >>> entity_counts([text], [text], None)
    {'PER': {'mentions': 1, 'words': 1, 'different_words': 1, 'changed_words_at_least': 0}}
    """
    mentions: Counter[str] = Counter()
    words: Counter[str] = Counter()
    changed = None if sanitized is None else _changed(texts, sanitized)
    off_list: Counter[str] = Counter()
    different: dict[str, set[str]] = {}
    known = {label: frozenset(of_class) for label, of_class in (lists or {}).items()}
    for text in texts:
        for first, end, label in text.entities or ():
            cores = [split_suffix(word)[0] for word in text.words[first:end]]
            mentions[label] += 1
            words[label] += len(cores)
            different.setdefault(label, set()).update(cores)
            off_list[label] += sum(core not in known.get(label, ()) for core in cores)
    return {
        label: {
            "mentions": mentions[label],
            "words": words[label],
            "different_words": len(different[label]),
            **({"off_list_words": off_list[label]} if lists is not None else {}),
            **({"changed_words_at_least": changed[label]} if changed is not None else {}),
        }
        for label in sorted(mentions)
    }


_Kind = tuple[tuple[str, ...], tuple[Entity, ...]]


def _changed(texts: Sequence[TaggedText], sanitized: Sequence[TaggedText]) -> Counter[str]:
    """Class -> lower bound of changed words of names."""
    if len(texts) != len(sanitized):
        expected = f"{len(texts)} texts"
        raise DataError("sanitized text", expected, str(len(sanitized)), "sanitize again")
    by_kind: dict[_Kind, list[TaggedText]] = {}
    for text in sanitized:
        by_kind.setdefault(_kind(text), []).append(text)
    given: dict[_Kind, list[TaggedText]] = {}
    for text in texts:
        of_kind = given.setdefault(_kind(text), [])
        of_kind.append(text)
        if len(of_kind) > len(by_kind.get(_kind(text), ())):
            place = f"sanitized text of {text.id}"
            raise DataError(place, "the text with other names", "none", "sanitize again")
    changed: Counter[str] = Counter()
    for kind, before in given.items():
        for first, end, label in kind[1]:
            for at in range(first, end):
                old, new = (Counter(t.words[at] for t in of) for of in (before, by_kind[kind]))
                changed[label] += (old - new).total()
    return changed


def _kind(text: TaggedText) -> _Kind:
    """The text without its names, whose suffixes stay."""
    words = list(text.words)
    for first, end, _ in text.entities or ():
        words[first:end] = [split_suffix(word)[1] for word in words[first:end]]
    return tuple(words), text.entities or ()


def privacy_of(about: Mapping[str, Any], entries: Sequence[Entry]) -> dict[str, Any]:
    """The guarantee of a release.

    Args:
        about: of the sanitized text.
        entries: of its ``privacy.json``; the epsilon is that of the composition.

    Raises:
        DataError: no entry, or that of another release.
    """
    if not entries or entries[-1].release != about["release"]:
        expected, found = (
            f"the release {about['release']}",
            entries[-1].release if entries else "none",
        )
        raise DataError("privacy.json", expected, found, "give both of one stage")
    spent = entries[-1].spending
    [composed] = guarantees([spent])
    left_out = ("text", "method", "release")
    return {
        "relation": spent.relation.value,
        **{name: value for name, value in about.items() if name not in left_out},
        f"epsilon_per_{spent.unit}_at_delta_{spent.delta:g}": shown(composed.epsilon.value),
        "does_not_cover": list(spent.does_not_cover),
    }
