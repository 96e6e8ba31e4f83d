"""./run.sh alone: its chains of recipes and its page, with small recipes; and the wiring of the real ones."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.shell import CORPUS, run

from tests.support.stage_tools import ROOT, hear_interrupts, shell_clone

#: Every recipe of the demonstration, one stage each; all have the options that any of them is given.
TOY = """\
# A recipe for tests.
sizes='' rounds='' epsilons='' nnlm='' ways='' private_ways='' noises='' scratch=''
teachers='' vote='' self_trained='' dpsgd_epsilons='' words=''
. parse_options.sh
report=exp/${recipe}_toy/RESULTS.md
stage 1 "table" "$PRIVASR_ROOT/copy" --in-x "$PRIVASR_ROOT/x" --out-report "$report" \\
  --set "value=# $command_line"
"""
RECIPES = {"mini": ("ctc", "rescore", "classlm", "fmp", "fedlm"), "mini_pate": ("dpsgd", "pate")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The shell files of the repository, with toys for recipes; the real one makes the page."""
    corpora = {name: CORPUS.replace("corpus=little", f"corpus={name}") for name in RECIPES}
    made = shell_clone(tmp_path / "clone", corpora)
    shutil.copy(ROOT / "local/recipes/report.sh", made / "local/recipes")
    for recipes in RECIPES.values():
        for recipe in recipes:
            (made / f"local/recipes/{recipe}.sh").write_text(TOY)
    return made


def test_every_recipe_and_one_page(root: Path) -> None:
    said = run(root)
    page = (root / "egs/mini/exp/RESULTS.md").read_text()
    for corpus, recipes in RECIPES.items():
        for recipe in recipes:
            assert re.search(rf"^{corpus} +{recipe} +done", said, re.MULTILINE), said
            assert f"./run.sh {corpus} {recipe} --size 'demo'" in page
    assert "mini_pate | stage 1 (table) ... done" in said
    assert "<title>mini</title>" in (root / "egs/mini/exp/report.html").read_text()
    assert run(root).count("up to date") == 8


def test_a_recipe_that_fails_stops_no_other(root: Path) -> None:
    (root / "local/recipes/fmp.sh").write_text(TOY + "false\n")
    said = run(root, "--nj", "1", code=1)
    assert re.search(r"^mini +fmp +FAILED", said, re.MULTILINE) and re.search(
        r"^mini +fedlm +done", said, re.MULTILINE
    )
    assert "./run.sh mini fmp" not in (root / "egs/mini/exp/RESULTS.md").read_text()


def test_an_interrupt_ends_both_chains(root: Path) -> None:
    slow = root / "slow"
    slow.write_text('#!/usr/bin/env bash\necho $$ > "$PRIVASR_ROOT/$(basename "$PWD").pid"\nexec sleep 60\n')
    slow.chmod(0o755)
    for recipe in ("ctc", "dpsgd"):
        (root / f"local/recipes/{recipe}.sh").write_text(TOY.replace("/copy", "/slow"))
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
    run(root, "--work-dir", "mine", "--size", "tiny", cwd=tmp_path)
    assert "--size 'tiny'" in (tmp_path / "mine/exp/RESULTS.md").read_text()
    assert not (root / "egs/demo").exists() and not (root / "egs/mini/exp").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--encoder", "blstm"), "name the corpus and the recipe before it: ./run.sh mini ctc --encoder"),
        (("--nj", "none"), "a whole number above 0, found 'none'"),
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
