"""./run.sh alone: its chains of recipes and its page, with small recipes; and the wiring of the real ones."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.stage_tools import CORPUS, ROOT, clone, hear_interrupts, run

#: Stands for every recipe: one stage; it has the options that any of them is given.
TOY = '''\
"""A recipe for tests."""

from dataclasses import dataclass, fields

from privasr_k2.recipe.options import option

@dataclass(frozen=True)
class Options:
    adapt_percent: str = option("", "")
    rounds: str = option("", "")
    epsilons: str = option("", "")
    nnlm: str = option("", "")
    confidence_use: str = option("", "")
    private_confidence_use: str = option("", "")
    noises: str = option("", "")
    scratch: str = option("", "")
    teachers: str = option("", "")
    vote: str = option("", "")
    self_trained: str = option("", "")
    unlabeled_data: str = option("", "")
    dpsgd_epsilons: str = option("", "")
    words: str = option("", "")
    also: str = option("", "")

def stages(r, o):
    values = [getattr(o, field.name) for field in fields(Options)]
    r.report_path = r.stage(1, "table", str(r.root / "copy"), in_x=r.root / "x",
                            out_report=f"exp/{r.name}_toy/RESULTS.md", set={"value": f"# {r.command}"})
'''
RECIPES = {"mini": ("ctc", "rescore", "classlm", "fmp", "fedlm"), "mini_pate": ("dpsgd", "pate")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The entries of the repository, with toys for recipes and for the page."""
    made = clone(tmp_path / "clone", dict.fromkeys(RECIPES, CORPUS))
    for recipe in (*(name for recipes in RECIPES.values() for name in recipes), "report"):
        (made / f"local/recipes/{recipe}.py").write_text(TOY)
    for corpus in RECIPES:
        (made / f"egs/{corpus}/corpus").mkdir()
    return made


def command(folder: Path, recipe: str) -> str:
    """What a toy has written."""
    return (folder / f"exp/{recipe}_toy/RESULTS.md").read_text()


def test_every_recipe_and_one_page(root: Path) -> None:
    text = run(root)
    for corpus, recipes in RECIPES.items():
        for recipe in recipes:
            assert re.search(rf"^{corpus} +{recipe} +done", text, re.MULTILINE), text
            wanted = f"./run.sh {corpus} {recipe} --preset demo"
            assert wanted in command(root / f"egs/demo/{corpus}", recipe)
    assert "mini_pate | [1/1] table ... done" in text
    assert "egs/demo/mini_pate" in command(root / "egs/mini", "report")
    assert run(root).count("up to date") == 8


def test_a_recipe_that_fails_stops_no_other(root: Path) -> None:
    (root / "local/recipes/fmp.py").write_text(
        TOY.replace("    values =", "    r.refuse('a', 'b', 'c', 'd')\n    values =")
    )
    text = run(root, "--nj", "1", code=1)
    assert re.search(r"^mini +fmp +FAILED", text, re.MULTILINE)
    assert re.search(r"^mini +fedlm +done", text, re.MULTILINE)


def test_an_interrupt_ends_both_chains(root: Path) -> None:
    slow = root / "slow"
    slow.write_text('#!/usr/bin/env bash\necho $$ > "$PRIVASR_ROOT/$(basename "$PWD").pid"\nexec sleep 60\n')
    slow.chmod(0o755)
    for recipe in ("ctc", "dpsgd"):
        (root / f"local/recipes/{recipe}.py").write_text(TOY.replace('"copy"', '"slow"'))
    environment = {**os.environ, "PRIVASR_ENV": "current", "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        [root / "run.sh"], env=environment, start_new_session=True, preexec_fn=hear_interrupts
    )
    pids = [root / f"{name}.pid" for name in RECIPES]
    wait_for(lambda: all(pid.exists() and pid.read_text() for pid in pids))
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(30) >= 128
    wait_for(lambda: not any(Path("/proc", pid.read_text().strip()).exists() for pid in pids))


def wait_for(happened: Callable[[], bool]) -> None:
    """Give something half a minute."""
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)


def test_another_folder(root: Path, tmp_path: Path) -> None:
    run(root, "--work-dir", "mine", "--preset", "tiny", cwd=tmp_path)
    assert "--preset tiny" in command(tmp_path / "mine/mini", "ctc")
    assert command(tmp_path / "mine", "report")
    assert not (root / "egs/demo").exists() and not (root / "egs/mini/exp").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--encoder", "blstm"), "--encoder"),
        (("--size", "tiny"), "--preset"),
        (("--nj", "none"), "a whole number"),
        (("--nj",), "--nj: expected a value"),
    ],
)
def test_bad_options(root: Path, words: tuple[str, ...], part: str) -> None:
    said = run(root, *words, code=2)
    assert part in said and "way out: " in said
    assert not (root / "egs/demo").exists()


def test_the_wiring_of_the_real_recipes(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "run.sh", "--dry-run", "true", "--work-dir", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" done ") == sum(map(len, RECIPES.values()))
    assert "stage 13 (inversion, white_box, ctc control)" in done.stdout
