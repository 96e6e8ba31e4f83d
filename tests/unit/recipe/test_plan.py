"""Declarations: what is read from them, and what is refused."""

from __future__ import annotations

import re
import shlex

import pytest

from privasr_k2.errors import ConfigError
from privasr_k2.recipe import plan


def parse(*declarations: list[str], work_dir: str = "/work") -> tuple[plan.Stage, ...]:
    return plan.parse(declarations, work_dir)


def test_flags_of_five_kinds() -> None:
    declared = "v --in-a x ../y --config c.yaml d.yaml --raw-corpus /c --set k=v --out-b ./o//p/"
    declared += " --device cpu"
    (stage,) = parse(["3", "a title", *declared.split()])
    (task,) = stage.tasks
    assert (stage.number, stage.title, stage.launcher) == (3, "a title", ("local",))
    assert not stage.is_array
    assert task.inputs == ("x", "/y")
    assert task.configs == ("c.yaml", "d.yaml")
    assert task.raws == ("/c",)
    assert task.outputs == ("o/p",)
    assert list(task.argv) == declared.split()


def test_words_with_blanks_quotes_and_line_ends() -> None:
    odd = "a 'b' \"c\" $d\n*é"
    (stage,) = parse(["0", odd, "v", "--out-b", odd, "--set", f"k={odd}"])
    assert stage.title == odd
    assert stage.tasks[0].outputs == (odd,)
    assert stage.tasks[0].argv[-1] == f"k={odd}"


def test_arrays_and_launchers() -> None:
    words = "6 t --cmd local JOB=2:4 --cmd 'slurm --mem 4G' v --in-a i/JOB --out-b o/JOB.x"
    (stage,) = parse(shlex.split(words))
    assert stage.launcher == ("slurm", "--mem", "4G")  # the last one counts
    assert [task.job for task in stage.tasks] == [2, 3, 4]
    assert [task.outputs for task in stage.tasks] == [("o/2.x",), ("o/3.x",), ("o/4.x",)]
    assert stage.tasks[0].inputs == ("i/2",)
    assert stage.patterns == ("o/JOB.x",)


def test_without_neutral_flags() -> None:
    words = "v --in-a x --device cuda --set k=v --num-jobs 3 --out-b y"
    kept = "v --in-a x --set k=v --out-b y"
    assert plan.without(words.split(), *plan.NEUTRAL) == kept.split()


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("3 title", "NUMBER TITLE VERB"),
        ("three title v --out-a x", "'three'"),
        ("3 title --in-a x", "a verb"),
        ("3 title v x --out-a x", "a flag after the verb"),
        ("3 title v --in-a x", "an --out-* flag"),
        ("3 title v --in-a --out-b x", "one path or more"),
        ("3 title v --in-a '' --out-b x", "an empty path"),
        ("3 title v --shard 3 --out-b x", "--set shard=VALUE"),
        ("3 title --cmd 'local -x' v --out-b x", "'local -x'"),
        ("3 title --cmd", "''"),
    ],
)
def test_refused(declared: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(expected)):
        parse(shlex.split(declared))


def test_numbers_that_fall_and_no_stage_at_all() -> None:
    with pytest.raises(ConfigError, match="in the order in which they run"):
        parse(["2", "b", "v", "--out-a", "x"], ["1", "a", "v", "--out-a", "y"])
    with pytest.raises(ConfigError, match="at least one stage"):
        plan.parse([], "/work")
