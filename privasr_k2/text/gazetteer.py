"""Entities by name lists: the longest name that begins at a token."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from privasr_k2.text.entities import Entity

_OUTSIDE = re.compile(r"^\W+|\W+$")
_POSSESSIVE = re.compile("['\u2019]s?$")
_PART_ENDS = re.compile(r"[,;:!?)\"]$")


class Gazetteer:
    """Find names of lists.

    A name matches tokens one by one; marks around a token and a possessive after the last one do not count,
    and no name goes on after a comma, colon, question or exclamation mark. Where names overlap the one that
    begins first is taken, and of those the longest.

    Args:
        names: class -> names, blank-parted words. A name of several classes is of the first that has it.
        ignore_case: whether capitals do not count.
        plain: words in lower case that are no names by themselves ("may", "rose"): as a name of one word they
            match only where the token begins with a capital and does not begin the text. Where the text has
            no capitals they never match.

    >>> names = {"PER": ["Ann", "Ann Reading", "May"], "LOC": ["Reading"]}
    >>> gazetteer = Gazetteer(names, ignore_case=True, plain={"may", "reading"})
    >>> gazetteer.tag(["May I call ann reading, in Reading?".split()])
    [(Entity(first=3, end=5, label='PER'), Entity(first=6, end=7, label='LOC'))]
    """

    def __init__(
        self, names: Mapping[str, Iterable[str]], *, ignore_case: bool, plain: Collection[str] = ()
    ) -> None:
        self.name = "gazetteer"
        self._ignore_case = ignore_case
        self._plain = frozenset(plain)
        # A token trie as its prefixes: prefix -> class, or None where a name only goes on.
        self._prefixes: dict[tuple[str, ...], str | None] = {}
        self.ambiguous = 0
        for label, of_class in names.items():
            for name in of_class:
                words = tuple(map(self._core, name.split()))
                for length in range(1, len(words)):
                    self._prefixes.setdefault(words[:length], None)
                known = self._prefixes.get(words)
                self.ambiguous += known not in (None, label)
                if words:
                    self._prefixes[words] = known or label

    def tag(self, texts: Sequence[Sequence[str]]) -> list[tuple[Entity, ...]]:
        """As :class:`privasr_k2.text.entities.Tagger`."""
        return [self._tag(tokens) for tokens in texts]

    def _tag(self, tokens: Sequence[str]) -> tuple[Entity, ...]:
        cores = [self._core(token) for token in tokens]
        found: list[Entity] = []
        at = 0
        while at < len(tokens):
            entity = self._longest(tokens, cores, at)
            if entity is not None:
                found.append(entity)
            at = entity.end if entity is not None else at + 1
        return tuple(found)

    def _longest(self, tokens: Sequence[str], cores: Sequence[str], first: int) -> Entity | None:
        prefix: tuple[str, ...] = ()
        best: Entity | None = None
        for end in range(first + 1, len(tokens) + 1):
            # "Ann's" ends the name Ann; "McDonald's" may be a name, or the beginning of one.
            whole, bare = (*prefix, cores[end - 1]), (*prefix, _POSSESSIVE.sub("", cores[end - 1]))
            label = self._prefixes.get(whole) or self._prefixes.get(bare)
            if label is not None and not (end == first + 1 and self._is_plain(tokens, bare[0], first)):
                best = Entity(first, end, label)
            if whole not in self._prefixes or _PART_ENDS.search(tokens[end - 1]):
                break
            prefix = whole
        return best

    def _is_plain(self, tokens: Sequence[str], core: str, first: int) -> bool:
        is_written_small = first == 0 or not _OUTSIDE.sub("", tokens[first])[:1].isupper()
        return is_written_small and core.lower() in self._plain

    def _core(self, token: str) -> str:
        core = _OUTSIDE.sub("", token).replace("\u2019", "'")
        return core.lower() if self._ignore_case else core
