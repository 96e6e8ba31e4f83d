"""Which systems of recipes ``pate`` and ``dpsgd`` are compared, and how it came out: MAPSSWE with Holm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from privasr_k2.scoring.align import align
from privasr_k2.scoring.comparisons import PartWords, check_same_references, holm
from privasr_k2.scoring.matched_pairs import MatchedPairs, compare_slots, errors_by_slot
from privasr_k2.scoring.pate_results import (
    CLEAN,
    DPSGD,
    GNMAX,
    LNMAX,
    PUBLIC,
    SELF_TRAINED,
    Name,
    System,
    parse_system,
)
from privasr_k2.scoring.results import Score, read_scored_words

#: Why two systems are compared, by what the first one is to beat.
AGAINST_PUBLIC = "the public model"
AGAINST_SELF_TRAINED = "the public model trained on its own guesses"
MECHANISM = "GNMax against LNMax"
AGAINST_DPSGD = "PATE against DP-SGD"
AGAINST_CLEAN = "noisy against clean votes"
ARCHITECTURE = "RNN-T against another architecture"
RNNT = "rnnt"


@dataclass(frozen=True)
class Compared:
    """One system against another on one part.

    Attributes:
        first, second: the systems.
        part: its name.
        why: one of the reasons above.
        rates: error rates of both, in per cent; ``None`` without reference words.
        test: MAPSSWE, of the first against the second.
        p_value: Holm's over all comparisons; ``None`` where the test has none.
    """

    first: Name
    second: Name
    part: str
    why: str
    rates: tuple[float | None, float | None]
    test: MatchedPairs
    p_value: float | None

    @property
    def change(self) -> float | None:
        """Relative change of the error rate, in per cent; ``None`` where the second makes no errors."""
        ours, theirs = self.rates
        return 100 * (ours / theirs - 1) if ours is not None and theirs else None

    @property
    def is_lower(self) -> bool:
        """Whether the first has the lower error rate."""
        ours, theirs = self.rates
        return ours is not None and theirs is not None and ours < theirs


def reason(first: Name, second: Name) -> str | None:
    """Why one system is compared with another; ``None``: it is not.

    >>> reason(Name("las", "gnmax_15_8"), Name("las", "dpsgd_8"))
    'PATE against DP-SGD'
    >>> reason(Name("rnnt", "gnmax_15_8"), Name("las", "dpsgd_8")) is None
    True
    """
    ours, theirs = (parse_system(name.system, Path(name.system)) for name in (first, second))
    if first.model != second.model:
        both = ours == theirs and ours.kind == GNMAX and first.model == RNNT
        return ARCHITECTURE if both else None
    if theirs.kind == PUBLIC and ours.kind != PUBLIC:
        return AGAINST_PUBLIC
    if ours.is_pate and theirs.kind == SELF_TRAINED:
        return AGAINST_SELF_TRAINED
    if (ours.kind, theirs.kind) == (GNMAX, LNMAX) and ours[1:] == theirs[1:]:
        return MECHANISM
    if ours.is_pate and theirs.kind == DPSGD and (ours.epsilon, ours.means) == (theirs.epsilon, theirs.means):
        return AGAINST_DPSGD
    if ours.is_pate and theirs == System(CLEAN, ours.teachers):
        return AGAINST_CLEAN
    return None


def compare_systems(scores: Mapping[Name, Score]) -> list[Compared]:
    """Test every pair of systems that has a :func:`reason`, in every part that both have.

    Raises:
        DataError: scores of other utterances or references than those they are compared with.
    """
    words = {name: read_scored_words(score.place) for name, score in scores.items()}
    # Each system is aligned once, however many others it is compared with.
    slots = {
        (name, part): {one: errors_by_slot(align(*pair)) for one, pair in of_part.items()}
        for name, parts in words.items()
        for part, of_part in parts.items()
    }
    found = [
        (first, second, part, why, _rates(scores, first, second, part), test)
        for first, second, why in _pairs(scores)
        for part in scores[first].parts
        if part in scores[second].parts
        for test in [_test(scores, words, slots, first, second, part)]
    ]
    adjusted = holm([test.p_value for *_, test in found])
    return [Compared(*one, p_value) for one, p_value in zip(found, adjusted, strict=True)]


def _pairs(scores: Mapping[Name, Score]) -> Iterator[tuple[Name, Name, str]]:
    for first, second in permutations(scores, 2):
        why = reason(first, second)
        if why is not None:
            yield first, second, why


def _rates(
    scores: Mapping[Name, Score], first: Name, second: Name, part: str
) -> tuple[float | None, float | None]:
    ours, theirs = (scores[name].parts[part].counts.percent for name in (first, second))
    return ours, theirs


def _test(
    scores: Mapping[Name, Score],
    words: Mapping[Name, Mapping[str, PartWords]],
    slots: Mapping[tuple[Name, str], Mapping[str, list[int]]],
    first: Name,
    second: Name,
    part: str,
) -> MatchedPairs:
    ours, theirs = words[first].get(part, {}), words[second].get(part, {})
    check_same_references(scores[first], ours, scores[second], theirs, part)
    slots_a, slots_b = slots[first, part], slots[second, part]
    return compare_slots((slots_a[name] for name in ours), (slots_b[name] for name in ours))
