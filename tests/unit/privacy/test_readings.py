"""Persons of files, by the forms of their records."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.fileio import write_jsonl, write_text
from privasr_k2.privacy.readings import Persons, persons_in

CUT = {"id": "1", "supervisions": [{"speaker": "ann", "text": "x"}]}


@pytest.mark.parametrize(
    "record", [CUT, {"id": "1", "user": "ann"}, {"id": "1", "client": "d1", "speaker": "ann"}]
)
def test_a_record_names_a_person(tmp_path: Path, record: dict) -> None:
    write_jsonl(tmp_path / "a.jsonl.gz", [record])
    assert persons_in(tmp_path / "a.jsonl.gz", None) == Persons(frozenset(["ann"]), True)
    write_jsonl(tmp_path / "a.jsonl.gz", [record, {"id": "2"}])
    assert persons_in(tmp_path / "a.jsonl.gz", None) == Persons(frozenset(["ann"]), False)


def test_roles_are_files_of_a_folder_or_of_folders_in_it(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "m/cuts_train.jsonl.gz", [CUT])
    write_jsonl(tmp_path / "m/cuts_dev.jsonl.gz", [{"speaker": "bob"}])
    write_jsonl(tmp_path / "m/written.jsonl", [{"user": "eve"}])
    write_jsonl(tmp_path / "m/.stages/x.jsonl", [{"user": "eve"}])
    for folder in (tmp_path / "m", tmp_path):
        assert persons_in(folder, ("train",)).names == {"ann"}
    assert persons_in(tmp_path / "m", None).names == {"ann", "bob"}
    assert persons_in(tmp_path, None).names == {"ann", "bob", "eve"}
    assert persons_in(tmp_path / "m", ("pool",)) == Persons(frozenset(), False)


def test_what_names_nobody(tmp_path: Path) -> None:
    write_text(tmp_path / "text.txt", "ann says")
    write_text(tmp_path / "bad.jsonl", "ann")
    for path in ("text.txt", "bad.jsonl", "none", "."):
        assert persons_in(tmp_path / path, None) == Persons(frozenset(), False)
