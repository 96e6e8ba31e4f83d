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
import math
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from privasr_k2.environment import code_version
from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.keys import Keys
from privasr_k2.privacy.ledger import SCHEME, Entry, Ledger, locked, lost_entries
from privasr_k2.privacy.people import People, PeopleFile, digests_of, hash_of
from privasr_k2.privacy.safekeeping import Copies, lost
from privasr_k2.privacy.spending import Spending, shown
from privasr_k2.privacy.totals import Spent, spent_of, totals
from privasr_k2.randomness import NoiseStream, noise_stream
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

    def date(self, folder: Path) -> None:
        """Give all that lies in a folder the time of the entry: true ones tell how long steps took.

        It differs from one release to the next, so that a changed file is seen to be one.
        """
        when = datetime.fromisoformat(self.entry.time).timestamp()
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (when, when), follow_symlinks=False)

    def finish(self) -> None:
        """Destroy the key: call it when everything that was drawn has been written."""
        self._key.unlink(missing_ok=True)


@contextmanager
def begin(
    ledger: Path,
    *,
    beside: Path,
    spending: Spending,
    fingerprint: str,
    max_epsilon: float | None,
    people: People | None = None,
    second: Path | None = None,
) -> Iterator[Release]:
    """Enter a release, or find the entry of the one that is continued.

    Args:
        ledger: of the corpus's private data, with its keys beside it; may not exist yet.
        beside: ``privacy.json`` beside what is released.
        fingerprint: of configuration and inputs; it is written under the ledger's key.
        max_epsilon: limit of all releases about any of these people, whatever their units, this
            one included, for a person and for the finest unit (:mod:`privasr_k2.privacy.totals`);
            ``None``: no limit.
        people: who stands behind the units; ``None``: not known. Then data of related names are
            taken for those of the same people, and a unit for any part of a person.
        second: folder of the ledger's second copy (:mod:`privasr_k2.privacy.safekeeping`).

    Raises:
        PrivacyError: the budget does not allow it, a ledger cannot be trusted, another process
            makes this release, or earlier code made one here that may be the same. Nothing was
            spent then.
    """
    if max_epsilon is not None:
        checks.number("max_epsilon", max_epsilon, above=0)
    ledger = ledger.resolve()  # a link's target is locked, not the link
    keys = Keys(ledger)
    with locked(ledger, max_seconds=_MAX_SECONDS):
        copies = Copies.of(ledger, beside, second)
        if not ledger.exists() and (gone := copies.missing((), ())):
            raise lost(ledger, gone)
        sealing = keys.seal()
        # A plain hash would let whoever sees the entry test guesses of the private inputs.
        fingerprint = hmac.new(sealing, fingerprint.encode(), hashlib.sha256).hexdigest()
        digests = None if people is None else digests_of(people.names, sealing)
        if people is not None:
            spending = dataclasses.replace(spending, person_units=people.most_units)
        book = Ledger(ledger, sealing)
        copy = Ledger(beside)
        (entered, declared), here = book.read(), copy.entries()
        known = (SCHEME + fingerprint, fingerprint)
        same = [e for e in here[-1:] if e.fingerprint in known and _agree(e.spending, spending)]
        _check_scheme(here[-1:], same, spending, beside)
        gone = [(beside, entry) for entry in lost_entries(entered, here)]
        for _, entry in gone or copies.missing(entered, declared):
            if entry.release in {e.release for e in entered} or not keys.of(entry.release).exists():
                raise lost(ledger, gone or copies.missing(entered, declared))
            book.append(entry)  # killed between the two
            entered = (*entered, entry)
        if same:
            entry = same[0]
        else:
            _check_budget(ledger, entered, Spent(spending, digests), max_epsilon)
            entry = Entry(
                release=secrets.token_hex(16),
                fingerprint=SCHEME + fingerprint,
                spending=spending,
                code=code_version(),
                time=datetime.now(UTC).isoformat(timespec="seconds"),
                people=None if digests is None else hash_of(digests),
            )
            if digests is not None:
                PeopleFile(ledger, entry.release).write(digests)
            keys.make(entry.release, beside)
            copy.append(entry)
            book.append(entry)
        copies.update()
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
    if same or not last or last[0].fingerprint.startswith(SCHEME):
        return
    if not _agree(last[0].spending, spending):
        return
    raise PrivacyError(
        beside,
        "a release of this version, or settings and inputs that are known to be others",
        f"release {last[0].release} of an earlier version ({last[0].code}), whose fingerprint does"
        " not tell whether they are the same",
        "keep what it released; another release spends again: --force true, or move this file away"
        " for it",
    )


def _agree(entered: Spending, spending: Spending) -> bool:
    """Whether an entry is of this spending; earlier ones do not say how many units a person is.

    The sentences on what is not covered are each version's own: they change no release.
    """
    spending = dataclasses.replace(spending, does_not_cover=entered.does_not_cover)
    if entered.person_units is None:
        spending = dataclasses.replace(spending, person_units=None)
    return entered == spending


def _check_budget(
    ledger: Path, entered: tuple[Entry, ...], new: Spent, max_epsilon: float | None
) -> None:
    if max_epsilon is None:
        return
    for total in totals(new, spent_of(ledger, entered)):
        if total.epsilon.value <= max_epsilon:
            continue
        epsilon = f"{shown(total.epsilon.value)} at delta {total.epsilon.delta:g}"
        raise PrivacyError(
            f"the budget of {new.spending.data} for each {total.level}",
            f"epsilon {max_epsilon:g} at most (--max-epsilon)",
            f"{epsilon} with this release and {total.releases - 1} before it",
            "spend less (more noise, fewer rounds or queries), or raise the limit"
            if math.isfinite(total.epsilon.value)
            else "some release about these people has no bound for a person (unprotected text,"
            " counts that are not clipped, or units of an unknown number): leave it out, or set no"
            " limit",
        )


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
