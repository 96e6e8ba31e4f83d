"""What all releases about a person come to, whatever their units: what a limit is held against.

A release for one unit counts for others, too:

- for a *person* who is several units as for a group of them (:mod:`privasr_k2.privacy.groups`);
- for a *finer* unit inside as for two of its own: without an utterance, say, a speaker's data are
  replaced, which is one removal and one addition.

Releases that hide names alone (sanitized text) count among each other, and those of everything a
person has said count for names as well; for the person they say nothing, and are named apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Epsilon, Relation, account
from privasr_k2.privacy.groups import for_group
from privasr_k2.privacy.spending import RANKS, Spending, is_related

PERSON = "person"
_SPLIT = 0.5  # share of delta for the releases that replace, where both relations are composed


@dataclass(frozen=True)
class Spent:
    """A release, and keyed digests of the people behind it; ``None`` where they are not known."""

    spending: Spending
    people: frozenset[str] | None


@dataclass(frozen=True)
class Total:
    """Composition of all releases about the same people.

    Attributes:
        level: ``person``, or the finest unit of these releases.
        relation: what is added, removed or replaced: one of that level.
        epsilon: of all of them together.
        releases: how many count at that level.
    """

    level: str
    relation: Relation
    epsilon: Epsilon
    releases: int


def are_related(one: Spent, other: Spent) -> bool:
    """Whether two releases may be about the same people: by their people, else by their names."""
    if one.people is not None and other.people is not None:
        return not one.people.isdisjoint(other.people)
    return is_related(one.spending.data, other.spending.data)


def totals(new: Spent, before: Sequence[Spent], *, delta: float) -> list[Total]:
    """The largest totals over the people of ``new``: for a person, and for the finest unit.

    Args:
        new: the release in question.
        before: all others of the ledger; those about other people do not count.
        delta: of every total.
    """
    candidates = [
        Total(level, relation, epsilon, len(costs))
        for group in _groups(new, before)
        for level, costs in _levels(group)
        for relation, epsilon in [_composed(costs, delta)]
    ]
    best: dict[bool, Total] = {}
    for total in candidates:
        known = best.get(total.level == PERSON)
        if known is None or total.epsilon.value > known.epsilon.value:
            best[total.level == PERSON] = total
    return [best[key] for key in sorted(best, reverse=True)]


def _groups(new: Spent, before: Sequence[Spent]) -> list[list[Spending]]:
    """The releases that some person of ``new`` is in; a group within another is left out."""
    related = [spent for spent in before if are_related(spent, new)]
    if not new.spending.hides_names_alone:
        related = [spent for spent in related if not spent.spending.hides_names_alone]
    if new.people is None:
        keys = {frozenset(range(len(related)))}
    else:
        keys = {
            frozenset(
                place
                for place, spent in enumerate(related)
                if spent.people is None or person in spent.people
            )
            for person in new.people
        } or {frozenset()}
    largest = [key for key in keys if not any(key < other for other in keys)]
    return [[*(related[n].spending for n in sorted(key)), new.spending] for key in largest]


def _levels(group: Sequence[Spending]) -> list[tuple[str, list[tuple[Relation, events.Event]]]]:
    finest = min(reversed(group), key=lambda spending: RANKS[spending.unit]).unit
    of_unit = [
        (spending.relation, _inside(spending, finest))
        for spending in group
        if spending.unit == finest or RANKS[spending.unit] > RANKS[finest]
    ]
    of_person = [(spending.relation, spending.for_person) for spending in group]
    return [(PERSON, of_person), (finest, of_unit)]


def _inside(spending: Spending, unit: str) -> events.Event:
    """The event for a ``unit`` that is part of the release's."""
    whole = spending.unit == unit or spending.relation is Relation.REPLACE_ONE
    return spending.event if whole else for_group(spending.event, 2)


def _composed(
    costs: Iterable[tuple[Relation, events.Event]], delta: float
) -> tuple[Relation, Epsilon]:
    by_relation: dict[Relation, list[events.Event]] = {}
    for relation, event in costs:
        by_relation.setdefault(relation, []).append(event)
    if len(by_relation) == 1:
        [(relation, of_relation)] = by_relation.items()
        return relation, account(events.composed(*of_relation), relation, delta)
    relation = Relation.REPLACE_ONE
    both = events.composed(*(event for several in by_relation.values() for event in several))
    try:
        return relation, account(both, relation, delta)
    except PrivacyError:  # Poisson samples: no bound for replacing
        replaced = account(events.composed(*by_relation[relation]), relation, _SPLIT * delta)
        removed = events.composed(*by_relation[Relation.ADD_OR_REMOVE_ONE])
        value = replaced.value + _twice(removed, (1 - _SPLIT) * delta)
        return relation, Epsilon(delta, value, math.nan, None)


def _twice(event: events.Event, delta: float) -> float:
    """Epsilon for one removal and one addition: twice epsilon at (1 + e^epsilon) times delta."""
    inner = delta / 4
    while True:
        epsilon = account(event, Relation.ADD_OR_REMOVE_ONE, inner).value
        if math.isinf(epsilon) or (1 + math.exp(min(epsilon, 700))) * inner <= delta:
            return 2 * epsilon
        inner = min(inner / 2, 0.9 * delta / (1 + math.exp(min(epsilon, 700))))
        if inner < 1e-300:
            return math.inf
