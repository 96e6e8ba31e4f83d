"""One release from beginning to end: spend first, draw noise under a secret key, destroy the key.

    with begin(ledger, beside=out / "privacy.json", spending=spending, ...) as release:
        for number in range(rounds):
            ...  # what round number has written already is read back, not drawn again
            cohort = sampling.cohort(number, num_units, release.stream)
            noisy = noise.add(total, release.noise(number))
        release.finish()

The order makes every kill harmless. The entry stands in both ledgers before the first noise is
drawn. A continued run finds its key and draws the same noise again, which spends nothing more.
Exact discrete noise has no key: what it was added to is written whole, or not seen. Without its key
nobody can draw a finished release's noise again. ``--force``, other data or another configuration
take fresh noise and another entry.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from privasr_k2.environment import code_version
from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import atomic_path
from privasr_k2.privacy import checks
from privasr_k2.privacy.events import is_unprotected
from privasr_k2.privacy.ledger import SCHEME, Entry, Ledger, copies_agree, locked
from privasr_k2.privacy.spending import Spending, guarantees, is_related, shown
from privasr_k2.randomness import NoiseStream, new_secret, noise_stream
from privasr_k2.recipe.fingerprint import HashCache

_MAX_SECONDS = 60.0


@dataclass(frozen=True)
class Release:
    """A release that was entered in its ledgers.

    Attributes:
        is_continued: an earlier run began it: what it has written is to be read back.
        is_finished: its key is gone: everything that it draws has been written.
    """

    entry: Entry
    is_continued: bool
    is_finished: bool
    _key: Path
    _drawn: set[tuple[str | int, ...]] = field(default_factory=set)

    def stream(self, *names: str | int) -> NoiseStream:
        """The secret stream for one purpose, the same each time: for the draw of cohorts.

        Raises:
            PrivacyError: the release is finished.
        """
        try:
            secret = self._key.read_bytes()
        except FileNotFoundError:
            expected = "its noise written, as it is finished"
            found = "that something of it is missing"
            way_out = "make it anew, which spends again: --force true"
            raise PrivacyError(f"release {self.entry.release}", expected, found, way_out) from None
        return noise_stream(secret, self.entry.release, self.entry.fingerprint, *names)

    def noise(self, *names: str | int) -> NoiseStream:
        """The secret stream for the noise of one value: ``release.noise(round_number, "counts")``.

        Raises:
            PrivacyError: the release is finished, or noise of this name was drawn before: on two
                values it would cancel in their difference.
        """
        if names in self._drawn:
            at, found = f"release {self.entry.release}", "a second time"
            raise PrivacyError(at, f"noise {names} once", found, "give each its own name")
        self._drawn.add(names)
        return self.stream("noise", *names)

    def finish(self) -> None:
        """Destroy the key: call it when everything that was drawn has been written."""
        self._key.unlink(missing_ok=True)


@contextmanager
def begin(
    ledger: Path, *, beside: Path, spending: Spending, fingerprint: str, max_epsilon: float | None
) -> Iterator[Release]:
    """Enter a release, or find the entry of the one that is continued.

    Args:
        ledger: of the corpus's private data, with its keys beside it; may not exist yet.
        beside: ``privacy.json`` beside what is released.
        fingerprint: of configuration and inputs; it is written under the ledger's key.
        max_epsilon: limit of all releases of the same data, unit and relation, this one included;
            ``None``: no limit.

    Raises:
        PrivacyError: the budget does not allow it, a ledger cannot be trusted, another process
            makes this release, or earlier code made one here that may be the same. Nothing was
            spent then.
    """
    if max_epsilon is not None:
        checks.number("max_epsilon", max_epsilon, above=0)
    ledger = ledger.resolve()  # a link's target is locked, not the link
    keys = _Keys(ledger)
    with locked(ledger, max_seconds=_MAX_SECONDS):
        sealing = keys.seal()
        # A plain hash would let whoever sees the entry test guesses of the private inputs.
        fingerprint = hmac.new(sealing, fingerprint.encode(), hashlib.sha256).hexdigest()
        book = Ledger(ledger, sealing)
        copy = Ledger(beside)
        entered, here = book.entries(), copy.entries()
        known = (SCHEME + fingerprint, fingerprint)
        same = [e for e in here[-1:] if e.fingerprint in known and e.spending == spending]
        _check_scheme(here[-1:], same, spending, beside)
        for entry in copies_agree(entered, here):
            entered_here = any(e.release == entry.release for e in entered)
            if entered_here or not keys.of(entry.release).exists():
                expected = f"a release that the ledger {ledger} knows"
                found = f"release {entry.release}, which it lacks or has otherwise"
                way_out = "give the ledger it was entered in: --ledger FILE"
                raise PrivacyError(beside, expected, found, way_out)
            _check_budget(entered, entry.spending, max_epsilon)
            book.append(entry)  # killed between the two
            entered = (*entered, entry)
        if same:
            entry = same[0]
        else:
            _check_budget(entered, spending, max_epsilon)
            entry = Entry(
                release=secrets.token_hex(16),
                fingerprint=SCHEME + fingerprint,
                spending=spending,
                code=code_version(),
                time=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            keys.make(entry.release, beside)
            copy.append(entry)
            book.append(entry)
    key = keys.of(entry.release)
    with _alone(key, entry):
        yield Release(entry, bool(same), not key.exists(), key)


@contextmanager
def _alone(key: Path, entry: Entry) -> Iterator[None]:
    """Hold the key of an unfinished release, as two processes would draw discrete noise twice."""
    try:
        descriptor = os.open(key, os.O_RDONLY)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            place = f"release {entry.release}"
            expected = "one process that makes it"
            way_out = "wait for its end and run again: what it has written is read back"
            raise PrivacyError(place, expected, "another that is at it", way_out) from None
        yield
    finally:
        os.close(descriptor)


def _check_scheme(
    last: Sequence[Entry], same: Sequence[Entry], spending: Spending, beside: Path
) -> None:
    """Refuse to make again what may be the release of code that computed fingerprints otherwise."""
    if same or not last or last[0].fingerprint.startswith(SCHEME) or last[0].spending != spending:
        return
    raise PrivacyError(
        beside,
        "a release of this version, or settings and inputs that are known to be others",
        f"release {last[0].release} of an earlier version ({last[0].code}), whose fingerprint does"
        " not tell whether they are the same",
        "keep what it released; another release spends again: --force true, or move this file away"
        " for it",
    )


def _check_budget(
    entered: tuple[Entry, ...], spending: Spending, max_epsilon: float | None
) -> None:
    if max_epsilon is None:
        return
    before = [
        e.spending
        for e in entered
        if e.spending.covers == spending.covers
        or (is_related(e.spending.data, spending.data) and is_unprotected(e.spending.event))
    ]
    [guarantee] = (g for g in guarantees([*before, spending]) if g.covers == spending.covers)
    if guarantee.epsilon.value > max_epsilon:
        epsilon = f"{shown(guarantee.epsilon.value)} at delta {guarantee.epsilon.delta:g}"
        bare = any(is_unprotected(s.event) for s in (*before, spending))
        raise PrivacyError(
            f"the budget of {spending.data} for each {spending.unit}",
            f"epsilon {max_epsilon:g} at most (--max-epsilon)",
            f"{epsilon} with this release and {len(before)} before it",
            "text that is used unprotected exceeds every limit: leave it out, or set no limit"
            if bare
            else "spend less (more noise, fewer rounds or queries), or raise the limit",
        )


class _Keys:
    """Secrets beside a ledger: one to seal it, one for each unfinished release.

    A key's name tells the release and where it is made: the next one there destroys a stale key.
    """

    def __init__(self, ledger: Path) -> None:
        self._ledger, self._folder = ledger, ledger.parent / f"{ledger.name}.keys"
        self.sealing = self._folder / "seal"

    def of(self, release: str) -> Path:
        return next(self._folder.glob(f"{release}.*"), self._folder / release)

    def make(self, release: str, beside: Path) -> None:
        # Relative, so that the ledger and what was released may be moved together.
        where = os.path.relpath(beside.resolve(), self._ledger.parent)
        hashed = hashlib.sha256(where.encode()).hexdigest()[:16]
        for given_up in self._folder.glob(f"*.{hashed}"):
            given_up.unlink()
        self._write(self._folder / f"{release}.{hashed}")

    def seal(self) -> bytes:
        ledger_exists = self._ledger.exists()
        if not self.sealing.exists() and not ledger_exists:
            self._write(self.sealing)
            Ledger(self._ledger, self.sealing.read_bytes()).create()
        elif self.sealing.exists() and not ledger_exists and self._nothing_begun():
            Ledger(self._ledger, self.sealing.read_bytes()).create()  # killed between the two
        elif self.sealing.exists() != ledger_exists:
            found, lost = self._ledger, self.sealing
            if not ledger_exists:
                found, lost = lost, found
            raise PrivacyError(
                lost,
                f"a file, as there is {found}",
                "none: what was spent is not known",
                "restore it; to begin again as if nothing was spent, move both away, and say so",
            )
        return self.sealing.read_bytes()

    def _nothing_begun(self) -> bool:
        return [path.name for path in self._folder.iterdir()] == ["seal"]

    def _write(self, path: Path) -> None:
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
    path = _Keys(ledger.resolve()).sealing
    if path.exists() and not ledger.exists():
        expected, found = f"a ledger, as there is {path}", "none: what was spent is not known"
        raise PrivacyError(ledger, expected, found, "restore it")
    return path.read_bytes() if path.exists() else None


def fingerprint_of(config: object, inputs: Sequence[Path]) -> str:
    """A hash of a configuration (a dataclass) and of the content of inputs, not of their names.

    Args:
        inputs: files and folders; of a folder names that begin with a dot do not count.

    Raises:
        DataError: an input is not there.
    """
    cache = HashCache(Path(os.devnull), Path())
    digests = []
    for path in inputs:
        digest = cache.digest(str(path))
        if digest is None:
            raise DataError(path, "a file or a folder", "nothing", "run the stage that writes it")
        digests.append(digest)
    text = json.dumps([dataclasses.asdict(config), digests], sort_keys=True)  # type: ignore[call-overload]
    return hashlib.sha256(text.encode()).hexdigest()
