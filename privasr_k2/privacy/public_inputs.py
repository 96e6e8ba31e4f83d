"""Public inputs of a release are public: nothing behind them is of the people whom it protects.

Every ``--in-*`` of a release but ``--in-private-*`` is taken as public. Its stages are followed
back, by the stamps of the stage runner, to the data that they read. A stage with a release of its
own ends the way: its cost stands in the ledger. An unprotected one does not. What no stage has
written is the user's own: it is public as declared, unless the file itself names protected people.
``--in-public-roster`` names them all, and is public by the guarantee itself.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.ledger import entries_beside
from privasr_k2.privacy.lineage import work_dir_of
from privasr_k2.privacy.people import People
from privasr_k2.privacy.readings import (
    KEEPING_ROLES,
    SORTING,
    Persons,
    Roles,
    Stage,
    in_role,
    persons_in,
)
from privasr_k2.privacy.release import Release, begin
from privasr_k2.privacy.spending import Spending
from privasr_k2.recipe.history import stamps_below, writers_of
from privasr_k2.recipe.plan import flags_of, normal_path

log = logging.getLogger(__name__)

OVERRIDE = "--public-from-private"
_PRIVATE = ("--in-private-", "--raw-private-")
#: Names whom a release protects: public by its guarantee, whatever it was made from.
_ROSTER = "--in-public-roster"
#: Flags that units come in by, where none is named private.
_UNITS = ("--in-feats", "--in-shards", "--in-clients", "--in-cuts", "--in-nbest", "--in-text",
          "--in-tagged", "--in-manifests", "--raw-conll", "--raw-text")  # fmt: skip


@dataclass(frozen=True)
class _Read:
    """A path that was read, with roles of a folder of cuts, and the stages up to the input.

    Attributes:
        stages: the one next to the input first.
        is_raw: a corpus or a user's file; a folder of them is not read as a whole.
    """

    path: str
    roles: Roles
    stages: tuple[str, ...] = ()
    is_raw: bool = False


@dataclass(frozen=True)
class _Protected:
    """The private inputs, what their records were made from, and their persons."""

    inputs: tuple[_Read, ...]
    sources: tuple[_Read, ...]
    persons: Persons


def checked(args: Namespace, spending: Spending, people: People | None) -> Spending:
    """``spending``, unprotected where a public input is made of the protected people's data.

    Args:
        args: of a verb: paths ``in_*``, and maybe ``config``, ``set`` and the override
            ``public_from_private``.
        people: who stands behind the units; ``None``: the persons of the private inputs.

    Raises:
        PrivacyError: there is such an input, and no override. Nothing was spent.
    """
    if events.is_unprotected(spending.event):
        return spending
    found = list(_violations(_now(args), people))
    if not found:
        return spending
    if getattr(args, "public_from_private", "false") != "true":
        [place, why] = found[0]
        expected = "an input of public data, or of what was released"
        way_out = f"make it of public data; or accept an infinite epsilon: {OVERRIDE} true"
        raise PrivacyError(place, expected, why, way_out)
    sentences = tuple(f"Everything: {place} is not public: {why}." for place, why in found)
    for sentence in sentences:
        log.warning("NO GUARANTEE, by %s true. %s", OVERRIDE, sentence)
    outside = (*sentences, *spending.does_not_cover)
    return dataclasses.replace(spending, event=events.unprotected(), does_not_cover=outside)


def begin_release(
    args: Namespace, spending: Spending, fingerprint: str, people: People | None
) -> AbstractContextManager[Release]:
    """:func:`privasr_k2.privacy.release.begin` by the flags of a verb, with :func:`checked` inputs.

    Args:
        args: as in :func:`checked`, with ``ledger ledger_copy out_privacy max_epsilon``.

    Raises:
        PrivacyError: as in :func:`checked` and ``begin``.
    """
    return begin(
        args.ledger,
        beside=args.out_privacy,
        spending=checked(args, spending, people),
        fingerprint=fingerprint,
        max_epsilon=args.max_epsilon,
        people=people,
        second=args.ledger_copy,
    )


def _now(args: Namespace) -> Stage:
    """The verb that runs now, as a stage."""
    words = ["this verb"]
    for name, value in vars(args).items():
        given = value if isinstance(value, list | tuple) else [value]
        if name.startswith("in_") and value is not None:
            words += [f"--{name.replace('_', '-')}", *map(str, given)]
    words += ["--set", *getattr(args, "set", ())]
    return Stage(words[0], tuple(words), tuple(map(str, getattr(args, "config", ()))), Path.cwd())


def _violations(verb: Stage, people: People | None) -> Iterator[tuple[str, str]]:
    """Inputs that are taken as public and are not, as flag and path, and why."""
    history = _History()
    inputs = [
        (flag, value, _Read(os.path.abspath(value), verb.roles(flag)))
        for flag, values in flags_of(verb.command)
        if flag.startswith("--in-")
        for value in values
    ]
    private = [start for flag, _, start in inputs if flag.startswith(_PRIVATE)]
    protected = _protected(private, history, people)
    for flag, value, start in inputs:
        if flag.startswith(_PRIVATE) or flag == _ROSTER:
            continue
        if not history.is_made(start):
            log.info("%s %s: no stage has written it; it is public as declared", flag, value)
        for read in history.behind(start, _all_inputs):
            if why := _conflict(read, protected, history):
                way = ", then ".join(reversed(read.stages))
                yield f"{flag} {value}", f"{why}, read by {way or 'this verb'}"
                break


def _protected(private: Sequence[_Read], history: _History, people: People | None) -> _Protected:
    sources: list[_Read] = []
    known: list[frozenset[str]] = []
    for start in private:
        behind = list(history.behind(start, _unit_inputs))
        sources += behind
        persons = map(history.persons, behind)
        known.append(frozenset().union(*(of.names for of in persons if of.complete)))
    names = frozenset[str]().union(*known) if people is None else people.names
    inputs = (read for start in private for read in (start, *_links(start)))
    return _Protected(tuple(inputs), tuple(sources), Persons(names, bool(names)))


def _links(read: _Read) -> list[_Read]:
    """The same under the path that links lead to."""
    real = os.path.realpath(read.path)
    return [] if real == read.path else [dataclasses.replace(read, path=real)]


def _conflict(read: _Read, protected: _Protected, history: _History) -> str:
    """Why something that was read is not public; empty where nothing is known against it."""
    name = normal_path(read.path, str(Path.cwd()))
    if any(_overlap(read, private) for private in protected.inputs):
        return f"the private input {name}"
    persons = history.persons(read)
    if shared := len(persons.names & protected.persons.names):
        return f"{name} with {shared} of the {len(protected.persons.names)} protected people"
    are_others = persons.complete and protected.persons.complete
    if not are_others and any(_overlap(read, source) for source in protected.sources):
        return f"{name}, which the private input is made of"
    return ""


def _overlap(read: _Read, private: _Read) -> bool:
    """Whether what was read holds some of the private data, or lies in it."""
    (path, roles), (other, private_roles) = (in_role(r.path, r.roles) for r in (read, private))
    if path == other:
        both = roles is not None and private_roles is not None
        return not both or bool(set(roles or ()) & set(private_roles or ()))
    if other.startswith(f"{path}/"):
        return roles is None and not read.is_raw
    return path.startswith(f"{other}/") and private_roles is None


def _all_inputs(stage: Stage, read: _Read, persons: Persons) -> Iterator[_Read]:
    """The inputs that what a stage wrote depends on; its release covers its private ones."""
    covered = _PRIVATE if _is_release(stage) else ()
    records = SORTING.get(stage.verb, ())
    for flag, values in flags_of(stage.command):
        is_raw, roles = flag.startswith("--raw-"), stage.roles(flag)
        if not (is_raw or flag.startswith("--in-")) or flag.startswith(covered) or roles == ():
            continue
        if flag in records and persons.complete:  # who it is, is known
            continue
        roles = read.roles if flag in records and stage.verb in KEEPING_ROLES else roles
        for value in values:
            yield _from(stage, value, roles, read, is_raw)


def _unit_inputs(stage: Stage, read: _Read, persons: Persons) -> Iterator[_Read]:
    """The inputs whose records are the units of what a stage wrote; dev is public everywhere."""
    if persons.complete:
        return
    named = {flag: values for flag, values in flags_of(stage.command) if flag.startswith(_PRIVATE)}
    others = {flag: values for flag, values in flags_of(stage.command) if flag in _UNITS}
    for flag, values in (named or others).items():
        roles = stage.roles(flag)
        roles = roles if roles is None else tuple(role for role in roles if role != "dev")
        for value in values:
            yield _from(stage, value, roles, read, flag.startswith("--raw-"))


def _from(stage: Stage, value: str, roles: Roles, read: _Read, is_raw: bool) -> _Read:
    path = os.path.normpath(stage.work_dir / value)
    return _Read(path, roles, (*read.stages, stage.label), is_raw)


def _is_release(stage: Stage) -> bool:
    """Whether a stage has protected its private inputs; an entry without protection does not."""
    for path in stage.values("--out-privacy"):
        try:
            entries = entries_beside(stage.work_dir / path)
        except PrivacyError:
            return False
        return not events.is_unprotected(entries[-1].spending.event)
    return False


class _History:
    """The stamps of the work folders that inputs are from, read once."""

    def __init__(self) -> None:
        self._stamps: dict[Path, list[dict[str, Any]]] = {}
        self._persons: dict[tuple[str, Roles], Persons] = {}

    def behind(
        self, start: _Read, follow: Callable[[Stage, _Read, Persons], Iterable[_Read]]
    ) -> Iterator[_Read]:
        """``start`` and all that it was made of, as far as ``follow`` goes; the nearest first."""
        todo, seen = [start], set[tuple[str, Roles]]()
        while todo:
            read = todo.pop(0)
            if (read.path, read.roles) in seen:
                continue
            seen.add((read.path, read.roles))
            yield read
            todo += _links(read)
            for stage in self._writers(read.path):
                todo += follow(stage, read, self.persons(read))

    def is_made(self, read: _Read) -> bool:
        """Whether some stage has written it, or what links lead to."""
        return any(self._writers(one.path) for one in (read, *_links(read)))

    def persons(self, read: _Read) -> Persons:
        """The persons of the records at a path; none of a corpus as it came."""
        if read.is_raw and os.path.isdir(read.path):
            return Persons(frozenset(), False)
        key = read.path, read.roles
        if key not in self._persons:
            self._persons[key] = persons_in(Path(read.path), read.roles)
        return self._persons[key]

    def _writers(self, path: str) -> list[Stage]:
        try:
            work_dir = work_dir_of(Path(path))
        except DataError:
            return []
        if work_dir not in self._stamps:
            self._stamps[work_dir] = stamps_below(work_dir)
        stamps = writers_of(normal_path(path, str(work_dir)), self._stamps[work_dir])
        return [Stage.of_stamp(stamp, work_dir) for stamp in stamps]
