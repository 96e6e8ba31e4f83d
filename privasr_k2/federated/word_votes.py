"""Votes of speakers for public words and bigrams: who may change what, the noise, its cost.

A speaker votes for at most ``max_words`` of the candidates that they have said, one vote each. The
candidates are public, so that every one of them has a count, 0 or more, whoever takes part. With
or without one speaker the counts c of all candidates differ by a vector d of at most ``max_words``
ones:

    |d|_inf = 1,  |d|_1 <= max_words,  |d|_2 <= sqrt(max_words).

Every count gets discrete Gaussian noise [canonne2020]. Noise is independent, and a speaker moves at
most ``max_words`` counts by 1: the cost is that of so many counts of sensitivity 1, which has a
privacy loss distribution. Words above a threshold are chosen from the noisy counts alone. That is
post-processing: no delta is spent on it, as the candidates do not depend on the private text.

Then bigrams of the released words (and of the sentence's ends) are voted on in the same way, at
most ``max_bigrams`` a speaker. Their candidates follow from what was released; composition with the
words is adaptive, and both share one noise.

[canonne2020] C. Canonne et al., The discrete Gaussian for differential privacy, NeurIPS 2020.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from privasr_k2.constraints import Checked, Count, Delta, Finite, Natural, NotNegative, one_of
from privasr_k2.data.manifests import cuts_path, load_cuts
from privasr_k2.errors import DataError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.calibration import noise_for
from privasr_k2.privacy.discrete import DiscreteGaussianNoise
from privasr_k2.privacy.spending import SETTINGS, Spending
from privasr_k2.randomness import NoiseStream
from privasr_k2.text.tagged_files import read_tagged

Texts = Mapping[str, Sequence[Sequence[str]]]
"""The sentences of each speaker."""
RELATION = Relation.ADD_OR_REMOVE_ONE


@dataclass(frozen=True)
class WordVotesConfig(Checked):
    """A release of words; see ``conf/wordvotes.yaml#vote_words``."""

    data: str
    max_words: Count
    max_bigrams: Natural
    choose: Annotated[str, one_of("most_said", "random")]
    threshold: NotNegative
    epsilon: Finite
    delta: Delta


@dataclass(frozen=True)
class WordVotes:
    """Noise, threshold and cost of a configuration. It reads no data.

    Attributes:
        config: its settings.
    """

    config: WordVotesConfig

    @property
    def votes(self) -> int:
        """The most counts that one speaker changes, each by 1."""
        return self.config.max_words + self.config.max_bigrams

    def _event(self, sigma: float) -> events.Event:
        return events.repeated(DiscreteGaussianNoise(sigma).event(1), self.votes)

    @cached_property
    def noise(self) -> DiscreteGaussianNoise:
        """The least noise that stays within epsilon and delta."""
        sigma = noise_for(
            self._event, epsilon=self.config.epsilon, delta=self.config.delta, relation=RELATION
        )
        return DiscreteGaussianNoise(sigma)

    @property
    def event(self) -> events.Event:
        """All that is released about a speaker."""
        return self._event(self.noise.sigma)

    @property
    def least(self) -> float:
        """What a noisy count must exceed, in votes."""
        return self.config.threshold * self.noise.sigma

    def spending(self, units: int, unit: str = "speaker") -> Spending:
        """The entry of the ledger, for so many speakers; ``unit="user"`` where they write."""
        config = self.config
        pairs = f" and {config.max_bigrams} of their bigrams" if config.max_bigrams else ""
        return Spending(
            data=config.data,
            released=f"votes of each {unit} for at most {config.max_words} words{pairs},"
            " discrete Gaussian noise",
            unit=unit,
            units=units,
            relation=RELATION,
            event=self.event,
            sampling="all units once",
            delta=config.delta,
            does_not_cover=(
                "the candidates: a list that was made without the private data",
                f"of each {unit}: the votes; nothing else that they said is used",
                f"how many {unit}s there are, and who is public instead, in the pool or in dev",
                SETTINGS,
            ),
        )


def speakers_texts(folder: Path) -> dict[str, list[list[str]]]:
    """The sentences of each speaker of the cuts of train in a folder.

    Raises:
        DataError: a cut without a speaker.
    """
    texts: dict[str, list[list[str]]] = {}
    for cut in load_cuts(folder, "train", lazy=True):
        said = cut.supervisions[0]
        if not said.speaker:
            way_out = "name the speakers: a guarantee is for each of them"
            raise DataError(cuts_path(folder, "train"), "a speaker", f"none of {cut.id}", way_out)
        texts.setdefault(str(said.speaker), []).append(said.text.split())
    return texts


def users_texts(files: Iterable[Path]) -> dict[str, list[list[str]]]:
    """The sentences of each user of tagged text (:mod:`privasr_k2.text.tagged_files`).

    Raises:
        DataError: a text without a user, or as :func:`privasr_k2.text.tagged_files.read_tagged`.
    """
    texts: dict[str, list[list[str]]] = {}
    for text in read_tagged(files):
        if not text.user:
            way_out = "votes need users: name them, or take a corpus that has them"
            raise DataError(text.place, "a user", f"none of {text.id}", way_out)
        texts.setdefault(text.user, []).append(list(text.words))
    return texts


def said_words(texts: Texts, words: Sequence[str]) -> dict[str, Counter[int]]:
    """For each speaker, how often they say each candidate, by its number.

    >>> said_words({"anna": [["b", "x"], ["b", "a"]]}, ["a", "b"])
    {'anna': Counter({1: 2, 0: 1})}
    """
    numbers = {word: number for number, word in enumerate(words)}
    return {
        speaker: Counter(numbers[w] for sentence in sentences for w in sentence if w in numbers)
        for speaker, sentences in texts.items()
    }


def said_bigrams(texts: Texts, words: Sequence[str]) -> dict[str, Counter[int]]:
    """As :func:`said_words` for bigrams: number of the first * (len(words) + 1) + of the second.

    Words have the numbers 1, 2, ...; 0 is a sentence's beginning as the first, its end as the
    second. Bigrams with other words are no candidates.

    >>> said_bigrams({"anna": [["b", "a"], ["b", "x"]]}, ["a", "b"])
    {'anna': Counter({2: 2, 7: 1, 3: 1})}
    """
    numbers = {word: number for number, word in enumerate(words, start=1)}
    size = len(words) + 1
    counts = {}
    for speaker, sentences in texts.items():
        found: Counter[int] = Counter()
        for sentence in sentences:
            path = [0, *(numbers.get(word, -1) for word in sentence), 0]
            known = ((a, b) for a, b in itertools.pairwise(path) if a >= 0 and b >= 0)
            found.update(a * size + b for a, b in known)
        counts[speaker] = found
    return counts


def count_votes(
    said: Mapping[str, Counter[int]],
    size: int,
    most: int,
    choose: str,
    stream: Callable[[str], NoiseStream],
) -> np.ndarray:
    """(size,) int64: how many speakers vote for each candidate. Private.

    A speaker votes for ``most`` of the candidates they said, or for all if there are fewer: those
    they said most often (``most_said``, ties drawn) or any (``random``). What others said does not
    matter, so one speaker changes at most ``most`` counts, by 1.

    Args:
        stream: of a speaker, a secret stream of their own for the draws.
    """
    counts = np.zeros(size, dtype=np.int64)
    for speaker in sorted(said):
        numbers = np.array(sorted(said[speaker]), dtype=np.int64)
        draws = stream(speaker).uniform(len(numbers))
        often = np.array([said[speaker][number] for number in numbers.tolist()])
        order = np.lexsort((draws, -often)) if choose == "most_said" else np.argsort(draws)
        counts[numbers[order[:most]]] += 1
    return counts
