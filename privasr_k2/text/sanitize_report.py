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
    """Class -> what was found and done.

    Args:
        texts: tagged.
        sanitized: the same after replacement, with the same entities, in any order and with any
            ids;
            ``None``: not made, or made by tags or deletion.
        lists: class -> words of its list, if there are lists.

    Returns:
        ``mentions``, ``words``, ``different_words``; with ``lists`` ``off_list_words``, which are
        always replaced; with ``sanitized`` ``changed_words_at_least``: nobody knows which sanitized
        text was made of which, so texts are compared that differ in nothing but names, all of a
        kind together, and words at the same place that both have count as not changed. Exact where
        no two texts are of a kind.

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
    """Class -> how many words of names at least are others than before.

    Raises:
        DataError: ``sanitized`` is not of these texts, or its other words differ: naming the first.
    """
    if len(texts) != len(sanitized):
        raise DataError(
            "sanitized text", f"{len(texts)} texts", str(len(sanitized)), "sanitize again"
        )
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
                words = Counter(text.words[at] for text in before)
                changed[label] += (
                    words - Counter(text.words[at] for text in by_kind[kind])
                ).total()
    return changed


def _kind(text: TaggedText) -> _Kind:
    """The text without its names: of words inside entities only what is never replaced."""
    words = list(text.words)
    for first, end, _ in text.entities or ():
        words[first:end] = [split_suffix(word)[1] for word in words[first:end]]
    return tuple(words), text.entities or ()


def privacy_of(about: Mapping[str, Any], entries: Sequence[Entry]) -> dict[str, Any]:
    """The guarantee of a release.

    Args:
        about: of the sanitized text.
        entries: of its ``privacy.json``; the epsilon at their delta is that of the composition.

    Raises:
        DataError: no entry, or that of another release.
    """
    if not entries or entries[-1].release != about["release"]:
        found = entries[-1].release if entries else "none"
        raise DataError(
            "privacy.json", f"the release {about['release']}", found, "give both of one stage"
        )
    spent = entries[-1].spending
    [composed] = guarantees([spent])
    left_out = ("text", "method", "release")
    return {
        "relation": spent.relation.value,
        **{name: value for name, value in about.items() if name not in left_out},
        f"epsilon_per_{spent.unit}_at_delta_{spent.delta:g}": shown(composed.epsilon.value),
        "does_not_cover": list(spent.does_not_cover),
    }
