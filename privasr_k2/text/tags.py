"""Tags: the symbol of a class in text, ``<PER>``, and text with tags in place of names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from privasr_k2.text.entities import Entity, TaggedText

_TAG = re.compile(r"<[A-Z][A-Z0-9_]*>")
_SPECIAL = frozenset({"<s>", "<unk>"})


def tag_of(class_name: str) -> str:
    """The symbol of a class in text and in the root model.

    >>> tag_of("PER")
    '<PER>'
    """
    return f"<{class_name}>"


def is_tag(word: str) -> bool:
    """Whether a word is the tag of a class; ``<UNK>`` and ``<S>`` are none.

    >>> [is_tag(word) for word in ("<PER>", "<unk>", "<UNK>", "</S>", "per")]
    [True, False, False, False, False]
    """
    return (
        word.startswith("<") and _TAG.fullmatch(word) is not None and word.lower() not in _SPECIAL
    )


def with_tags(text: TaggedText) -> TaggedText:
    """Every mention is one word, the tag of its class.

    >>> with_tags(TaggedText("u", ("call", "ann", "hill"), (Entity(1, 3, "PER"),))).words
    ('call', '<PER>')
    """
    return _instead(text, lambda entity: (tag_of(entity.label),))


def without_entities(text: TaggedText) -> TaggedText:
    """Every mention is left out.

    >>> without_entities(TaggedText("u", ("call", "ann", "hill"), (Entity(1, 3, "PER"),))).words
    ('call',)
    """
    return _instead(text, lambda entity: ())


def _instead(text: TaggedText, make: Callable[[Entity], tuple[str, ...]]) -> TaggedText:
    words: list[str] = []
    entities: list[Entity] = []
    done = 0
    for entity in text.entities or ():
        words += text.words[done : entity.first]
        tag = make(entity)
        if tag:
            entities.append(Entity(len(words), len(words) + len(tag), entity.label))
        words += tag
        done = entity.end
    return replace(text, words=(*words, *text.words[done:]), entities=tuple(entities), cased="")
