"""The persons behind the units of a release, and keyed digests of them for the ledger's folder.

Releases are related where their people are: any deal, subset, copy or rename of the same people
composes. Names of persons are those of the data (speakers of cuts): a renamed person is another.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import read_json, write_json

FORMAT = "privasr_k2 people 1"


@dataclass(frozen=True)
class People:
    """Who stands behind the units of a release.

    Attributes:
        names: persons, private.
        most_units: the largest number of units that one person changes, rounded up to a power of
            two, as the largest one itself is a fact about somebody. A unit that holds others too
            counts twice: without the person it is replaced, not removed.
    """

    names: frozenset[str]
    most_units: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]], *, source: Path | str) -> People:
        """From (unit, person) for everything that each person has contributed.

        Raises:
            DataError: a unit without a person.

        >>> people = People.of([("d1", "anna"), ("d1", "bob"), ("d2", "bob")], source="clients")
        >>> sorted(people.names), people.most_units
        (['anna', 'bob'], 4)
        """
        persons_of: Mapping[str, set[str]] = defaultdict(set)
        for unit, person in pairs:
            if not person:
                raise DataError(source, "who spoke, for every unit", f"none for {unit!r}",
                                "name the speakers: a limit is kept for each person")  # fmt: skip
            persons_of[unit].add(person)
        weights: dict[str, int] = defaultdict(int)
        for persons in persons_of.values():
            for person in persons:
                weights[person] += 1 if len(persons) == 1 else 2
        most = max(weights.values(), default=1)
        return cls(frozenset(weights), 1 << (most - 1).bit_length())


class PeopleFile:
    """Digests of the people of one release: ``LEDGER.people/RELEASE.json``.

    Args:
        ledger: the ledger's file.
        release: name of the release.
    """

    def __init__(self, ledger: Path, release: str) -> None:
        self.path = ledger.parent / f"{ledger.name}.people" / f"{release}.json"

    def write(self, digests: frozenset[str]) -> None:
        """Write them, readable by the owner alone."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(self.path, {"format": FORMAT, "people": sorted(digests)})

    def read(self, people: str) -> frozenset[str]:
        """Read them.

        Args:
            people: :func:`hash_of` as it stands in the entry.

        Raises:
            PrivacyError: the file is missing, damaged or of another release.
        """
        way_out = "restore it from a backup; nothing is spent while it is not known whose data"
        try:
            content = read_json(self.path)
        except (FileNotFoundError, DataError) as error:
            found = getattr(error, "found", "no such file")
            raise PrivacyError(self.path, "the people of a release", found, way_out) from error
        digests = content.get("people") if isinstance(content, dict) else None
        if not isinstance(digests, list) or hash_of(frozenset(map(str, digests))) != people:
            raise PrivacyError(self.path, "the people whom the ledger names", "others", way_out)
        return frozenset(digests)


def digests_of(names: Iterable[str], key: bytes) -> frozenset[str]:
    """Keyed digests of persons: without the key a guess of a name cannot be tested."""
    return frozenset(
        hmac.new(key, f"person\0{name}".encode(), hashlib.sha256).hexdigest() for name in names
    )


def hash_of(digests: frozenset[str]) -> str:
    """One hash of all digests, for the entry of the ledger."""
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()
