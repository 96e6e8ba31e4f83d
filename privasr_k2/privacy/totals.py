"""What all releases about a person come to, whatever their units: what a limit is held against.

A release for one unit counts for others, too:

- for a *person* who is several units as for a group of them (:mod:`privasr_k2.privacy.groups`);
- for a *finer* unit inside as for two of its own: without an utterance, say, a speaker's data are
  replaced, which is one removal and one addition. Where the finer units are replaced themselves,
  so are the speaker's data, once.

Releases that hide names alone (sanitized text) count among each other, and those of everything a
person has said count for names as well; for the person they say nothing, and are named apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Epsilon, Relation, account, under
from privasr_k2.privacy.groups import for_group
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.people import PeopleFile
from privasr_k2.privacy.spending import (
    RANKS,
    WHOLE,
    Guarantee,
    Spending,
    guarantees,
    is_related,
    once,
)

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
        costs: of each of them at that level, what it is stated for and its event.
    """

    level: str
    relation: Relation
    epsilon: Epsilon
    releases: int
    costs: tuple[tuple[Relation, events.Event], ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class LedgerTotal:
    """The worst totals of related releases: what one person of them has lost at most.

    Attributes:
        data: names of the data, each once.
        totals: for a person, and for the finest unit.
        names_alone: whether only what is done to names counts: the totals are for a person's names.
    """

    data: tuple[str, ...]
    totals: tuple[Total, ...]
    names_alone: bool

    def hidden(self, level: str) -> str:
        """What a total of a level is about.

        >>> [LedgerTotal((), (), alone).hidden("utterance") for alone in (True, False)]
        ['names of one utterance', 'utterance']
        """
        return f"names of one {level}" if self.names_alone else level


def spent_of(ledger: Path, entries: Iterable[Entry]) -> list[Spent]:
    """Releases with the people behind them, whose digests lie beside the ledger.

    Raises:
        PrivacyError: digests that an entry names are missing or damaged.
    """
    return [
        Spent(
            entry.spending,
            None if entry.people is None else PeopleFile(ledger, entry.release).read(entry.people),
        )
        for entry in entries
    ]


def are_related(one: Spent, other: Spent) -> bool:
    """Whether two releases may be about the same people: by their people, else by their names."""
    if one.people is not None and other.people is not None:
        return not one.people.isdisjoint(other.people)
    return is_related(one.spending.data, other.spending.data)


def totals(new: Spent, before: Sequence[Spent]) -> list[Total]:
    """The largest totals over the people of ``new``: for a person, and for the finest unit.

    A release of all that people say counts for their names, too. So the totals of names count here,
    whichever of the releases came first.

    Args:
        new: the release in question.
        before: all others of the ledger; those about other people do not count.

    Returns:
        At the smallest delta of the releases that count.
    """
    spent, last = [*before, new], len(before)
    about = [n for n in range(last) if spent[n].spending.hides_names_alone]
    of_names = {group for n in about for group in _groups(spent, n) if last in group}
    groups = _largest(_groups(spent, last) | of_names)
    delta = min(spent[n].spending.delta for group in groups for n in group)
    return _worst(_all_levels(spent, groups), delta)


def ledger_totals(spent: Sequence[Spent], delta: float | None = None) -> list[LedgerTotal]:
    """The worst totals of each group of related releases of a whole ledger.

    Releases that hide names alone have totals of their own, after those of the same people.

    Args:
        spent: all releases (:func:`spent_of`).
        delta: of every total; ``None``: the smallest of its group's releases.

    >>> from privasr_k2.privacy.events import pure
    >>> counts = Spending("mini/train", "counts", "user", 48, Relation.ADD_OR_REMOVE_ONE,
    ...     pure(1.0), "all units in every round", 1e-5, ())
    >>> [total] = ledger_totals([Spent(counts, frozenset("ab")), Spent(counts, frozenset("bc"))])
    >>> [(level.level, round(level.epsilon.value, 4)) for level in total.totals]
    [('person', 2.0), ('user', 2.0)]
    """
    found = []
    for related in _components(spent):
        for names_alone in (False, True):
            news = [n for n in related if spent[n].spending.hides_names_alone is names_alone]
            if not news:
                continue
            groups = _largest({group for n in news for group in _groups(spent, n)})
            counted = sorted(set().union(*groups))
            at = min(spent[n].spending.delta for n in counted) if delta is None else delta
            levels = _all_levels(spent, groups)
            data = tuple(dict.fromkeys(spent[n].spending.data for n in counted))
            found.append(LedgerTotal(data, tuple(_worst(levels, at)), names_alone))
    return found


def joint_guarantee(spendings: Sequence[Spending]) -> Guarantee:
    """The one guarantee of several releases about the same people, at their smallest delta.

    Where units differ, it is for the finest of them, and ``person`` for a whole person. Where one
    of them hides names alone, it is for names (``names_alone``).

    Args:
        spendings: different releases; one that is given twice counts twice.

    Raises:
        PrivacyError: none, or releases about people who are not the same by their names of data.

    >>> from privasr_k2.privacy.events import pure
    >>> words = Spending("mini/train", "words", "speaker", 48, Relation.ADD_OR_REMOVE_ONE,
    ...     pure(1.0), "all units once", 1e-5, ())
    >>> joint = joint_guarantee([words, words])
    >>> joint.releases, round(joint.epsilon.value, 4)
    (2, 2.0)
    """
    same = guarantees(spendings)
    if len(same) == 1:
        return same[0]
    found = ledger_totals([Spent(spending, None) for spending in spendings])
    kinds = [total.names_alone for total in found]
    if not found or len(set(kinds)) != len(kinds):
        names = ", ".join(dict.fromkeys(spending.data for spending in spendings)) or "no release"
        expected, way_out = "releases about the same people", "show each in a row of its own"
        raise PrivacyError("a joint guarantee", expected, names, way_out)
    total = found[-1]  # that of names, if there is one: for the person those say nothing
    person, finest = total.totals
    of_unit = [spending for spending in spendings if spending.unit == finest.level]
    sizes = [1 if of.unit in WHOLE else of.person_units for of in of_unit]
    return Guarantee(
        data=" and ".join(total.data),
        unit=finest.level,
        relation=finest.relation,
        units=min((of.units for of in of_unit if of.units is not None), default=None),
        epsilon=finest.epsilon,
        person=person.epsilon,
        person_units=None if None in sizes else max(size for size in sizes if size),
        released=once(of.released for of in spendings),
        sampling=once(of.sampling for of in spendings),
        does_not_cover=once(sentence for of in spendings for sentence in of.does_not_cover),
        releases=finest.releases,
        names_alone=total.names_alone,
    )


def recomputed(costs: Sequence[tuple[Relation, events.Event]], delta: float) -> float:
    """Epsilon of a :class:`Total` from its costs."""
    return _composed(costs, delta)[1].value


def _components(spent: Sequence[Spent]) -> list[list[int]]:
    """Releases that are related to each other, be it through others."""
    left, found = set(range(len(spent))), []
    while left:
        group, todo = set[int](), [min(left)]
        while todo:
            one = todo.pop()
            left.discard(one)
            group.add(one)
            todo += [n for n in left if n not in todo and are_related(spent[n], spent[one])]
        found.append(sorted(group))
    return found


_Levels = list[tuple[str, list[tuple[Relation, events.Event]]]]


def _worst(groups: Sequence[_Levels], delta: float) -> list[Total]:
    """The largest total for a person, and that for a finest unit."""
    best: dict[bool, Total] = {}
    for level, costs in (pair for levels in groups for pair in levels):
        total = Total(level, *_composed(costs, delta), len(costs), tuple(costs))
        known = best.get(level == PERSON)
        if known is None or total.epsilon.value > known.epsilon.value:
            best[level == PERSON] = total
    return [best[key] for key in sorted(best, reverse=True)]


def _groups(spent: Sequence[Spent], number: int) -> set[frozenset[int]]:
    """The releases that some person of release ``number`` is in, each with that one."""
    new = spent[number]
    related = [
        n
        for n, other in enumerate(spent)
        if n != number
        and are_related(other, new)
        and (new.spending.hides_names_alone or not other.spending.hides_names_alone)
    ]
    if new.people is None:
        return {frozenset((*related, number))}
    with_all = [n for n in (*related, number) if spent[n].people is None or n == number]
    of_person: dict[str, list[int]] = {person: list(with_all) for person in new.people}
    for n in related:
        for person in new.people & (spent[n].people or frozenset()):
            of_person[person].append(n)
    return {frozenset(group) for group in of_person.values()} or {frozenset(with_all)}


def _largest(groups: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Without groups that lie within another, in a fixed order."""
    kept = set(groups)
    return sorted((g for g in kept if not any(g < other for other in kept)), key=sorted)


def _finest_units(group: Sequence[Spending]) -> list[str]:
    """The units of the lowest rank: they are not parts of each other."""
    rank = min(RANKS[spending.unit] for spending in group)
    return list(dict.fromkeys(s.unit for s in group if RANKS[s.unit] == rank))


def _all_levels(spent: Sequence[Spent], groups: Iterable[frozenset[int]]) -> list[_Levels]:
    """The costs of each group for a person, and for each of its finest units."""
    spendings = [[spent[n].spending for n in sorted(group)] for group in groups]
    return [_levels(group, finest) for group in spendings for finest in _finest_units(group)]


def _levels(group: Sequence[Spending], finest: str) -> _Levels:
    own = {spending.relation for spending in group if spending.unit == finest}
    of_unit = [
        _inside(spending, finest, replaced=own == {Relation.REPLACE_ONE})
        for spending in group
        if spending.unit == finest or RANKS[spending.unit] > RANKS[finest]
    ]
    of_person = [(spending.relation, spending.for_person) for spending in group]
    return [(PERSON, of_person), (finest, of_unit)]


def _inside(spending: Spending, unit: str, *, replaced: bool) -> tuple[Relation, events.Event]:
    """The cost for a ``unit`` that is part of the release's: what it is stated for, and its event.

    Args:
        replaced: whether the units are replaced, and not added or removed. So are then the data of
            the release's unit; else these are removed once and added once.
    """
    if spending.unit == unit or spending.relation is Relation.REPLACE_ONE:
        return spending.relation, spending.event
    if replaced and _has_bound(spending.event):
        return Relation.REPLACE_ONE, spending.event
    return spending.relation, for_group(spending.event, 2)


def _has_bound(event: events.Event) -> bool:
    """Whether the event has a bound for replacing; Poisson samples have none."""
    try:
        under(event, Relation.REPLACE_ONE)
    except PrivacyError:
        return False
    return True


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
