"""Entities by name lists: the longest name that begins at a token."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from privasr_k2.text.entities import Entity
from privasr_k2.text.truecase import begins_sentence, has_case

_OUTSIDE = re.compile(r"^\W+|\W+$")
_POSSESSIVE = re.compile("['\u2019]s?$")
_PART_ENDS = re.compile(r"[,;:!?)\"]$")
# Share of a word that is written small from which on it is as easily no name, or hardly ever one.
_OFTEN_SMALL, _NEARLY_ALWAYS_SMALL = 1 / 3, 0.9


class Gazetteer:
    """Find names of lists.

    A name matches token by token, without marks around a token and a final possessive; it does not
    continue after ``, : ; ? !``. Of overlapping names the first is taken, then the longest.

    A name of one word needs a capital where texts have them. If cased text often writes it small,
    it needs one inside a sentence, or in text without capitals is no name; if nearly always, never
    is one.

    Args:
        names: class -> names. A name of several classes belongs to the first.
        ignore_case: whether to ignore capitals when a token is compared with a name.
        small: lower-case word -> share of its occurrences that cased text writes small.

    >>> names = {"PER": ["Ann", "Ann Reading", "May"], "LOC": ["Reading"]}
    >>> gazetteer = Gazetteer(names, ignore_case=True, small={"may": 0.8, "reading": 0.5})
    >>> gazetteer.tag(["May I call ann reading, in Reading?".split()])
    [(Entity(first=3, end=5, label='PER'), Entity(first=6, end=7, label='LOC'))]
    """

    def __init__(
        self, names: Mapping[str, Iterable[str]], *, ignore_case: bool, small: Mapping[str, float]
    ) -> None:
        self._ignore_case = ignore_case
        self._small = small
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
        """The entities of each text."""
        is_cased = has_case(texts)
        return [self._tag(tokens, is_cased) for tokens in texts]

    def _tag(self, tokens: Sequence[str], is_cased: bool) -> tuple[Entity, ...]:
        cores = [self._core(token) for token in tokens]
        entities: list[Entity] = []
        at = 0
        while at < len(tokens):
            entity = self._longest(tokens, cores, at, is_cased)
            if entity is not None:
                entities.append(entity)
            at = entity.end if entity is not None else at + 1
        return tuple(entities)

    def _longest(
        self, tokens: Sequence[str], cores: Sequence[str], first: int, is_cased: bool
    ) -> Entity | None:
        prefix: tuple[str, ...] = ()
        best: Entity | None = None
        for end in range(first + 1, len(tokens) + 1):
            # "Ann's" ends the name Ann; "McDonald's" may be a name, or the beginning of one.
            whole, bare = (*prefix, cores[end - 1]), (*prefix, _POSSESSIVE.sub("", cores[end - 1]))
            label = self._prefixes.get(whole) or self._prefixes.get(bare)
            alone = end == first + 1
            if label and not (alone and self._is_word(tokens, bare[0], first, is_cased)):
                best = Entity(first, end, label)
            if whole not in self._prefixes or _PART_ENDS.search(tokens[end - 1]):
                break
            prefix = whole
        return best

    def _is_word(self, tokens: Sequence[str], core: str, first: int, is_cased: bool) -> bool:
        """Whether a token is taken for a word, though it is a name of one word."""
        is_small = not _OUTSIDE.sub("", tokens[first])[:1].isupper()
        share = self._small.get(core.lower(), 0.0)
        if share >= _NEARLY_ALWAYS_SMALL or (is_cased and is_small):
            return True
        return share >= _OFTEN_SMALL and (is_small or begins_sentence(tokens, first))

    def _core(self, token: str) -> str:
        core = _OUTSIDE.sub("", token).replace("\u2019", "'")
        return core.lower() if self._ignore_case else core
