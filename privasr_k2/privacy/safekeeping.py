"""A ledger that was lost, or rolled back, is noticed before anything new is spent.

Every release stands in three places: the ledger, ``privacy.json`` beside what was released, and a
second copy of the ledger. By default that copy lies beside the work folder, ``WORK.ledger/``. What
the ledger lacks stops any new release, until it is restored or declared lost.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.privacy.keys import Keys
from privasr_k2.privacy.ledger import FORMAT, Declaration, Entry, Ledger
from privasr_k2.privacy.lineage import work_dir_of

_SKIPPED = {".stages", "feats", "log", "tensorboard", "checkpoints"}
_HEAD = 200  # bytes in which a ledger names its format
WAY_OUT = (
    "give the ledger that they were entered in (--ledger FILE), or enter them again (privasr ledger"
    " restore), or record that they are lost and not counted (privasr ledger declare --reason TEXT)"
)


@dataclass(frozen=True)
class Copies:
    """Where releases stand besides their ledger.

    Attributes:
        ledger: the ledger's file.
        second: the folder of the second copy; ``None``: there is none.
        work_dir: holds the ``privacy.json`` of releases; ``None``: not known.
    """

    ledger: Path
    second: Path | None
    work_dir: Path | None

    @classmethod
    def of(cls, ledger: Path, path: Path, second: Path | None = None) -> Copies:
        """Those for a release at ``path``; outside of a work folder only ``second``, if given."""
        try:
            work_dir = work_dir_of(path)
        except DataError:
            return cls(ledger, second, None)
        return cls(ledger, second or work_dir.with_name(f"{work_dir.name}.ledger"), work_dir)

    @property
    def second_ledger(self) -> Ledger | None:
        """The second copy; its seal is checked with the key that lies beside it."""
        if self.second is None:
            return None
        seal = self.second / f"{self.ledger.name}.keys" / "seal"
        return Ledger(self.second / self.ledger.name, seal.read_bytes() if seal.exists() else None)

    def entries(self) -> Iterator[tuple[Path, Entry]]:
        """All releases that the copies know, those of the second copy first, with their file.

        Raises:
            PrivacyError: a copy that was changed.
        """
        second = self.second_ledger
        if second is not None:
            yield from ((second.path, entry) for entry in second.entries())
        for path in self._beside():
            yield from ((path, entry) for entry in Ledger(path).entries())

    def missing(
        self, entered: tuple[Entry, ...], declared: tuple[Declaration, ...]
    ) -> list[tuple[Path, Entry]]:
        """The releases of the copies that a ledger lacks or has otherwise."""
        known = {entry.release: entry for entry in entered}
        lost = {release for declaration in declared for release in declaration.releases}
        found: dict[str, tuple[Path, Entry]] = {}
        for path, entry in self.entries():
            if known.get(entry.release) != entry and entry.release not in lost:
                found.setdefault(entry.release, (path, entry))
        return list(found.values())

    def update(self) -> None:
        """Write ledger, seal and people once more, to the second copy."""
        if self.second is None:
            return
        for name in ("keys/seal", "people"):
            source = self.ledger.parent / f"{self.ledger.name}.{name}"
            for file in source.rglob("*") if source.is_dir() else [source]:
                target = self.second / file.relative_to(self.ledger.parent)
                if file.is_file() and not (target.exists() and filecmp.cmp(file, target, False)):
                    _copied(file, target)
        _copied(self.ledger, self.second / self.ledger.name)

    def _beside(self) -> Iterator[Path]:
        if self.work_dir is None:
            return
        for folder, folders, files in os.walk(self.work_dir):
            yield from _set_aside(Path(folder, ".stages"))
            folders[:] = sorted(set(folders) - _SKIPPED)
            yield from (Path(folder, name) for name in sorted(files) if _is_privacy(name))


def lost(path: Path, missing: list[tuple[Path, Entry]]) -> PrivacyError:
    """The error where a ledger lacks releases."""
    shown = ", ".join(f"{entry.release} ({file})" for file, entry in missing[:3])
    found = f"{len(missing)} that it lacks or has otherwise: {shown}"
    return PrivacyError(path, "every release that its copies know", found, WAY_OUT)


def restore(copies: Copies) -> int:
    """Enter what the ledger lacks and the copies have, in the order of time.

    Returns:
        Number of releases that were restored.

    Raises:
        PrivacyError: a release that stands otherwise in a copy: neither can be trusted.
    """
    ledger = _opened(copies)
    entered, declared = ledger.read()
    missing = copies.missing(entered, declared)
    known = {entry.release for entry in entered}
    if otherwise := [entry for entry in missing if entry[1].release in known]:
        way_out = "compare them, and remove the one that was changed"
        file, entry = otherwise[0]
        raise PrivacyError(file, f"release {entry.release} as in {ledger.path}", "another", way_out)
    if copies.second is not None:
        people = copies.second / f"{copies.ledger.name}.people"
        for file in people.glob("*.json"):
            target = copies.ledger.parent / people.name / file.name
            if not target.exists():
                _copied(file, target)
    restored = sorted((entry for _, entry in missing), key=lambda entry: entry.time)
    ledger.write((*entered, *restored), declared)
    copies.update()
    return len(restored)


def declare(copies: Copies, reason: str) -> int:
    """Record that what the ledger lacks is lost: it is no longer asked for, and never counted.

    Returns:
        Number of releases that the copies know of.
    """
    ledger = _opened(copies)
    entered, declared = ledger.read()
    missing = copies.missing(entered, declared)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    releases = tuple(entry.release for _, entry in missing)
    ledger.write(entered, (*declared, Declaration(time, reason, releases)))
    copies.update()
    return len(releases)


def _opened(copies: Copies) -> Ledger:
    """The ledger, begun anew where it is gone: under the second copy's key, if there is one."""
    keys = Keys(copies.ledger)
    if not keys.sealing.exists():
        second = copies.second and copies.second / keys.sealing.relative_to(copies.ledger.parent)
        if second and second.exists():
            _copied(second, keys.sealing)
        else:
            keys.write(keys.sealing)
    ledger = Ledger(copies.ledger, keys.sealing.read_bytes())
    if not copies.ledger.exists():
        ledger.write(())
    return ledger


def _is_privacy(name: str) -> bool:
    return name == "privacy.json" or name.endswith("_privacy.json")


def _set_aside(stages: Path) -> Iterator[Path]:
    """Copies that the stage runner keeps under numbers while a stage is made again (--force)."""
    for path in sorted(stages.glob("*.before/*")) + sorted(stages.glob("*.partial/*")):
        if path.is_file():
            with path.open("rb") as file:
                if FORMAT.encode() in file.read(_HEAD):
                    yield path


def _copied(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = target.with_name(f".{target.name}.new")
    shutil.copy2(source, temporary)
    os.replace(temporary, target)
