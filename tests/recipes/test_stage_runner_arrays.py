"""Job arrays: one stage, a stamp for each job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stage_tools import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Four jobs that read shards, and a stage that reads all that they write."""
    work = Tree(tmp_path / "work")
    array(work, 4)
    return work


def array(tree: Tree, count: int) -> None:
    """Declare the array with ``count`` jobs, and its reader."""
    tree.stages.clear()
    for job in range(1, count + 1):
        if not (tree.path / f"shards/{job}").exists():
            tree.write(f"shards/{job}", f"shard {job}\n")
    decode = "--in-shard shards/JOB --out-hyps exp/decode/JOB.txt --set value=JOB"
    tree.stage(6, "decode", f"JOB=1:{count} {decode}")
    tree.stage(7, "score", "--in-hyps exp/decode --out-score exp/score")


def test_every_job_runs_once_and_is_kept(tree: Tree) -> None:
    tree.run("--nj", "2")
    assert sorted(tree.ran()) == [*(f"exp/decode/{job}.txt" for job in (1, 2, 3, 4)), "exp/score"]
    assert tree.read("exp/decode/3.txt") == "shard 3\nvalue=3\n"
    assert tree.read("exp/score").count("shard") == 4  # no stamp or log is read with the folder
    assert "threads 1" in tree.read("exp/log/decode.JOB.txt/2.log")
    assert tree.run().count("up to date") == 2


def test_only_stale_jobs_run(tree: Tree) -> None:
    tree.run()
    tree.ran()
    tree.write("shards/2", "another shard 2\n")
    (tree.path / "exp/decode/4.txt").unlink()
    assert "2 of 4 jobs" in tree.run()
    assert sorted(tree.ran()) == ["exp/decode/2.txt", "exp/decode/4.txt", "exp/score"]


def test_failed_jobs_are_named_and_the_others_kept(tree: Tree) -> None:
    fails = "[[ $2 != */3 && $2 != */1 ]] || { echo bad shard; exit 4; }\n"
    tree.program("sometimes", fails + 'exec ./copy "$@"\n')
    tree.stages[0][3] = "./sometimes"
    text = tree.run("--nj", "2", code=2)
    assert "jobs 1, 3 of 4 failed (exit code 4)" in text and "bad shard" in text
    assert "exp/log/decode.JOB.txt/1.log, exp/log/decode.JOB.txt/3.log" in text
    assert sorted(tree.ran()) == ["exp/decode/2.txt", "exp/decode/4.txt"]
    tree.program("sometimes", 'exec ./copy "$@"\n')
    tree.run()
    assert sorted(tree.ran()) == ["exp/decode/1.txt", "exp/decode/3.txt", "exp/score"]


def test_a_smaller_array_leaves_nothing_of_the_larger(tree: Tree) -> None:
    tree.run()
    tree.write("exp/decode/notes", "not an output\n")
    tree.write("exp/.stages/decode.JOB.txt/4.before/0", "of an attempt that was killed\n")
    tree.ran()
    array(tree, 2)
    assert "removed exp/decode/3.txt, exp/decode/4.txt" in tree.run()
    assert tree.ran() == ["exp/score"]
    assert tree.read("exp/score") == "shard 1\nvalue=1\nshard 2\nvalue=2\nnot an output\nvalue=\n"
    assert not list((tree.path / "exp/.stages/decode.JOB.txt").glob("[34].*"))


def test_at_most_nj_at_once(tree: Tree) -> None:
    busy = 'mkdir -p busy/shards\ntouch "busy/$2x$$"\nls busy/shards | wc -l >> most\n'
    tree.program("count", busy + 'sleep 0.15\nrm "busy/$2x$$"\nexec ./copy "$@"\n')
    tree.stages[0][3] = "./count"
    tree.run("--nj", "2")
    assert max(int(line) for line in tree.read("most").split()) == 2


def test_refused_before_a_job_has_run(tree: Tree) -> None:
    tree.run("--stop-stage", "6")
    (tree.path / "exp/decode/2.txt").unlink()
    assert "stage 6 (decode)" in tree.run("--stage", "7", code=2)


@pytest.mark.parametrize("jobs", ["JOB=1", "JOB=2:1", "JOB=a:b", "JOB=1:99999"])
def test_bad_ranges(tree: Tree, jobs: str) -> None:
    tree.stages[0][2] = jobs
    assert jobs in tree.run(code=2)


def test_an_output_without_job(tree: Tree) -> None:
    tree.stages[0] = [word.replace("JOB.txt", "all.txt") for word in tree.stages[0]]
    assert "JOB in every output" in tree.run(code=2)
