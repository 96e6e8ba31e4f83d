"""The key of a work folder: what its records hold of contents can be tested by nobody without it.

Records lie beside what is published (``exp/x/.stages``). A plain SHA-256 of private features would
prove to whoever has a guess that it is right. The key is ``WORK/.stages/key``, for its owner alone.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError

KEY = "key"
"""Name of the key's file in ``WORK/.stages``, and of the entry of a record that names its key."""
_SIZE = 32
_PAIRS = ("configs", "inputs")


@dataclass(frozen=True)
class Seal:
    """Keyed digests; without a key, digests as they are.

    >>> with_key, other = Seal(b"k" * 32), Seal(b"o" * 32)
    >>> with_key.digest("0" * 64) == other.digest("0" * 64), Seal().digest("0" * 64) == "0" * 64
    (False, True)
    >>> hidden = with_key.masked("ab" * 32, ["path", 1])
    >>> hidden == "ab" * 32, with_key.masked(hidden, ["path", 1]) == "ab" * 32
    (False, True)
    """

    key: bytes = b""

    @classmethod
    def of(cls, work_dir: Path) -> Seal:
        """That of a work folder; the one without a key where no run has made one."""
        try:
            return cls((work_dir / ".stages" / KEY).read_bytes())
        except OSError:
            return cls()

    @property
    def name(self) -> str:
        """Tells one key from another; empty without a key."""
        return self._of("name")[:16] if self.key else ""

    def digest(self, plain: str) -> str:
        """HMAC of a digest of contents."""
        return self._of(f"content {plain}") if self.key else plain

    def masked(self, digest: str, place: list[Any]) -> str:
        """A digest hidden by a pad of its own ``place``, or found again: the owner alone can."""
        if not self.key:
            return digest
        pad = bytes.fromhex(self._of(f"pad {json.dumps(place)}"))
        return bytes(a ^ b for a, b in zip(bytes.fromhex(digest), pad, strict=True)).hex()

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A record of a task under this key; one that has a key already stays as it is."""
        if not self.key or KEY in record:
            return dict(record)
        changed: dict[str, Any] = {"fingerprint": self.digest(record["fingerprint"])}
        for name in _PAIRS:
            if name in record:
                changed[name] = [[path, self.digest(digest)] for path, digest in record[name]]
        if "outputs" in record:
            outputs = record["outputs"].items()
            changed["outputs"] = {path: self.digest(digest) for path, digest in outputs}
        return {**record, **changed, KEY: self.name}

    def is_other(self, record: Mapping[str, Any]) -> bool:
        """Whether a record was made with another key, so that nothing can be compared."""
        return record.get(KEY, self.name) != self.name

    def _of(self, text: str) -> str:
        return hmac.digest(self.key, text.encode(), "sha256").hex()


#: Digests as they are.
PLAIN = Seal()


def make_seal(work_dir: Path) -> Seal:
    """The seal of a work folder; its first run draws the key.

    Raises:
        DataError: the key is gone, or its file holds none.
    """
    path = work_dir / ".stages" / KEY
    if not path.exists():
        known = path.with_name("hashes.json")
        if _is_sealed(known):
            raise _gone(path, f"no such file, though {known} was made with one")
        temporary = path.with_name(f".{secrets.token_hex(4)}.tmp.{KEY}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SIZE))
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):  # whoever was first has made it for all
            os.link(temporary, path)
        temporary.unlink()
    key = path.read_bytes()
    if len(key) != _SIZE:
        raise _gone(path, f"{len(key)} bytes")
    return Seal(key)


def _gone(path: Path, found: str) -> DataError:
    way_out = "restore it from a backup; without it no record here can be read: see docs/formats.md"
    return DataError(path, f"the key of this work folder, {_SIZE} bytes", found, way_out)


def _is_sealed(known: Path) -> bool:
    try:
        return isinstance(json.loads(known.read_text()).get(KEY), str)
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


def record_files(work_dir: Path) -> Iterator[Path]:
    """The stamps and attempts below a work folder, in order; not what attempts have moved aside."""
    for path in sorted(work_dir.glob("**/.stages/**/*.json")):
        if not any(p.endswith((".before", ".partial")) for p in path.relative_to(work_dir).parts):
            yield path
