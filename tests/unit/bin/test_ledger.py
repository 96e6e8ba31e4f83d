"""The verb ledger: totals first, what is lost is restored or declared, what is not private."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from privasr_k2.fileio import read_json, write_jsonl
from privasr_k2.privacy import events
from privasr_k2.privacy.people import People
from tests.support.conf import section
from tests.support.made_spending import COUNTS
from tests.support.published import PEOPLE, Work, model
from tests.support.verbs import call, refused


@pytest.fixture
def work(tmp_path: Path) -> Work:
    made = Work.new(tmp_path / "mini")
    made.enter("exp/one_privacy.json")
    made.enter("exp/two_privacy.json", dataclasses.replace(COUNTS, data="other/name"))
    return made


def shown(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    capsys.readouterr()
    call("ledger", *words)
    return capsys.readouterr().out.splitlines()


def test_totals_come_first(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    devices = dataclasses.replace(COUNTS, unit="device", data="mini/devices")
    people = People.of([("d1", "anna"), ("d2", "anna"), ("d3", "carl")], source="clients")
    work.enter("exp/three_privacy.json", devices, people)
    lines = shown(capsys, "--in-path", work.path)
    assert lines[0].endswith("people:")
    # anna: two releases of 1 each, and one with two of her devices.
    assert lines[1].startswith("  each person of mini/train, other/name, mini/devices: epsilon 4")
    assert lines[2].startswith("  each device of") and lines[2].endswith("3 releases together")
    assert lines[3].startswith("mini/train: epsilon") and "for each user" in lines[3]
    whole = [line for line in lines if "whole person" in line]
    assert len(whole) == 1 and "at most 2 devices" in whole[0] and "epsilon 2.00" in whole[0]
    assert lines == shown(capsys, "show", "--ledger", work.ledger)


def test_a_release_alone_is_shown_with_its_people_only(
    work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    other = People(frozenset({"carl"}), 1)
    work.enter("exp/far/privacy.json", dataclasses.replace(COUNTS, data="far/away"), other)
    lines = shown(capsys, "--in-path", work.path / "exp/far/privacy.json")
    assert lines[1].endswith("1 release together") and "mini/train" not in " ".join(lines)


def test_a_model_without_a_release_is_not_private(
    work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    work.write(model("exp/bare") | model("exp/lm") | model("exp/mixed"))
    work.stamp("train_lm --raw-corpus c --out-dir exp/lm", "exp/lm")
    work.stamp("interpolate_lms --in-lm exp/lm --out-lm exp/bare", "exp/bare")
    lines = shown(capsys, "--in-path", work.path / "exp/bare")
    assert lines[0].startswith("NOT PRIVATE") and "post-processing" not in " ".join(lines)
    assert lines[1] == "No release was found."
    path = work.release("exp/m", model("exp/m"))
    work.stamp("interpolate_lms --in-lm exp/m exp/lm --out-lm exp/mixed", "exp/mixed")
    lines = shown(capsys, "--in-path", work.path / "exp/mixed")
    assert lines[0].startswith("NO GUARANTEE") and "post-processing" not in " ".join(lines)
    work.stamp("interpolate_lms --in-lm exp/m --out-lm exp/mixed", "exp/mixed")
    assert any(line.startswith("post-processing: ") for line in shown(
        capsys, "--in-path", work.path / "exp/mixed"))  # fmt: skip
    assert not any(line.startswith("NO") for line in shown(capsys, "--in-path", path))


def sanitize(work: Work, name: str) -> None:
    """A release by its verb."""
    text = work.path / "data/t.jsonl"
    write_jsonl(text, [{"id": "x", "text": "ask ann", "entities": [[1, 2, "PER"]]}])
    call(
        f"sanitize_text --in-private-text {text} --out-dir {work.path}/exp/{name}"
        f" --out-privacy {work.path}/exp/{name}_privacy.json --ledger {work.ledger}"
        f" --config {section('sanitize')} --set data=toy/train method=tag"
    )


def test_a_lost_ledger_is_restored(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    before = shown(capsys, "--in-path", work.path)
    shutil.rmtree(work.ledger.parent)
    with refused("ledger restore"):
        sanitize(work, "new")
    assert not work.ledger.exists() and not (work.path / "exp/new").exists()
    call("ledger", "restore", "--in-path", work.path)
    assert "2 releases restored" in capsys.readouterr().out
    assert shown(capsys, "--in-path", work.path) == before
    sanitize(work, "new")
    assert len(read_json(work.ledger)["entries"]) == 3


def test_a_ledger_beside_nothing_is_restored_from_a_named_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = Work.new(tmp_path / "mini")
    work.enter("exp/one_privacy.json")
    copy, ledger = work.path.with_name("mini.ledger"), tmp_path / "elsewhere/ledger.json"
    with refused("name its copies"):
        call("ledger", "restore", "--ledger", ledger)
    call("ledger", "restore", "--ledger", ledger, "--ledger-copy", copy)
    assert len(read_json(ledger)["entries"]) == 1
    assert shown(capsys, "--ledger", ledger)[1].endswith("1 release together")


def test_what_is_declared_lost_is_shown(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(work.ledger.parent)
    with refused("--reason TEXT"):
        call("ledger", "declare", "--in-path", work.path)
    with refused("--reason TEXT"):
        call("ledger", "restore", "--in-path", work.path, "--reason", "why")
    call("ledger", "declare", "--in-path", work.path, "--reason", "made again")
    assert "2 releases declared lost" in capsys.readouterr().out
    sanitize(work, "new")
    lines = shown(capsys, "--in-path", work.path)
    [declared] = [line for line in lines if line.startswith("Declared lost")]
    assert "made again" in declared and "NOT counted" in declared
    assert lines.index(declared) == next(n for n, line in enumerate(lines) if "toy" not in line
                                         and not line.startswith(("All", "  each")))  # fmt: skip
    assert read_json(work.ledger)["declared"][0]["reason"] == "made again"


def test_in_a_work_folder_it_needs_no_flag(
    work: Work, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work.path / "exp")
    assert shown(capsys)[1].endswith("2 releases together")
    monkeypatch.chdir(work.path.parent)
    with refused("--in-path or --ledger"):
        call("ledger")


def test_totals_of_one_person_are_not_those_of_another(
    work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = dataclasses.replace(COUNTS, data="far/away", event=events.unprotected())
    work.enter("exp/bare_privacy.json", bare, People(frozenset({"carl"}), 1))
    lines = shown(capsys, "--in-path", work.path)
    totals = [line for line in lines if line.startswith("  each person")]
    assert len(totals) == 2 and "infinite" not in totals[0] and "infinite" in totals[1]
    assert PEOPLE.most_units == 1


def test_where_nothing_was_released(tmp_path: Path) -> None:
    with refused("a recipe writes it with its first release"):
        call("ledger", "--ledger", tmp_path / "none/ledger.json")
