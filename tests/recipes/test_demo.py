"""./run.sh alone: its chains of recipes and its page, with toys, and the real wiring."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.stage_tools import ROOT, clone, hear_interrupts, run, write_program

#: The options that any recipe of the demonstration is given; each toy has all of them.
NAMES = (
    "adapt_percent", "rounds", "epsilons", "nnlm", "confidence_use", "private_confidence_use",
    "noises", "scratch", "private_trained", "private_lr", "private_rounds", "teachers", "vote",
    "self_trained", "unlabeled_data", "dpsgd_epsilons", "words", "also",
)  # fmt: skip
TOY = f'''\
"""A recipe for tests."""

from dataclasses import dataclass

from privasr_k2.recipe.options import option

@dataclass(frozen=True)
class Options:
    {"; ".join(f"{name}: str = option('', 'anything')" for name in NAMES)}

def stages(r, o):
    read = [getattr(o, name) for name in {NAMES}]
    r.report_path = r.stage(1, "table", str(r.root / "copy"), in_x=r.root / "x",
                            out_report="exp/" + __name__.rsplit(".")[-1] + "/RESULTS.md",
                            set={{"value": f"{{r.command}} {{read}}"}})
'''
RECIPES = {
    "mini": ("ctc", "rescore", "classlm", "fmp", "fedlm", "report"),
    "mini_pate": ("dpsgd", "pate"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The entries of the repository, with toys for recipes."""
    checkout = clone(
        tmp_path / "clone", dict.fromkeys(RECIPES, "description: a corpus for tests\n")
    )
    (checkout / "conf/presets").mkdir(parents=True)
    (checkout / "conf/presets/demo.yaml").write_text("toy: {value: 4}\n")
    (checkout / "conf/presets/tiny.yaml").write_text("toy: {value: 4}\n")
    for recipe in (recipe for recipes in RECIPES.values() for recipe in recipes):
        (checkout / f"local/recipes/{recipe}.py").write_text(TOY)
    return checkout


def results(text: str) -> set[tuple[str, str, str]]:
    """Corpus, recipe and result of each line of the summary."""
    return set(re.findall(r"^(mini\w*) +(\w+) +(done|FAILED) +\d+ s$", text, re.MULTILINE))


def tables(folder: Path, preset: str) -> list[Path]:
    """The tables of all recipes, made with a preset."""
    paths = [*folder.glob("*/exp/*/RESULTS.md")]
    assert len(paths) == 7 and all(f"--preset {preset}" in path.read_text() for path in paths)
    return paths


def test_every_recipe_and_a_page(root: Path) -> None:
    text = run(root)
    pairs = {(corpus, recipe) for corpus, recipes in RECIPES.items() for recipe in recipes}
    assert results(text) == {(*pair, "done") for pair in pairs - {("mini", "report")}}
    assert list((root / "egs/mini/exp").glob("**/RESULTS.md"))  # of the page
    times = {path: path.stat().st_mtime_ns for path in tables(root / "egs/demo", "demo")}
    run(root)
    assert all(path.stat().st_mtime_ns == then for path, then in times.items())  # up to date


def test_a_recipe_that_fails_stops_no_other(root: Path) -> None:
    start = "def stages(r, o):"
    broken = TOY.replace(start, f"{start}\n    r.refuse('it', 'one', 'none', 'stop')")
    (root / "local/recipes/fmp.py").write_text(broken)
    ended = results(run(root, "--nj", "1", code=1))
    assert {("mini", "fmp", "FAILED"), ("mini", "fedlm", "done")} <= ended and len(ended) == 7


def test_an_interrupt_ends_both_chains(root: Path) -> None:
    note = 'echo $$ > "$PRIVASR_ROOT/$(basename "$PWD").pid"\n'
    write_program(root / "slow", f"{note}exec sleep 60\n")
    for recipe in ("ctc", "dpsgd"):
        (root / f"local/recipes/{recipe}.py").write_text(TOY.replace('"copy"', '"slow"'))
    variables = {"PRIVASR_ENV": "current", "PYTHONPATH": str(ROOT), "PRIVASR_ROOT": str(root)}
    session = {"start_new_session": True, "preexec_fn": hear_interrupts}
    running = subprocess.Popen([root / "run.sh"], env={**os.environ, **variables}, **session)
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
    tables(tmp_path / "mine", "tiny")
    assert not (root / "egs/demo").exists() and not (root / "egs/mini/exp").exists()


@pytest.mark.parametrize("words", [("--encoder", "blstm"), ("--nj", "none"), ("--nj",)])
def test_bad_options(root: Path, words: tuple[str, ...]) -> None:
    text = run(root, *words, code=2)
    assert words[0] in text and "way out: " in text
    assert not (root / "egs/demo").exists()


def test_the_wiring_of_the_real_recipes(tmp_path: Path) -> None:
    text = run(ROOT, "--dry-run", "true", "--work-dir", str(tmp_path))
    assert text.count(" done ") == 7
    assert "stage 13 (inversion, white_box, ctc control)" in text
