"""Where stamps and logs stand, and what is taken for a temporary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.recipe import plan, stamps
from privasr_k2.recipe.fingerprint import Fingerprint


@pytest.mark.parametrize(
    ("declared", "stamp", "log"),
    [
        ("--out-x exp/a/am", "exp/a/.stages/am.json", "exp/a/log/am.log"),
        ("--out-x top", ".stages/top.json", "log/top.log"),
        ("JOB=3:3 --out-x a/d/JOB.txt", "a/.stages/d.JOB.txt/3.json", "a/log/d.JOB.txt/3.log"),
        ("JOB=3:3 --out-x exp/JOB/am", "exp/.stages/JOB.am/3.json", "exp/log/JOB.am/3.log"),
        ("JOB=3:3 --out-x JOB.txt", ".stages/JOB.txt/3.json", "log/JOB.txt/3.log"),
    ],
)
def test_places(declared: str, stamp: str, log: str) -> None:
    words = ["0", "t", *declared.replace("--out", "./v --out").split()]
    (stage,) = plan.parse([words], "/w")
    where = stamps.places(stage, stage.tasks[0], Path("/w"))
    assert (str(where.stamp), str(where.log)) == (f"/w/{stamp}", f"/w/{log}")
    assert where.attempt == where.stamp.with_suffix(".attempt.json")


def test_killed_when_a_failed_attempt_had_just_been_taken_up_again(tmp_path: Path) -> None:
    """The old output is kept, the attempt's is in its place, and its empty shelf is still there."""
    words = ["0", "t", "./v", "--out-x", "exp/am"]
    (stage,) = plan.parse([words], str(tmp_path))
    where = stamps.places(stage, stage.tasks[0], tmp_path)
    now = Fingerprint((), (), ())
    for name in ("exp/am/new", "exp/.stages/am.before/0/old", "exp/.stages/am.partial/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "exp/.stages/am.partial/x").unlink()
    where.attempt.write_text(json.dumps({"fingerprint": now.digest}))
    stamps.begin(where, now, launcher="local", forced=False)
    assert (tmp_path / "exp/am/new").exists()
    stamps.give_up(where)
    assert (tmp_path / "exp/am/old").exists()
    assert (tmp_path / "exp/.stages/am.partial/0/new").exists()


def test_killed_by_a_stage_that_had_more_outputs(tmp_path: Path) -> None:
    """What waits for an output that the task no longer has does not stand in its way."""
    words = ["0", "t", "./v", "--out-x", "exp/am"]
    (stage,) = plan.parse([words], str(tmp_path))
    where = stamps.places(stage, stage.tasks[0], tmp_path)
    for name in ("exp/.stages/am.before/0/old", "exp/.stages/am.before/1/other"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    where.stamp.write_text("{}")
    stamps.begin(where, Fingerprint((), (), ()), launcher="local", forced=False)
    assert sorted(path.name for path in (tmp_path / "exp/.stages/am.before").iterdir()) == ["0"]
    stamps.give_up(where)
    assert (tmp_path / "exp/am/old").exists()


def test_only_the_temporaries_of_an_output_are_removed(tmp_path: Path) -> None:
    kept = [".01234567.tmp.ab", "b.tmp", ".b", ".0123456.tmp.b", ".01234567.new.b", "a/.hidden"]
    gone = [".01234567.tmp.b", ".89abcdef.old.b"]
    for name in (*kept, *gone):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    inside = tmp_path / "b/deep/.01234567.tmp.x"
    inside.parent.mkdir(parents=True)
    inside.write_text("")
    stamps.remove_temporaries(tmp_path / "b")
    assert all((tmp_path / name).exists() for name in kept)
    assert not any((tmp_path / name).exists() for name in gone)
    assert not inside.exists()


def test_every_difference_has_a_reason() -> None:
    stamp = {
        "command": ["verb", "--set", "a=1"],
        "configs": [["{root}/conf/a.yaml", "1"], ["{root}/conf/tiny/a.yaml", "2"]],
        "inputs": [["x", "1"], ["y", "1"]],
    }
    now = Fingerprint(
        ("verb", "--set", "a=2"),
        (("{root}/conf/a.yaml", "3"), ("conf/a.yaml", "4")),
        (("x", "2"), ("z", "1")),
    )
    assert stamps._differences(stamp, now) == [
        "the command changed: a=1 -> a=2",
        "conf/a.yaml changed",
        "conf/tiny/a.yaml is no longer among its --config files",
        "conf/a.yaml is now among its --config files",
        "x changed",
        "z is now read",
        "y is no longer read",
    ]
