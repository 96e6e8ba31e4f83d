"""Sentences of the corpus ``mini``: a grammar of commands, expanded with each user's choices.

A template is text with alternatives ``[a|b|c]``; linked alternatives ``[1:a|b] ... [1:c|d]``, where
groups of one digit take the same one; ``[g:her|him]`` by the gender of the last person named;
``{room}``, an item of :data:`WORDS`, itself a template; and ``{PER} {LOC} {ORG} {MISC}``, a name.
Linked groups are what a trigram cannot learn and a model of sentences can.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from privasr_k2.corpora.mini_names import KINDS, Name
from privasr_k2.corpora.mini_words import COURTESIES, INTENTS, PREFIXES, WORDS

_ITEM = re.compile(r"\{(?P<slot>\w+)\}|\[(?:(?P<link>\w):)?(?P<choices>[^\[\]]*)\]")
_MAX_DEPTH = 6


@dataclass(frozen=True)
class Sentence:
    """A text as it is written, and its names: (first word, word after the last, kind)."""

    text: str
    entities: tuple[tuple[int, int, str], ...]


@dataclass
class _Draft:
    """A sentence in the making; names are kept by their places in the text."""

    text: str = ""
    names: list[tuple[int, int, str]] = field(default_factory=list)
    links: dict[str, int] = field(default_factory=dict)
    used: set[tuple[str, int]] = field(default_factory=set)


Choose = Callable[[str, int], int]
"""(name of the choice, number of alternatives) -> index."""
NameOf = Callable[[str], Name]
"""kind -> one of the user's names."""


def expand(template: str, key: str, choose: Choose, name_of: NameOf) -> Sentence:
    """A sentence from a template.

    Args:
        key: names the template, so that a user's taste in its alternatives is remembered.

    >>> template = "turn the {room} light [1:on|off], not [1:off|on]"
    >>> expand(template, "x", lambda what, count: 0, lambda kind: Name("")).text
    'Turn the kitchen light on, not off.'
    """
    draft = _Draft()
    _fill(template, key, choose, name_of, draft, 0)
    text = draft.text[:1].upper() + draft.text[1:]
    spans = ((text[:a].count(" "), text[:b].count(" ") + 1, kind) for a, b, kind in draft.names)
    return Sentence(text if text.endswith("?") else text + ".", tuple(spans))


def compose(intent: str, number: int, choose: Choose, name_of: NameOf) -> Sentence:
    """Template ``number`` of an intent, with the user's way of addressing the assistant."""
    template = INTENTS[intent][number]
    is_command = not template.endswith("?") and not template.startswith("*")
    prefixes = PREFIXES["command" if is_command else "question"]
    prefix = prefixes[choose("prefix" + str(len(prefixes)), len(prefixes))]
    courtesy = COURTESIES[choose("courtesy", len(COURTESIES))] if is_command else ""
    text = prefix + template.lstrip("*") + courtesy
    return expand(text, f"{intent}.{number}", choose, name_of)


def _fill(
    template: str, key: str, choose: Choose, name_of: NameOf, draft: _Draft, depth: int
) -> None:
    position = 0
    for number, item in enumerate(_ITEM.finditer(template)):
        draft.text += template[position : item.start()]
        position = item.end()
        slot, link = item["slot"], item["link"]
        if slot in KINDS:
            _add_name(slot, name_of(slot), draft)
            continue
        choices = WORDS[slot] if slot else tuple(item["choices"].split("|"))
        if slot:
            index = _choose_new(slot, len(choices), choose, draft)
        elif link is None:
            index = choose(f"{key}.{number}", len(choices))
        else:
            if link not in draft.links:
                draft.links[link] = choose(f"{key}.{link}", len(choices))
            index = draft.links[link]
        if depth >= _MAX_DEPTH:
            raise ValueError(f"template {key} nests deeper than {_MAX_DEPTH}")
        _fill(choices[index], f"{key}.{number}.{index}", choose, name_of, draft, depth + 1)
    draft.text += template[position:]


def _choose_new(slot: str, count: int, choose: Choose, draft: _Draft) -> int:
    """An item of a word list, if possible one that the sentence does not have yet."""
    for _ in range(10):
        index = choose(slot, count)
        if (slot, index) not in draft.used:
            break
    draft.used.add((slot, index))
    return index


def _add_name(kind: str, name: Name, draft: _Draft) -> None:
    start = len(draft.text)
    draft.text += name.text
    draft.names.append((start, len(draft.text), kind))
    if kind == "PER":
        draft.links["g"] = name.gender
