"""A ledger that was lost or rolled back stops every new release, until it is restored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import release
from privasr_k2.privacy.keys import Keys
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.people import People
from privasr_k2.privacy.safekeeping import Copies, declare, restore
from tests.support.made_spending import COUNTS

PEOPLE = People.of([("anna", "anna"), ("bob", "bob")], source="clients")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work folder with two finished releases."""
    folder = tmp_path / "mini"
    (folder / ".stages").mkdir(parents=True)
    (folder / ".stages" / "lock").touch()
    for name in ("one", "two"):
        enter(folder, name)
    return folder


def ledger_of(work: Path) -> Path:
    return work / "privacy" / "ledger.json"


def enter(work: Path, name: str, *, finish: bool = True) -> release.Release:
    with release.begin(
        ledger_of(work),
        beside=work / "exp" / name / "privacy.json",
        spending=COUNTS,
        fingerprint=name,
        max_epsilon=None,
        people=PEOPLE,
    ) as begun:
        if finish:
            begun.finish()
    return begun


def copies(work: Path) -> Copies:
    return Copies.of(ledger_of(work), work / "exp")


def sealed(work: Path) -> Ledger:
    return Ledger(ledger_of(work), Keys(ledger_of(work)).seal())


def refused(work: Path, match: str, name: str = "three") -> None:
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    with pytest.raises(PrivacyError, match=match):
        enter(work, name)
    changed = {path for path, content in before.items() if path.read_bytes() != content}
    assert not changed and not (work / "exp" / name).exists()


def test_there_is_a_second_copy(work: Path) -> None:
    second = work.with_name("mini.ledger")
    assert (second / "ledger.json").read_bytes() == ledger_of(work).read_bytes()
    assert len(list((second / "ledger.json.people").iterdir())) == 2


@pytest.mark.parametrize("second", [True, False])
def test_a_lost_ledger_is_noticed_and_restored(work: Path, second: bool) -> None:
    entries = Ledger(ledger_of(work)).entries()
    shutil.rmtree(work / "privacy")
    if not second:
        shutil.rmtree(work.with_name("mini.ledger"))
    refused(work, r"(?s)found 2 that it lacks.*ledger restore")
    assert restore(copies(work)) == 2
    assert sealed(work).entries() == entries
    enter(work, "three")
    assert len(sealed(work).entries()) == 3


def test_an_older_ledger_is_noticed(work: Path) -> None:
    old = ledger_of(work).read_bytes()
    enter(work, "three")
    shutil.rmtree(work / "exp" / "three")  # what it released is gone, but not the second copy
    ledger_of(work).write_bytes(old)
    refused(work, "found 1 that it lacks")
    assert restore(copies(work)) == 1 and len(sealed(work).entries()) == 3


def test_what_is_declared_lost_is_recorded_and_not_asked_for_again(work: Path) -> None:
    shutil.rmtree(work / "privacy")
    refused(work, "ledger declare")
    assert declare(copies(work), "test data, made again") == 2
    enter(work, "three")
    entries, [declaration] = sealed(work).read()
    assert len(entries) == 1 and declaration.reason == "test data, made again"
    assert len(declaration.releases) == 2
    # The declaration is under the seal.
    document = json.loads(ledger_of(work).read_text())
    del document["declared"]
    ledger_of(work).write_text(json.dumps(document))
    refused(work, "seal", "four")


def test_a_changed_copy_is_not_restored(work: Path) -> None:
    path = work / "exp" / "one" / "privacy.json"
    path.write_text(path.read_text().replace("word counts", "nothing"))
    refused(work, "one that was changed")
    with pytest.raises(PrivacyError, match="one that was changed"):
        restore(copies(work))


def test_a_release_that_was_killed_between_the_two_ledgers_counts(work: Path) -> None:
    old = ledger_of(work).read_bytes()
    enter(work, "three", finish=False)
    ledger_of(work).write_bytes(old)
    shutil.copy(ledger_of(work), work.with_name("mini.ledger"))
    enter(work, "four")
    assert len(sealed(work).entries()) == 4


def test_outside_of_a_work_folder_only_a_named_copy_is_kept(tmp_path: Path) -> None:
    assert Copies.of(tmp_path / "ledger.json", tmp_path / "privacy.json").second is None
    named = Copies.of(tmp_path / "ledger.json", tmp_path / "privacy.json", tmp_path / "copy")
    assert named.second == tmp_path / "copy" and named.work_dir is None


def test_what_the_stage_runner_has_set_aside_is_known(work: Path) -> None:
    """--force moves the copy beside a release away before the release begins."""
    older = ledger_of(work).read_bytes()
    enter(work, "three")
    shutil.rmtree(work.with_name("mini.ledger"))
    ledger_of(work).write_bytes(older)
    shelf = work / "exp/three/.stages/lm.before"
    shelf.mkdir(parents=True)
    (work / "exp/three/privacy.json").rename(shelf / "1")
    (shelf / "0").write_text("weights")
    with pytest.raises(PrivacyError, match=r"1 that it lacks .*lm\.before"):
        enter(work, "three")
    assert len(sealed(work).entries()) == 2
