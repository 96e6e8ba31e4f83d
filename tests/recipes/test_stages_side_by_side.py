"""``--side-by-side``: stages of one number that run at once, that wait, and that fail.

The order of stages that run at once is not defined: ``gate`` lets one wait for the other's file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stage_tools import Tree

TWO = ("--nj", "2", "--side-by-side", "2")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "work")
    tree.write("corpus.txt", "words\n")
    return tree


def add(tree: Tree, number: int, name: str, *words: str, reads: str = "corpus.txt") -> None:
    tree.stage(number, name, f"--in-data {reads} --out-data exp/{name}", *words)


def test_stages_of_a_number_that_do_not_need_each_other_run_at_once(tree: Tree) -> None:
    add(tree, 1, "a", "--set", "gate=exp/b")  # waits for what the other writes
    add(tree, 1, "b")
    add(tree, 2, "c", reads="exp/a")
    text = tree.run(*TWO)
    ran = tree.ran()
    assert sorted(ran[:2]) == ["exp/a", "exp/b"] and ran[2:] == ["exp/c"]
    ended = [text.index(f"/3] {name} ... done") for name in "ab"]
    assert max(ended) < text.index("[stage 2, 3/3] c")
    assert tree.run(*TWO).count("up to date") == 3 and tree.ran() == []
    assert tree.run().count("up to date") == 3


def test_a_stage_waits_for_what_it_reads_and_a_number_for_the_one_before(tree: Tree) -> None:
    add(tree, 1, "slow", "--set", "gate=exp/free")  # which runs at the same time
    add(tree, 1, "needs", reads="exp/slow")
    add(tree, 1, "free")
    add(tree, 2, "next")
    tree.run("--nj", "4", "--side-by-side", "4")
    ran = tree.ran()
    assert sorted(ran[:2]) == ["exp/free", "exp/slow"] and ran[2:] == ["exp/needs", "exp/next"]


def test_one_at_a_time_by_default(tree: Tree) -> None:
    add(tree, 1, "slow", "--set", "pause_after=0.3")
    add(tree, 1, "free", "--set", "pause_after=0.1")
    text = tree.run("--nj", "2")
    assert text.index("slow ... done") < text.index("free ... log in")


def test_no_more_processes_than_jobs(tree: Tree) -> None:
    for name in "abc":
        words = f"--in-data corpus.txt --out-data exp/{name}/JOB --set pause_after=0.3"
        tree.stage(1, name, f"JOB=1:3 {words}")
    process = tree.start("--nj", "2", "--side-by-side", "3")
    most = 0
    while process.poll() is None:
        most = max(most, len(list((tree.path / "exp").glob("*/.12345678.tmp.*"))))
    assert process.returncode == 0, process.communicate()
    assert most == 2 and len(tree.ran()) == 9


def test_a_failure_lets_the_others_end_and_nothing_begin(tree: Tree) -> None:
    add(tree, 1, "bad", "--set", "fail=1")
    gate = "gate=exp/.12345678.tmp.bad"  # it ends after the other
    add(tree, 1, "good", "--set", gate, "pause_after=1")
    add(tree, 1, "third")
    add(tree, 2, "later")
    text = tree.run(*TWO, code=2)
    assert "this went wrong" in text and "[stage 1, 2/4] good ... done" in text
    assert "error: stage 1 (bad): expected exit code 0" in text and "third" not in text
    assert sorted(tree.ran()) == ["exp/bad", "exp/good"] and (tree.path / "exp/good").exists()
    tree.stages[0] = [word for word in tree.stages[0] if word not in ("--set", "fail=1")]
    assert "[stage 1, 2/4] good ... up to date" in tree.run(*TWO)
    assert sorted(tree.ran()) == ["exp/bad", "exp/later", "exp/third"]


def test_two_that_fail_are_both_shown(tree: Tree) -> None:
    add(tree, 1, "a", "--set", "fail=1")
    add(tree, 1, "b", "--set", "fail=1")
    assert tree.run(*TWO, code=2).count("this went wrong") == 2


def test_what_spends_within_a_limit_keeps_its_order(tree: Tree) -> None:
    limit = ("--ledger", "ledger.json", "--max-epsilon", "3")
    add(tree, 1, "first", *limit, "--set", "gate=exp/free")  # which runs at the same time
    add(tree, 1, "second", *limit)
    add(tree, 1, "free")
    tree.run("--nj", "3", "--side-by-side", "3")
    ran = tree.ran()
    assert sorted(ran[:2]) == ["exp/first", "exp/free"] and ran[2:] == ["exp/second"]


def test_threads_are_shared(tree: Tree) -> None:
    add(tree, 1, "a", "--num-jobs", "4")
    add(tree, 1, "b")
    tree.run("--nj", "4", "--side-by-side", "2")
    log = tree.read("exp/log/a.log")
    assert "--num-jobs 2" in log and "threads 2" in log
    assert "threads 2" in tree.read("exp/log/b.log")
    tree.run("--nj", "4", "--force", "true")
    log = tree.read("exp/log/a.log")
    assert "--num-jobs 4" in log and "threads unset" in log
