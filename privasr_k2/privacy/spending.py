"""Spending of one release, in words and as an event, and the joint guarantee of several."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, events
from privasr_k2.privacy.accounting import Epsilon, Relation, account, under
from privasr_k2.privacy.groups import for_group

_MOST_DIGITS = 12
RANKS = {
    "mention": 0, "utterance": 1, "call": 2, "document": 2, "meeting": 2, "device": 2,
    "speaker": 3, "user": 3, "shard": 4, "part": 4,
}  # fmt: skip
"""Units of guarantees, the finest first; those of one rank are not parts of each other."""
UNITS = tuple(RANKS)
#: Of releases that are made of what a recognizer has heard.
DECODED_TOGETHER = (
    "where the text was recognized: rounding of scores that utterances decoded together share"
)
SETTINGS = (
    "how settings were chosen: they are taken as public, and trials on these people without a claim"
    " are in no ledger"
)
#: Units that are whole persons.
WHOLE = ("speaker", "user")
#: What is absent from the entries of earlier versions, and from those that do not need it.
_OPTIONAL = {"person_units", "only_for"}
#: How entries from before ``only_for`` say that nothing is clipped.
_UNCLIPPED = re.compile(r"an? (\w+) of more than (\S+) words: nothing is clipped")


@dataclass(frozen=True)
class OnlyFor:
    """What a release that bounds no unit costs those that are small by themselves.

    Attributes:
        units: which, in words: ``each utterance of at most 7 words``.
        event: for each of these.
    """

    units: str
    event: events.Event

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a ledger."""
        return {"units": self.units, "event": events.to_json(self.event)}

    @classmethod
    def from_json(cls, value: Any, place: str) -> OnlyFor:
        """Read the values of :meth:`to_json`."""
        if not isinstance(value, Mapping) or set(value) != {"units", "event"}:
            raise PrivacyError(place, "only_for with units and event", repr(value), "restore it")
        return cls(str(value["units"]), events.from_json(value["event"], place))


@dataclass(frozen=True)
class Spending:
    """Effect of one release on private data.

    Attributes:
        data: which private data, as a corpus and its part: ``mini/train``. Releases with the same
            name are summed; names that are not related (:func:`is_related`) share no unit.
        released: what leaves, in words.
        unit: one of :data:`UNITS`.
        units: their public number; ``None`` where it is not public.
        event: everything that is done, all rounds together, with noise relative to what adding or
            removing one unit changes.
        sampling: of :meth:`privasr_k2.privacy.sampling.Sampling.describe`.
        delta: that of the plan.
        does_not_cover: what somebody may still learn, in sentences.
        person_units: the most units that one person changes, a public bound; ``None``: not known.
        only_for: where ``event`` is unprotected, as nothing is clipped: what holds for some units.

    >>> Spending("mini/train", "word counts", "user", 48, Relation.ADD_OR_REMOVE_ONE,
    ...     events.pure(1.0), "all units in every round", 1e-5, ()).unit
    'user'
    """

    data: str
    released: str
    unit: str
    units: int | None
    relation: Relation
    event: events.Event
    sampling: str
    delta: float
    does_not_cover: tuple[str, ...]
    person_units: int | None = None
    only_for: OnlyFor | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            known = f"one of {', '.join(UNITS)}"
            raise PrivacyError("unit", known, repr(self.unit), "name the unit so")
        checks.delta(self.delta, units=self.units)
        under(self.event, self.relation)
        if self.only_for is not None:
            under(self.only_for.event, self.relation)
            if not events.is_unprotected(self.event):
                expected, found = "an unprotected event with only_for", "another"
                raise PrivacyError("event", expected, found, "give the event to only_for alone")
        if not isinstance(self.does_not_cover, tuple):
            expected, found = "a tuple of sentences", type(self.does_not_cover).__name__
            raise PrivacyError("does_not_cover", expected, found, "write (sentence, ...)")
        for name in ("data", "released", "sampling"):
            if not getattr(self, name):
                raise PrivacyError(name, "some words", "none", "say it: a guarantee shows it")

    @property
    def covers(self) -> tuple[str, str, Relation]:
        """Data, unit and relation: releases that agree in these are composed."""
        return self.data, self.unit, self.relation

    @property
    def for_person(self) -> events.Event:
        """The event for a whole person; unprotected where the number of its units is not known."""
        size = 1 if self.unit in WHOLE else self.person_units
        return events.unprotected() if size is None else for_group(self.event, size)

    @property
    def hides_names_alone(self) -> bool:
        """Whether the release replaces names, and leaves everything else as it is."""
        replaced = events.FOR_REPLACING
        return self.relation is Relation.REPLACE_ONE and all(
            isinstance(term, replaced) for term in events.terms(self.event)
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a ledger."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if self.only_for is not None:
            fields["only_for"] = self.only_for.to_json()
        fields |= {
            "relation": self.relation.value,
            "event": events.to_json(self.event),
            "does_not_cover": list(self.does_not_cover),
        }
        return {k: v for k, v in fields.items() if v is not None or k not in _OPTIONAL}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], place: str) -> Spending:
        """Read the values of :meth:`to_json`.

        What an earlier version entered for units of so many words holds for these alone.

        Raises:
            PrivacyError: other fields, or values that cannot be.
        """
        expected = {field.name for field in dataclasses.fields(cls)}
        if set(value) | _OPTIONAL != expected:
            fields, wrong = ", ".join(sorted(expected)), ", ".join(sorted(set(value) ^ expected))
            raise PrivacyError(place, fields, f"missing or unknown: {wrong}", "restore it")
        try:
            relation = Relation(value["relation"])
        except ValueError:
            known = " or ".join(repr(r.value) for r in Relation)
            raise PrivacyError(place, known, repr(value["relation"]), "restore it") from None
        event, only_for = events.from_json(value["event"], place), None
        if value.get("only_for") is not None:
            only_for = OnlyFor.from_json(value["only_for"], place)
        found = map(_UNCLIPPED.fullmatch, map(str, value["does_not_cover"]))
        unclipped = next(filter(None, found), None)
        if unclipped and not events.is_unprotected(event):
            only_for = OnlyFor("each {} of at most {} words".format(*unclipped.groups()), event)
            event = events.unprotected()
        changed = {"relation": relation, "event": event, "only_for": only_for}
        not_covered = tuple(value["does_not_cover"])
        return cls(**{**value, **changed, "does_not_cover": not_covered})


@dataclass(frozen=True)
class Guarantee:
    """Guarantee for one kind of unit in one part of the private data after several releases.

    Attributes:
        units: the smallest number of units that a release has named; ``None`` where none has.
        epsilon: that of all releases together.
        person: for a whole person; infinite where it is not known how many units one is.
        person_units: the most units that one person changes; ``None`` where it is not known.
        names_alone: whether names alone are replaced: ``person`` is for all names of a person.
        only_for: units for which ``only_for_epsilon`` holds where ``epsilon`` is infinite, in
            words; empty: none.
        only_for_epsilon: ``None`` where something has no protection even for these.
        released, sampling, does_not_cover: of all releases, each once.
        releases: number of releases.
    """

    data: str
    unit: str
    relation: Relation
    units: int | None
    epsilon: Epsilon
    person: Epsilon
    person_units: int | None
    released: tuple[str, ...]
    sampling: tuple[str, ...]
    does_not_cover: tuple[str, ...]
    releases: int
    names_alone: bool = False
    only_for: tuple[str, ...] = ()
    only_for_epsilon: Epsilon | None = None

    @property
    def covers(self) -> tuple[str, str, Relation]:
        """Scope of its releases."""
        return self.data, self.unit, self.relation

    def lines(self) -> Iterator[str]:
        """For people: epsilon with everything that it means."""
        pld = "none" if self.epsilon.pld is None else shown(self.epsilon.pld)
        many = "1 release" if self.releases == 1 else f"{self.releases} releases"
        units = "" if self.units is None else f" of {self.units:,}"
        epsilon, delta = shown(self.epsilon.value), f"{self.epsilon.delta:g}"
        yield f"{self.data}: epsilon {epsilon} at delta {delta} for each {self.unit}{units}"
        if self.only_for_epsilon is not None:
            some = " and ".join(self.only_for)
            yield f"  for {some} alone: epsilon {shown(self.only_for_epsilon.value)}"
        if self.unit not in WHOLE:
            size = "number of units not known"
            if self.person_units is not None:
                size = f"at most {self.person_units} {self.unit}s"
            whole = "all names of a person" if self.names_alone else "a whole person"
            yield f"  for {whole} ({size}): epsilon {shown(self.person.value)}"
        yield f"  neighbours: {self.relation.value}; {many} together"
        yield f"  epsilon by RDP {shown(self.epsilon.rdp)}, by PLD {pld}"
        for name in ("released", "sampling", "does_not_cover"):
            for sentence in getattr(self, name):
                yield f"  {name.replace('_', ' ')}: {sentence}"

    def row(self) -> dict[str, str]:
        """Cells for a table of results, in the order of its columns."""
        pld = self.epsilon.pld
        whole = "all names of a person" if self.names_alone else "a person"
        row = {
            "private data": self.data,
            "unit": self.unit,
            "neighbours": self.relation.value,
            "epsilon (RDP)": shown(self.epsilon.rdp),
            "epsilon (PLD)": "none" if pld is None else shown(pld),
            f"epsilon of {whole}": shown(self.person.value),
            "delta": f"{self.epsilon.delta:g}",
            "sampling": "; ".join(self.sampling),
            "releases": str(self.releases),
        }
        if self.only_for_epsilon is not None:
            row["epsilon of some units"] = shown(self.only_for_epsilon.value)
            row["which"] = " and ".join(self.only_for)
        return row


def shown(epsilon: float) -> str:
    """``epsilon`` with three significant digits or more, rounded up so that it still holds.

    >>> shown(0.91757), shown(228.7437), shown(2.5), shown(0.0)
    ('0.918', '228.8', '2.50', '0')
    """
    if epsilon == 0 or math.isinf(epsilon):
        return "0" if epsilon == 0 else "infinite"
    digits = min(max(1, 2 - math.floor(math.log10(epsilon))), _MOST_DIGITS)
    return str(Decimal(epsilon).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING))


def guarantees(spendings: Iterable[Spending], *, delta: float | None = None) -> list[Guarantee]:
    """The composition of releases, one guarantee for each private data, unit and relation.

    Releases of different units or relations are never summed: each guarantee covers its own
    releases only. One without any protection counts in all guarantees for its data, whose epsilons
    are then infinite.

    Args:
        delta: of every guarantee; ``None``: the smallest of its releases'.

    >>> release = Spending("mini/train", "word counts", "user", 48, Relation.ADD_OR_REMOVE_ONE,
    ...     events.pure(1.0), "all units in every round", 1e-5, ())
    >>> [(g.releases, round(g.epsilon.value, 4)) for g in guarantees([release, release])]
    [(2, 2.0)]
    """
    groups: dict[tuple[str, str, Relation], list[Spending]] = {}
    bare: list[Spending] = []
    for spending in spendings:
        groups.setdefault(spending.covers, []).append(spending)
        if events.is_unprotected(spending.event):
            bare.append(spending)
    return [
        _together([*group, *_bared(key, bare)], delta, _others(key, groups))
        for key, group in groups.items()
    ]


def guarantees_for(
    data: Collection[str], spendings: Iterable[Spending], *, delta: float | None = None
) -> list[Guarantee]:
    """The guarantees for some private data, with all that was spent on related data.

    Args:
        data: names of data, each of one of ``spendings``.
        spendings, delta: as of :func:`guarantees`; all that a ledger holds.

    >>> words = Spending("mini/train", "word counts", "user", 48, Relation.ADD_OR_REMOVE_ONE,
    ...     events.pure(1.0), "all units in every round", 1e-5, ())
    >>> bare = dataclasses.replace(words, data="mini/train and mini/a", event=events.unprotected())
    >>> [g.epsilon.value for g in guarantees_for({"mini/train"}, [words, bare])]
    [inf]
    """
    concerned = [s for s in spendings if any(is_related(s.data, name) for name in data)]
    return [guarantee for guarantee in guarantees(concerned, delta=delta) if guarantee.data in data]


def is_related(one: str, other: str) -> bool:
    """Whether two names of data may tell of the same people: one names, or holds, the other's.

    Names nest at slashes, as those of folders do, and ``and`` joins several.

    >>> is_related("ami/train", "ami/train/calls"), is_related("ami/train and ami/dev", "ami/dev/a")
    (True, True)
    >>> is_related("ami/train", "ami/train_clean"), is_related("ami/train", "ami/test")
    (False, False)
    """
    pairs = [(f"{a}/", f"{b}/") for a in one.split(" and ") for b in other.split(" and ")]
    return any(a.startswith(b) or b.startswith(a) for a, b in pairs)


def _bared(key: tuple[str, str, Relation], bare: Iterable[Spending]) -> list[Spending]:
    """Unprotected releases about these people under another unit, relation or name."""
    return [s for s in bare if is_related(s.data, key[0]) and s.covers != key]


def _others(
    key: tuple[str, str, Relation], groups: Mapping[tuple[str, str, Relation], Sequence[Spending]]
) -> tuple[str, ...]:
    """Sentences on releases about these people outside a guarantee, which does not cover them."""
    sentences = []
    for covered, group in groups.items():
        data, unit, relation = covered
        protected = [s for s in group if not events.is_unprotected(s.event)]
        if covered == key or not is_related(data, key[0]) or not protected:
            continue
        start = "releases of the same data for another unit or relation, "
        if data != key[0]:
            start = f"releases of {data}, which may be of the same people, for each "
        released = ", ".join(once(s.released for s in protected))
        sentences.append(f"{start}{unit} ({relation.value}): {released}")
    return tuple(sentences)


def _together(group: Sequence[Spending], delta: float | None, others: tuple[str, ...]) -> Guarantee:
    first = group[0]
    known = [spending.units for spending in group if spending.units is not None]
    units = min(known, default=None)
    delta = checks.delta(min(s.delta for s in group) if delta is None else delta, units=units)
    sizes = [1 if s.unit in WHOLE else s.person_units for s in group]
    of_person = events.composed(*(s.for_person for s in group))
    partly = [s.only_for if s.covers == first.covers else None for s in group]
    some = once(part.units for part in partly if part)
    of_some = events.composed(*(p.event if p else s.event for s, p in zip(group, partly)))
    has_some = some and not events.is_unprotected(of_some)
    return Guarantee(
        data=first.data,
        unit=first.unit,
        relation=first.relation,
        units=units,
        epsilon=account(events.composed(*(s.event for s in group)), first.relation, delta),
        person=account(of_person, first.relation, delta),
        person_units=None if None in sizes else max(size for size in sizes if size),
        released=once(s.released for s in group),
        sampling=once(s.sampling for s in group),
        does_not_cover=(*once(sentence for s in group for sentence in s.does_not_cover), *others),
        releases=len(group),
        names_alone=all(s.hides_names_alone for s in group),
        only_for=some,
        only_for_epsilon=account(of_some, first.relation, delta) if has_some else None,
    )


def once(values: Iterable[str]) -> tuple[str, ...]:
    """The different values, in the order in which they come first."""
    return tuple(dict.fromkeys(values))
