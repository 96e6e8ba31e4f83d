"""Secrets beside a ledger, for its owner alone: one to seal it, one for each unfinished release."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from privasr_k2.errors import PrivacyError
from privasr_k2.fileio import atomic_path
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.randomness import new_secret


class Keys:
    """Secrets beside a ledger: one to seal it, one for each unfinished release.

    A key's name tells the release and where it is made: the next one there destroys a stale key.
    """

    def __init__(self, ledger: Path) -> None:
        self._ledger, self._folder = ledger, ledger.parent / f"{ledger.name}.keys"
        self.sealing = self._folder / "seal"

    def of(self, release: str) -> Path:
        """The key of a release."""
        return next(self._folder.glob(f"{release}.*"), self._folder / release)

    def make(self, release: str, beside: Path) -> None:
        """Draw the key of a release that is made at ``beside``."""
        # Relative, so that the ledger and what was released may be moved together.
        where = os.path.relpath(beside.resolve(), self._ledger.parent)
        place = hashlib.sha256(where.encode()).hexdigest()[:16]
        for given_up in self._folder.glob(f"*.{place}"):
            given_up.unlink()
        self.write(self._folder / f"{release}.{place}")

    def seal(self) -> bytes:
        """The key that seals the ledger; a new one, and an empty ledger, where there is neither.

        Raises:
            PrivacyError: one of them is missing.
        """
        ledger_exists = self._ledger.exists()
        if not self.sealing.exists() and not ledger_exists:
            self.write(self.sealing)
            Ledger(self._ledger, self.sealing.read_bytes()).write(())
        elif self.sealing.exists() and not ledger_exists and self._nothing_begun():
            Ledger(self._ledger, self.sealing.read_bytes()).write(())  # killed between the two
        elif self.sealing.exists() != ledger_exists:
            found, lost = self._ledger, self.sealing
            if not ledger_exists:
                found, lost = lost, found
            raise PrivacyError(
                lost,
                f"a file, as there is {found}",
                "none: what was spent is not known",
                "privasr ledger restore, or privasr ledger declare --reason TEXT"
                if lost == self._ledger
                else "restore it from a backup, or from the second copy of the ledger",
            )
        return self.sealing.read_bytes()

    def _nothing_begun(self) -> bool:
        return [path.name for path in self._folder.iterdir()] == ["seal"]

    def write(self, path: Path) -> None:
        """Draw a key."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Whole or not there: a short key would be one that can be guessed.
        with atomic_path(path) as temporary:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(new_secret())


def seal_of(ledger: Path) -> bytes | None:
    """The key that seals a ledger; ``None`` where it does not lie beside it, as with a copy.

    Raises:
        PrivacyError: there is a key and no ledger: what was spent is not known.
    """
    path = Keys(ledger.resolve()).sealing
    if path.exists() and not ledger.exists():
        expected, found = f"a ledger, as there is {path}", "none: what was spent is not known"
        raise PrivacyError(ledger, expected, found, "privasr ledger restore")
    return path.read_bytes() if path.exists() else None
