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
from pathlib import Path

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Epsilon, Relation, account
from privasr_k2.privacy.groups import for_group
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.people import PeopleFile
from privasr_k2.privacy.spending import RANKS, Spending, is_related, shown

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
        data: the names of their data.
        costs: of each release at that level, what it was stated for and its event.
    """

    level: str
    relation: Relation
    epsilon: Epsilon
    releases: int
    data: tuple[str, ...] = ()
    costs: tuple[tuple[Relation, events.Event], ...] = ()

    def line(self) -> str:
        """For people."""
        many = "1 release" if self.releases == 1 else f"{self.releases} releases"
        of = f"each {self.level} of {', '.join(self.data)}"
        epsilon = f"epsilon {shown(self.epsilon.value)} at delta {self.epsilon.delta:g}"
        return f"{of}: {epsilon} ({self.relation.value}), {many} together"


def spent_in(ledger: Path, entry: Entry) -> Spent:
    """An entry of a ledger with its people, whose digests lie beside the ledger.

    Raises:
        PrivacyError: the file of digests is missing or of others.
    """
    people = None
    if entry.people is not None:
        people = PeopleFile(ledger, entry.release).read(entry.people)
    return Spent(entry.spending, people)


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
    everything = [*before, new]
    return _worst(
        [[everything[n].spending for n in sorted(group)] for group in _groups(new, before)], delta
    )


def ledger_totals(entered: Sequence[Spent], *, delta: float | None = None) -> list[Total]:
    """The largest totals of each group of related releases of a ledger, as of :func:`totals`.

    Releases that hide names alone have their own totals behind the others, for their unit.

    Args:
        entered: all releases.
        delta: of every total; ``None``: the smallest of the group's.
    """
    found = []
    for related in _related(entered):
        for names in (False, True):
            own = [n for n in related if entered[n].spending.hides_names_alone == names]
            if not own:
                continue
            of_group = min(entered[n].spending.delta for n in related) if delta is None else delta
            groups = _largest(
                frozenset(related[place] for place in group)
                for n in own
                for group in _groups_of(n, related, entered)
            )
            worst = _worst([[entered[n].spending for n in sorted(group)] for group in groups],
                           of_group)  # fmt: skip
            found += [total for total in worst if not names or total.level != PERSON]
    return found


def recomputed(total: Total) -> float:
    """Epsilon of a total, from the costs of its releases anew."""
    return _composed(total.costs, total.epsilon.delta)[1].value


def _groups_of(n: int, related: Sequence[int], entered: Sequence[Spent]) -> list[frozenset[int]]:
    """As :func:`_groups` for release ``n`` and all others, in places of ``related``."""
    places = [place for place, other in enumerate(related) if other != n]
    back = [*places, related.index(n)]
    before = [entered[related[place]] for place in places]
    return [frozenset(back[m] for m in group) for group in _groups(entered[n], before)]


def _related(entered: Sequence[Spent]) -> list[list[int]]:
    """Numbers of the releases, those that are related over any others in one list."""
    groups: list[list[int]] = []
    for n, spent in enumerate(entered):
        near = [group for group in groups if any(are_related(spent, entered[m]) for m in group)]
        groups = [group for group in groups if group not in near]
        groups.append(sorted([n, *(m for group in near for m in group)]))
    return sorted(groups)


def _largest(groups: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Those that are not within another one, each once."""
    all_groups = dict.fromkeys(groups)
    return [key for key in all_groups if not any(key < other for other in all_groups)]


def _worst(groups: Iterable[Sequence[Spending]], delta: float) -> list[Total]:
    best: dict[bool, Total] = {}
    for group in groups:
        for level, costs in _levels(group):
            relation, epsilon = _composed(costs, delta)
            known = best.get(level == PERSON)
            if known is None or epsilon.value > known.epsilon.value:
                data = tuple(dict.fromkeys(spending.data for spending in group))
                best[level == PERSON] = Total(
                    level, relation, epsilon, len(costs), data, tuple(costs)
                )
    return [best[key] for key in sorted(best, reverse=True)]


def _groups(new: Spent, before: Sequence[Spent]) -> list[frozenset[int]]:
    """The releases that some person of ``new`` is in, by their places; ``new`` is the last one.

    A group within another one is left out.
    """
    related = [n for n, spent in enumerate(before) if are_related(spent, new)]
    if not new.spending.hides_names_alone:
        related = [n for n in related if not before[n].spending.hides_names_alone]
    if new.people is None:
        return [frozenset([*related, len(before)])]
    return _largest(
        frozenset([
            *(n for n in related if (of := before[n].people) is None or person in of),
            len(before),
        ])
        for person in new.people or [""]
    )  # fmt: skip


def _levels(group: Sequence[Spending]) -> list[tuple[str, list[tuple[Relation, events.Event]]]]:
    rank = min(RANKS[spending.unit] for spending in group)
    finest = dict.fromkeys(s.unit for s in reversed(group) if RANKS[s.unit] == rank)
    of_person = [(spending.relation, spending.for_person) for spending in group]
    of_units = [
        (
            unit,
            [
                (s.relation, _inside(s, unit))
                for s in group
                if s.unit == unit or RANKS[s.unit] > rank
            ],
        )
        for unit in finest  # no parts of each other
    ]
    return [(PERSON, of_person), *of_units]


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
