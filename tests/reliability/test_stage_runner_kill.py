"""SIGKILL at any moment, and run again: the outputs are those of a run that was never killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.stage_tools import Tree, chain, environment, is_gone, kill

pytestmark = pytest.mark.reliability


def recipe(tree: Tree) -> Tree:
    """Files, folders, a folder that is continued, and an array; all verbs are quick."""
    chain(tree)
    tree.stages[2][-1] = "slowly=0.05"
    tree.stages[3] += ["--set", "pause_after=0.03"]
    array = "JOB=1:3 --in-data data/d.txt --out-x exp/m/part/JOB.txt"
    tree.stage(3, "array", f"{array} --set pause_after=0.03 value=JOB")
    tree.stage(4, "all", "--in-parts exp/m/part --out-all exp/m/all")
    return tree


def leftovers(tree: Tree) -> list[str]:
    """Temporaries, attempts and outputs that were kept aside for them."""
    patterns = (".*.tmp.*", ".*.old.*", "*.attempt.json", "*.before", "*.partial")
    return [path.name for pattern in patterns for path in tree.path.rglob(pattern)]


@pytest.mark.parametrize("options", [("--nj", "2"), ("--nj", "2", "--side-by-side", "2")])
def test_killed_at_random_moments(tmp_path: Path, options: tuple[str, ...]) -> None:
    whole = recipe(Tree(tmp_path / "whole"))
    began = time.monotonic()
    whole.run(*options)
    seconds = time.monotonic() - began
    rng = random.Random(20220919)
    survived = 0
    for number in range(8):
        tree = recipe(Tree(tmp_path / f"killed_{number}"))
        for _ in range(3):
            process = tree.start(*options)
            time.sleep(rng.uniform(0.05, seconds))
            survived += process.poll() is not None
            kill(process)
        tree.run(*options)
        assert tree.contents() == whole.contents()
        assert leftovers(tree) == []
        assert tree.run().count("up to date") == 6
    assert survived < 20  # most of the 24 attempts were killed on the way


def test_killed_on_the_way_to_another_configuration(tmp_path: Path) -> None:
    """The rest of an earlier configuration is never continued with a later one."""
    whole = recipe(Tree(tmp_path / "whole"))
    whole.write("model.yaml", "lr: 2\n")
    whole.run()
    rng = random.Random(20220920)
    for number in range(5):
        tree = recipe(Tree(tmp_path / f"killed_{number}"))
        tree.run()
        for text in ("lr: 3\n", "lr: 1\n", "lr: 2\n"):
            tree.write("model.yaml", text)
            process = tree.start()
            time.sleep(rng.uniform(0.15, 0.4))
            kill(process)
        tree.run()
        assert tree.contents() == whole.contents()


def test_killed_on_the_way_to_another_configuration_and_back(tmp_path: Path) -> None:
    """The earlier output is put back, and nothing is made again."""
    tree = recipe(Tree(tmp_path / "work"))
    tree.run()
    file = tree.path / "exp/m/am/first"
    before, inode = tree.contents(), file.stat().st_ino
    tree.write("model.yaml", "lr: 3\n")
    tree.stages[2][-1] = "slowly=30"
    process = tree.start()
    shelf = tree.path / "exp/m/.stages/am.before"
    while not (shelf.exists() and file.exists()):
        time.sleep(0.02)
    kill(process)
    assert next(shelf.glob("*/first")).stat().st_ino == inode
    tree.write("model.yaml", "lr: 1\n")
    tree.stages[2][-1] = "slowly=0.05"
    assert tree.run().count("up to date") == 6
    assert file.stat().st_ino == inode
    assert tree.contents() == before
    assert leftovers(tree) == []


def test_no_child_outlives_a_killed_runner(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "work")
    tree.program("endless", "echo $$ > child\nexec sleep 60\n")
    tree.stage(0, "endless", "./endless --in-x copy --out-y data/y")
    process = tree.start()
    while not (tree.path / "child").exists() or not tree.read("child"):
        time.sleep(0.02)
    kill(process)
    assert is_gone(tree.read("child").strip())


def test_no_warm_child_outlives_a_killed_runner(tmp_path: Path) -> None:
    """The server dies with the runner, and its children with the server."""
    (tmp_path / "sleeps.py").write_text("import time\ntime.sleep(60)\n")
    script = (
        "import os, time\nfrom pathlib import Path\nfrom privasr_k2.recipe.warm import WarmServer\n"
        "server = WarmServer(dict(os.environ), Path.cwd())\n"
        "process = server.start('sleeps', [], Path('log'), {})\n"
        "print(server._process.pid, process.pid, flush=True)\ntime.sleep(60)\n"
    )
    shared = {"cwd": tmp_path, "env": environment(), "stdout": subprocess.PIPE, "text": True}
    runner = subprocess.Popen([sys.executable, "-c", script], **shared)
    assert runner.stdout is not None
    server, child = runner.stdout.readline().split()
    assert not is_gone(server, 0.1) and not is_gone(child, 0.1)
    kill(runner)
    assert is_gone(server) and is_gone(child)


def test_a_new_run_ends_what_a_killed_verb_has_started(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "work")
    tree.program("forks", "(sleep 3; echo late > late) &\ntouch begun\nsleep 60\n")
    tree.stage(0, "forks", "./forks --in-x copy --out-y data/y")
    process = tree.start()
    while not (tree.path / "begun").exists():
        time.sleep(0.02)
    kill(process)
    tree.program("forks", 'exec ./copy "$@"\n')
    assert "ending what a killed run has left" in tree.run()
    time.sleep(3.2)
    assert not (tree.path / "late").exists()


def test_killed_with_its_shell(tmp_path: Path) -> None:
    """The runner ends when the shell that has started it is killed."""
    tree = chain(Tree(tmp_path / "work"))
    tree.stages[2][-1] = "slowly=60"
    command = ["bash", "-c", '"$@"; true', "bash", *tree.command()]
    shell = subprocess.Popen(command, cwd=tree.path, env=environment())
    while not (tree.path / "exp/m/am/first").exists():
        time.sleep(0.02)
    kill(shell)
    tree.stages[2][-1] = "slowly=0"
    began = time.monotonic()
    tree.run()
    assert time.monotonic() - began < 20
