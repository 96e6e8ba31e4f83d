"""The ledger: whatever is changed in it, cut off or written beside it is noticed."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import time
from pathlib import Path

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.ledger import Entry, Ledger, locked, lost_entries
from tests.support.made_spending import COUNTS

KEY = bytes(32)


def entry(number):
    """An entry of its own for every number."""
    spending = dataclasses.replace(COUNTS, event=events.pure(0.1 * (number + 1)))
    return Entry(f"{number:032x}", "f" * 64, spending, "0.1.0", "2026-01-01T00:00:00+00:00")


@pytest.fixture
def book(tmp_path):
    """A ledger of four entries."""
    made = Ledger(tmp_path / "ledger.json", KEY)
    for number in range(4):
        made.append(entry(number))
    return made


def edit(book, change):
    """Change the document by a function."""
    document = json.loads(book.path.read_text())
    change(document)
    book.path.write_text(json.dumps(document))


def test_entries_return_in_order(book):
    assert book.entries() == tuple(entry(n) for n in range(4))
    assert Ledger(book.path).entries() == book.entries(), "the chain needs no key"


def test_no_file_is_an_empty_ledger(tmp_path):
    assert Ledger(tmp_path / "none.json", KEY).entries() == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["entries"][1]["spending"]["event"].update(epsilon=1e-9), "entry 2"),
        (lambda d: d["entries"][2].update(time="2025-01-01T00:00:00+00:00"), "entry 3"),
        (lambda d: d["entries"].pop(0), "entry 1"),
        (lambda d: d["entries"].pop(2), "entry 3"),
        (lambda d: d["entries"].insert(1, d["entries"].pop(2)), "entry 2"),
        (lambda d: d["entries"].pop(), "4 entries|3 entries"),
        (lambda d: d["entries"].clear(), "entries"),
        (lambda d: d.update(format="something else"), "format"),
        (lambda d: d.pop("entries"), "a list of entries"),
        (lambda d: d["entries"].append("spent"), "entry 5"),
        (lambda d: d.pop("head"), "entries"),
    ],
)
def test_tampering_is_noticed_by_the_chain(book, change, message):
    edit(book, change)
    with pytest.raises(PrivacyError, match=message):
        Ledger(book.path).entries()
    with pytest.raises(PrivacyError):
        book.append(entry(9))


def test_a_clean_cut_is_noticed_by_the_seal(book):
    def cut(document):
        document["entries"].pop()
        document["head"] = document["entries"][-1]["hash"]

    edit(book, cut)
    assert len(Ledger(book.path).entries()) == 3, "the chain alone is whole"
    with pytest.raises(PrivacyError, match="seal"):
        book.entries()


def test_a_clean_cut_is_noticed_by_the_copy_beside_the_release(book):
    entries = book.entries()
    assert lost_entries(entries, entries[2:]) == []
    assert lost_entries(entries[:3], entries[2:]) == [entry(3)]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_truncation_is_noticed(book, share):
    content = book.path.read_bytes()
    book.path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(PrivacyError, match="a whole ledger"):
        book.entries()


def test_every_single_byte_counts(book):
    """A flipped bit anywhere but in white space is noticed or leaves the same entries."""
    content = book.path.read_bytes()
    entries = book.entries()
    for at in range(0, len(content), 37):
        book.path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        try:
            assert book.entries() == entries, f"byte {at} changed an entry"
        except PrivacyError:
            continue


def test_one_release_twice_is_an_error(book):
    with pytest.raises(PrivacyError, match="once"):
        book.append(entry(2))


def _append_many(path, first):
    for number in range(first, first + 10):
        with locked(path, max_seconds=60):
            Ledger(path, KEY).append(entry(number))


def test_concurrent_writers_lose_nothing(tmp_path):
    path = tmp_path / "ledger.json"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append_many, args=(path, 100 * p)) for p in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    found = {one.release for one in Ledger(path, KEY).entries()}
    assert found == {entry(100 * p + n).release for p in range(3) for n in range(10)}


def _hold(path, ready):
    with locked(path, max_seconds=1):
        ready.set()
        time.sleep(30)


def test_a_second_writer_waits_and_then_gives_up(tmp_path):
    path = tmp_path / "ledger.json"
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(path, ready))
    holder.start()
    try:
        assert ready.wait(30)
        with pytest.raises(PrivacyError, match="no other process"), locked(path, max_seconds=0.2):
            pass
    finally:
        holder.kill()
        holder.join()
    with locked(path, max_seconds=5):
        pass  # a killed process holds nothing


def test_a_writer_without_the_lock_is_noticed(book, monkeypatch):
    """Somebody replaces the file between our writing and our reading it again."""
    from privasr_k2.privacy import ledger as module

    real = module.write_json

    def write_and_lose(path: Path, value):
        real(path, value)
        other = Ledger(path, KEY)
        monkeypatch.setattr(module, "write_json", real)
        path.unlink()
        other.append(entry(7))

    monkeypatch.setattr(module, "write_json", write_and_lose)
    with pytest.raises(PrivacyError, match="another ledger"):
        book.append(entry(8))
