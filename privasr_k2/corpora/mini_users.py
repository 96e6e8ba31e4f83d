"""The users of the corpus ``mini``: the names they know and their habits of speech."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Interval

from privasr_k2.constraints import Checked, NotNegative, Share
from privasr_k2.corpora.mini_names import KINDS, Name, own_name, zipf_index
from privasr_k2.corpora.mini_text import Sentence, compose
from privasr_k2.corpora.mini_words import INTENTS, WORDS
from privasr_k2.errors import ConfigError
from privasr_k2.randomness import stream

_MAX_TRIES = 50  # to say something that was not said before


@dataclass(frozen=True)
class Habits(Checked):
    """Strength of the differences between users.

    Attributes:
        habit: exponent of the Zipf distribution over a user's alternatives and names; 0: uniform.
        popularity: exponent of the Zipf distribution over names of the public lists.
        coverage: share of a user's names that are on the public lists.
        intents: number of kinds of request.
        words: number of items used of each word list, the first ones.
    """

    habit: NotNegative
    popularity: NotNegative
    coverage: Share
    intents: Annotated[int, Interval(ge=1, le=len(INTENTS))]
    words: Annotated[int, Ge(2)]


class User:
    """One user, who depends on ``seed`` and ``id`` alone, not on other users.

    Args:
        public: kind -> public list.
        counts: kind -> number of names that the user knows.
    """

    def __init__(
        self,
        id: str,
        seed: int,
        habits: Habits,
        public: Mapping[str, Sequence[Name]],
        counts: Mapping[str, int],
    ) -> None:
        self.id, self._seed, self._habits, self._public = id, seed, habits, public
        self._orders: dict[tuple[str, int], np.ndarray] = {}
        self._said: set[str] = set()
        self._generator = stream(seed, "user", id, "speech")
        self.names = {kind: self._get_to_know(kind, public[kind], counts[kind]) for kind in KINDS}

    def _get_to_know(self, kind: str, public: Sequence[Name], count: int) -> list[Name]:
        generator = stream(self._seed, "user", self.id, kind)
        known = frozenset(name.text for name in public)
        names: dict[str, Name] = {}
        offset, missing = generator.random(), 1.0 - self._habits.coverage
        for _ in range(1000 * count):
            if len(names) == count:
                break
            # Own names are spread evenly, so that each user's share is as near as can be.
            if int((len(names) + 1) * missing + offset) > int(len(names) * missing + offset):
                name = own_name(kind, known, generator)
            else:
                name = public[zipf_index(len(public), self._habits.popularity, generator)]
            names.setdefault(name.text, name)
        if len(names) < count:
            way_out = "make public_factor larger"
            raise ConfigError(f"names of {kind}", f"{count} for a user", str(len(names)), way_out)
        drawn = list(names.values())
        return [drawn[i] for i in generator.permutation(count)]

    def choose(self, what: str, count: int) -> int:
        """An index below ``count`` by the user's taste: Zipf's law in the user's own order."""
        if what in WORDS:
            count = min(count, self._habits.words)
        if (what, count) not in self._orders:
            taste = stream(self._seed, "user", self.id, "taste", what)
            self._orders[what, count] = taste.permutation(count)
        order = self._orders[what, count]
        return int(order[zipf_index(count, self._habits.habit, self._generator)])

    def sentences(self, count: int, strangers: bool = False) -> Iterator[Sentence]:
        """Yield the user's sentences in order of time; one repeats only where no new one comes up.

        Args:
            strangers: draw names from the public lists instead of those that the user knows.
        """
        for _ in range(count):
            for _ in range(_MAX_TRIES):
                sentence = self._say(strangers)
                if sentence.text not in self._said:
                    break
            self._said.add(sentence.text)
            yield sentence

    def _say(self, strangers: bool) -> Sentence:
        # dict order is that of the file: the first kinds of request are those of a small corpus.
        intent = list(INTENTS)[self.choose("intent", self._habits.intents)]
        number = self.choose(intent, len(INTENTS[intent]))
        used: set[str] = set()

        def name_of(kind: str) -> Name:
            for _ in range(_MAX_TRIES):
                name = self._mention(kind, strangers)
                if name.text not in used:  # "from Ashford to Ashford" makes no sense
                    break
            used.add(name.text)
            return name

        return compose(intent, number, self.choose, name_of)

    def _mention(self, kind: str, strangers: bool) -> Name:
        names, exponent = self.names[kind], self._habits.habit
        if strangers:
            names, exponent = self._public[kind], self._habits.popularity
        return names[zipf_index(len(names), exponent, self._generator)]
