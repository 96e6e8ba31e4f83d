"""A published folder that was changed in any way is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.fileio import file_hash
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.publish.check import PUBLISHED, check_published, sealed
from privasr_k2.publish.folder import publish
from tests.support.published import Work, model
from tests.support.verbs import call, refused


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published folder; tests put back what they change."""
    folder = tmp_path_factory.mktemp("published")
    work = Work.new(folder / "work")
    work.enter("exp/earlier_privacy.json")
    publish(work.release("exp/m", model("exp/m")), folder / "out")
    return folder / "out"


def broken(folder: Path, match: str) -> None:
    with pytest.raises(PrivacyError, match=match):
        check_published(folder)


def test_one_flipped_byte_in_any_file(whole: Path) -> None:
    checked = 0
    for path in sorted(whole.iterdir()):
        content = path.read_bytes()
        for place in {0, 1, len(content) // 3, len(content) // 2, len(content) - 1}:
            for bit in (1, 128):
                changed = bytearray(content)
                changed[place] ^= bit
                path.write_bytes(changed)
                broken(whole, path.name)
                checked += 1
        path.write_bytes(content)
    assert checked > 50 and check_published(whole)


def test_other_files(whole: Path) -> None:
    for name in ("train_log.jsonl", ".stages.json", "sub/x"):
        (whole / name).parent.mkdir(exist_ok=True)
        (whole / name).write_text("x")
        broken(whole, "another f")
        (whole / name).unlink()
    broken(whole, "another folder")
    (whole / "sub").rmdir()
    (whole / "link").symlink_to(whole / "words.txt")
    broken(whole, "a link")
    (whole / "link").unlink()
    words = (whole / "words.txt").read_bytes()
    (whole / "words.txt").unlink()
    broken(whole, "words.txt.*no such file")
    (whole / "words.txt").write_bytes(words)
    check_published(whole)


def epsilon(document: dict[str, Any]) -> None:
    document["card"]["guarantees"][0]["epsilon"] *= 0.9


def person(document: dict[str, Any]) -> None:
    document["card"]["guarantees"][0]["person_units"] = 2


def total(document: dict[str, Any]) -> None:
    document["card"]["totals"][0]["epsilon"] = 0.5


def fewer(document: dict[str, Any]) -> None:
    document["card"]["totals"][1]["releases"] = 1


def kind(document: dict[str, Any]) -> None:
    document["kind"] = "labels"


@pytest.mark.parametrize("change", [epsilon, person, total, fewer, kind])
def test_figures_are_computed_anew(whole: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Also where somebody has made the hashes fit."""
    path = whole / PUBLISHED
    text = path.read_text()
    document = json.loads(text)
    del document["digest"]
    change(document)
    path.write_text(sealed(document))
    broken(whole, "labels" if change is kind else "by the events")
    path.write_text(text)
    check_published(whole)


def test_another_release_is_noticed(whole: Path) -> None:
    privacy, path = whole / "privacy.json", whole / PUBLISHED
    before, text = privacy.read_bytes(), path.read_text()
    privacy.write_text(privacy.read_text().replace('"epsilon": 1.0', '"epsilon": 0.5'))
    document = json.loads(text)
    del document["digest"]
    document["files"]["privacy.json"] = file_hash(privacy)
    path.write_text(sealed(document))
    broken(whole, "changed or moved")
    entries = Ledger(whole / "none.json").entries()
    assert entries == ()
    privacy.write_bytes(before)
    path.write_text(text)
    check_published(whole)


def test_the_command(whole: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    call("publish", "--check", whole)
    assert "whole" in capsys.readouterr().out
    content = (whole / "README.md").read_bytes()
    (whole / "README.md").write_bytes(content[:-1] + b" ")
    with refused("README.md: expected the file that was published"):
        call("publish", "--check", whole)
    (whole / "README.md").write_bytes(content)
    with refused("published.json: expected what privasr publish has written, found no such file"):
        call("publish", "--check", tmp_path)
    for words in ((), ("--out", "x"), ("x",), ("x", "--out", "y", "--check", "z")):
        with refused("PATH --out DIR, or --check DIR"):
            call("publish", *words)
