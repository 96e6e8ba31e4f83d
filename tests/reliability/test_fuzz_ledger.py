"""A ledger that was damaged is refused, or says the same: never shorter, never cheaper."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.ledger import Entry, Ledger, entries_beside
from privasr_k2.privacy.release import begin, seal_of
from privasr_k2.privacy.spending import Spending
from tests.support.fuzz_tools import DAMAGE, check, damaged, few, is_refused, outcome

pytestmark = [pytest.mark.reliability, pytest.mark.timeout(300)]

KEY = bytes(range(32))
STEP = events.poisson_sampled(0.25, events.gaussian(1.5))
EVENTS = (
    events.repeated(STEP, 12),
    events.composed(events.pure(0.5), events.discrete_laplace(2.0, 1), events.laplace_vector(3.0)),
    events.unprotected(),
)


def entry(number: int) -> Entry:
    """An entry with a mechanism of its own."""
    spending = Spending(
        data="mini/train",
        released="counts of “words”",
        unit="user",
        units=48 if number else None,
        relation=Relation.ADD_OR_REMOVE_ONE,
        event=EVENTS[number],
        sampling="Poisson, rate 0.25",
        delta=1e-5,
        does_not_cover=("how many rounds there are",),
    )
    return Entry(f"{number:032x}", f"{number}" * 64, spending, "0.1.0", "2026-01-01T00:00:00+00:00")


@functools.cache
def book(entries: int, key: bytes | None) -> bytes:
    """The file of a ledger with so many entries."""
    with tempfile.TemporaryDirectory() as folder:
        made = Ledger(Path(folder) / "ledger.json", key)
        made.create()
        for number in range(entries):
            made.append(entry(number))
        return made.path.read_bytes()


def written(entries: int) -> tuple[Entry, ...]:
    """What such a ledger says."""
    return tuple(entry(number) for number in range(entries))


@given(damages=DAMAGE)
@few(400)
def test_a_sealed_ledger(damages: list[tuple[int, int, int]]) -> None:
    found = check({"l.json": book(3, KEY)}, damages, lambda f: Ledger(f / "l.json", KEY).entries())
    assert is_refused(found) or found == written(3)


@given(damages=DAMAGE, releases=st.integers(1, 2))
@few(400)
def test_the_copy_beside_releases(damages: list[tuple[int, int, int]], releases: int) -> None:
    copy = {"p.json": book(releases, None)}
    found = check(copy, damages, lambda f: entries_beside(f / "p.json"))
    assert is_refused(found) or found == written(releases)


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
@few(400)
def test_every_changed_value_is_refused(at: int, bit: int) -> None:
    """A flipped bit that changes what the JSON means, anywhere, is refused."""
    whole = book(3, KEY)
    flipped = damaged(whole, [(0, at, bit)])
    found = check({"l.json": whole}, [(0, at, bit)], lambda f: Ledger(f / "l.json", KEY).entries())
    try:
        same = json.loads(flipped) == json.loads(whole)
    except ValueError:
        same = False
    assert same or is_refused(found)


@pytest.mark.parametrize("entries", [0, 1, 2])
def test_an_earlier_state_of_its_own_is_the_one_thing_that_passes(entries: int) -> None:
    """Only what lies beside a release tells an old copy of the whole ledger from the newest."""
    found = check({"l.json": book(entries, KEY)}, [], lambda f: Ledger(f / "l.json", KEY).entries())
    assert found == written(entries)
    cut = json.loads(book(3, KEY))
    cut["entries"] = cut["entries"][:entries]
    cut["head"] = cut["entries"][-1]["hash"] if entries else "0" * 64
    found = check(
        {"l.json": json.dumps(cut).encode()}, [], lambda f: Ledger(f / "l.json", KEY).entries()
    )
    assert is_refused(found), "cut off by somebody who knows the chain and not the key"


@given(damages=DAMAGE, which=st.sampled_from(("ledger.json", "p.json", "ledger.json.keys/seal")))
@few(150)
def test_nothing_is_spent_on_a_damaged_ledger(
    damages: list[tuple[int, int, int]], which: str
) -> None:
    """A release begins on the ledger that was written, or not at all; it only adds to it."""

    def begun(folder: Path, number: int) -> Any:
        with begin(
            folder / "ledger.json",
            beside=folder / "p.json",
            spending=entry(number).spending,
            fingerprint="f" * 64,
            max_epsilon=None,
        ) as release:
            return release.entry

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun(folder, 0)
        begun(folder, 1)
        ledger = folder / "ledger.json"
        before = Ledger(ledger, seal_of(ledger)).entries()
        assert len(before) == 2
        whole = (folder / which).read_bytes()
        changed = damaged(whole, damages)
        (folder / which).write_bytes(changed)
        book_before = ledger.read_bytes()
        found = outcome(lambda: begun(folder, 1))
        if is_refused(found):
            assert ledger.read_bytes() == book_before
        else:
            after = Ledger(ledger, seal_of(ledger)).entries()
            assert after[:2] == before and found in after
