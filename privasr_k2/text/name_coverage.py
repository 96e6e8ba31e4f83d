"""Words of names that a text shares with public lists and with the names of another text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from privasr_k2.text.entities import TaggedText
from privasr_k2.text.name_lists import split_suffix

ALL = "all"
"""All classes together."""


def name_coverage(
    texts: Iterable[TaggedText],
    background: Iterable[TaggedText],
    lists: Mapping[str, Iterable[str]],
) -> dict[str, dict[str, int]]:
    """Counts of the running words of names, for each class and :data:`ALL`.

    ``words``; ``on_lists``: on the list of any class; ``on_own_list``: on that of the class;
    ``in_names``: in a name of the background, of any class. Possessives are stripped.

    Args:
        background: with entities.
        lists: class -> words.

    >>> from privasr_k2.text.entities import Entity
    >>> text = TaggedText("u", ("ann's", "cat", "rex"), (Entity(0, 1, "PER"), Entity(2, 3, "MISC")))
    >>> other = TaggedText("v", ("ann",), (Entity(0, 1, "PER"),))
    >>> found = name_coverage([text], [other], {"PER": ["ann", "rex"]})
    >>> found["PER"], found["MISC"]["on_lists"], found["MISC"]["on_own_list"]
    ({'words': 1, 'on_lists': 1, 'on_own_list': 1, 'in_names': 1}, 1, 0)
    """
    listed = {label: frozenset(words) for label, words in lists.items()}
    anywhere = frozenset[str]().union(*listed.values())
    seen = {word for _, word in _name_words(background)}
    columns = ("words", "on_lists", "on_own_list", "in_names")
    by_class: dict[str, Counter[str]] = {}
    for (label, word), count in Counter(_name_words(texts)).items():
        counts = (True, word in anywhere, word in listed.get(label, ()), word in seen)
        for row in (label, ALL):
            numbers = {column: count * holds for column, holds in zip(columns, counts, strict=True)}
            by_class.setdefault(row, Counter()).update(numbers)
    return {
        label: {column: by_class[label][column] for column in columns}
        for label in sorted(by_class, key=lambda label: (label == ALL, label))
    }


def _name_words(texts: Iterable[TaggedText]) -> Iterable[tuple[str, str]]:
    """(class, word without a possessive) of every word of every name."""
    for text in texts:
        for first, end, label in text.entities or ():
            for word in text.words[first:end]:
                yield label, split_suffix(word)[0]
