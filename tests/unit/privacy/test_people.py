"""The persons behind units, and their digests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.privacy.people import People, PeopleFile, digests_of, hash_of


@pytest.mark.parametrize(
    ("pairs", "most"),
    [
        ([("a", "anna"), ("b", "bob")], 1),
        ([("u1", "anna"), ("u2", "anna"), ("u3", "anna"), ("u4", "bob")], 4),  # 3, rounded up
        ([("m1", "anna"), ("m1", "bob")], 2),  # a meeting of two is changed, not removed
        ([("m1", "anna"), ("m1", "bob"), ("m2", "anna")], 4),
        ([], 1),
    ],
)
def test_most_units(pairs: list[tuple[str, str]], most: int) -> None:
    people = People.of(pairs, source="clients.jsonl")
    assert people.most_units == most and people.names == {person for _, person in pairs}


def test_a_unit_of_nobody() -> None:
    with pytest.raises(DataError, match=r"clients.jsonl: .*'u2'"):
        People.of([("u1", "anna"), ("u2", "")], source="clients.jsonl")


def test_digests() -> None:
    here, there = (digests_of(["anna", "bob"], key) for key in (b"1", b"2"))
    assert len(here) == 2 and not here & there
    assert here & digests_of(["bob", "eve"], b"1") == digests_of(["bob"], b"1")


def test_the_file(tmp_path: Path) -> None:
    digests = digests_of(["anna", "bob"], b"key")
    file = PeopleFile(tmp_path / "ledger.json", "r1")
    file.write(digests)
    assert file.read(hash_of(digests)) == digests
    assert file.path.parent.stat().st_mode & 0o077 == 0

    for damage in ("{", json.dumps({"people": []}), json.dumps([1])):
        file.path.write_text(damage)
        with pytest.raises(PrivacyError, match=r"r1.json"):
            file.read(hash_of(digests))
    file.path.unlink()
    with pytest.raises(PrivacyError, match="no such file"):
        file.read(hash_of(digests))
