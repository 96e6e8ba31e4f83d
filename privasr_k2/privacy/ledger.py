"""An append-only ledger of releases: ``privacy.json``.

Each entry holds the hash of the one before, so that an edited, moved or removed entry shows.
The seal, an HMAC with a key that lies beside the ledger, shows that the end was cut off. Whoever
has the key can forge it: it guards against accidents, not against the owner of the data. The format
stands in ``docs/formats.md``.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import read_json, write_json
from privasr_k2.privacy.spending import Spending

FORMAT = "privasr_k2 ledger 1"
#: Marks the fingerprints of entries since all trainings have theirs from one function.
SCHEME = "2-"
_WAY_OUT = "restore it from a backup; nothing is spent while it cannot be trusted"
_START = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One release.

    Attributes:
        release: 32 hexadecimal digits drawn at random.
        fingerprint: of configuration and inputs, under the ledger's key; it begins with
            :data:`SCHEME`, or in earlier entries with nothing.
        code: version of the code.
        time: when it began, UTC.
        people: one hash of the people behind it, whose digests lie beside the ledger
            (:mod:`privasr_k2.privacy.people`); ``None`` where they are not known.
    """

    release: str
    fingerprint: str
    spending: Spending
    code: str
    time: str
    people: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values, without the hashes of the chain."""
        people = {} if self.people is None else {"people": self.people}
        return people | {
            "release": self.release,
            "time": self.time,
            "code": self.code,
            "fingerprint": self.fingerprint,
            "spending": self.spending.to_json(),
        }


@dataclass(frozen=True)
class Declaration:
    """What an owner has declared lost: releases that the ledger does not hold, and does not count.

    Attributes:
        releases: their names, as far as anything still tells them.
    """

    time: str
    reason: str
    releases: tuple[str, ...]


class Ledger:
    """The ledger in one file.

    Args:
        path: the file; it may not exist yet.
        key: seals it; ``None`` for a copy beside a release, which has only the chain.
    """

    def __init__(self, path: Path, key: bytes | None = None) -> None:
        self.path, self._key = path, key

    def entries(self) -> tuple[Entry, ...]:
        """All entries, checked; none where there is no file.

        Raises:
            PrivacyError: it was edited, cut off or damaged, naming the entry.
        """
        return self.read()[0]

    def read(self) -> tuple[tuple[Entry, ...], tuple[Declaration, ...]]:
        """All entries and declarations; raises as :meth:`entries`."""
        try:
            document = read_json(self.path)
        except FileNotFoundError:
            return (), ()
        except DataError as error:
            raise PrivacyError(error.place, "a whole ledger", error.found, _WAY_OUT) from error
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            kind = type(document).__name__
            found = document.get("format") if isinstance(document, dict) else kind
            raise PrivacyError(self.path, f"the format {FORMAT!r}", repr(found), _WAY_OUT)
        records = document.get("entries")
        if not isinstance(records, list):
            raise PrivacyError(self.path, "a list of entries", type(records).__name__, _WAY_OUT)
        entries, head = [], _START
        for number, record in enumerate(records, start=1):
            entry, head = self._checked(record, head, f"{self.path}: entry {number}")
            entries.append(entry)
        if document.get("head") != head:
            expected = f"{len(records)} entries that end in {document.get('head')}"
            raise PrivacyError(self.path, expected, head, _WAY_OUT)
        declared = document.get("declared", [])
        if not isinstance(declared, list):
            found = type(declared).__name__
            raise PrivacyError(self.path, "a list of declarations", found, _WAY_OUT)
        seal = str(document.get("seal")).encode()
        if self._key is not None and not hmac.compare_digest(seal, self._seal(head, declared)):
            found = "another: entries are missing or were added"
            raise PrivacyError(self.path, "the seal of its last entry", found, _WAY_OUT)
        if len({entry.release for entry in entries}) != len(entries):
            raise PrivacyError(self.path, "every release once", "one twice", _WAY_OUT)
        return tuple(entries), tuple(_declaration(value, self.path) for value in declared)

    def append(self, entry: Entry) -> None:
        """Add an entry; the file is written anew, whole, and read again.

        Raises:
            PrivacyError: the ledger is damaged, or another process wrote it without :func:`locked`.
        """
        entries, declared = self.read()
        self.write((*entries, entry), declared)

    def write(self, entries: tuple[Entry, ...], declared: tuple[Declaration, ...] = ()) -> None:
        """Write the whole ledger; without entries, so that from now on its absence shows.

        Raises:
            PrivacyError: what is read back is another ledger.
        """
        records, head = [], _START
        for entry in entries:
            record = entry.to_json() | {"previous": head}
            head = _hash(record)
            records.append(record | {"hash": head})
        document: dict[str, Any] = {"format": FORMAT, "entries": records, "head": head}
        if declared:
            document["declared"] = [asdict(value) | {"releases": [*value.releases]}
                                    for value in declared]  # fmt: skip
        if self._key is not None:
            document["seal"] = self._seal(head, document.get("declared", [])).decode()
        write_json(self.path, document)
        _flush_folder(self.path.parent)
        if self.read() != (entries, declared):
            way_out = "let one process write at a time"
            raise PrivacyError(self.path, "the entry just written", "another ledger", way_out)

    def _checked(self, record: Any, previous: str, place: str) -> tuple[Entry, str]:
        if not isinstance(record, dict):
            raise PrivacyError(place, "a record", type(record).__name__, _WAY_OUT)
        body = {key: value for key, value in record.items() if key != "hash"}
        if record.get("previous") != previous or record.get("hash") != _hash(body):
            found = "one that was changed or moved"
            raise PrivacyError(place, "the entry that was written", found, _WAY_OUT)
        try:
            entry = Entry(
                release=record["release"],
                fingerprint=record["fingerprint"],
                spending=Spending.from_json(record["spending"], place),
                code=record["code"],
                time=record["time"],
                people=record.get("people"),
            )
        except KeyError as error:
            raise PrivacyError(place, f"a field {error}", "none", _WAY_OUT) from error
        return entry, record["hash"]

    def _seal(self, head: str, declared: Any) -> bytes:
        sealed = head if not declared else head + _hash({"declared": declared})
        return hmac.new(self._key or b"", sealed.encode(), hashlib.sha256).hexdigest().encode()


def _declaration(value: Any, path: Path) -> Declaration:
    try:
        return Declaration(**value | {"releases": tuple(value["releases"])})
    except (KeyError, TypeError) as error:
        raise PrivacyError(path, "declarations", repr(value)[:60], _WAY_OUT) from error


def _flush_folder(folder: Path) -> None:
    """So that a power cut cannot keep noise that was drawn later, and lose the entry."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _hash(record: dict[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def locked(ledger: Path, *, max_seconds: float) -> Iterator[None]:
    """Hold the lock of a ledger: between reading it and writing it nobody else may.

    Raises:
        PrivacyError: another process holds it for longer than ``max_seconds``.
    """
    ledger.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(ledger.with_name(f".{ledger.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        end = time.monotonic() + max_seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    expected = "no other process that writes it"
                    found = f"one that has held it for {max_seconds:g} s"
                    way_out = "wait for it to end, then run again"
                    raise PrivacyError(ledger, expected, found, way_out) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def entries_beside(path: Path) -> tuple[Entry, ...]:
    """The entries of the copy beside a release, ``privacy.json``.

    Raises:
        PrivacyError: there are none, or as :meth:`Ledger.entries`.
    """
    entries = Ledger(path).entries()
    if not entries:
        way_out = "restore it, or correct the name"
        raise PrivacyError(path, "the ledger of a release", "no entry", way_out)
    return entries


def lost_entries(ledger: Sequence[Entry], beside: Sequence[Entry]) -> list[Entry]:
    """The entries beside releases that their ledger lacks, or has otherwise.

    Empty: the ledger has them all.
    """
    known = {entry.release: entry for entry in ledger}
    return [entry for entry in beside if known.get(entry.release) != entry]
