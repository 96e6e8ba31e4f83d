"""./run.sh alone: its chains of recipes and its page, with small recipes; and the wiring of the
real ones.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.stage_tools import ROOT, clone, hear_interrupts

#: Every recipe of the demonstration, one stage each; all have the options that any of them is
#: given.
NAMES = (
    "adapt_percent", "rounds", "epsilons", "nnlm", "confidence_use", "private_confidence_use", "noises",
    "scratch", "teachers", "vote", "self_trained", "unlabeled_data", "dpsgd_epsilons", "words", "also",
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
    made = clone(
        tmp_path / "clone", {name: "description: a corpus for tests\n" for name in RECIPES}
    )
    (made / "conf/presets").mkdir(parents=True)
    (made / "conf/presets/demo.yaml").write_text("toy: {value: 4}\n")
    (made / "conf/presets/tiny.yaml").write_text("toy: {value: 4}\n")
    for recipe in (recipe for recipes in RECIPES.values() for recipe in recipes):
        (made / f"local/recipes/{recipe}.py").write_text(TOY)
    return made


def run(root: Path, *words: str, code: int = 0, cwd: Path | None = None) -> str:
    """Run ./run.sh; both outputs together."""
    environment = {**os.environ, "PRIVASR_ENV": "current", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [root / "run.sh", *words], cwd=cwd or root, env=environment, capture_output=True, text=True
    )
    text = done.stdout + done.stderr
    assert done.returncode == code and "Traceback" not in text, text
    return text


def results(text: str) -> set[tuple[str, str, str]]:
    """Corpus, recipe and result of each line of the summary."""
    return set(re.findall(r"^(mini\w*) +(\w+) +(done|FAILED) +\d+ s$", text, re.MULTILINE))


def test_every_recipe_and_a_page(root: Path) -> None:
    text = run(root)
    chains = {"mini": RECIPES["mini"][:-1], "mini_pate": RECIPES["mini_pate"]}
    assert results(text) == {
        (c, recipe, "done") for c, recipes in chains.items() for recipe in recipes
    }
    assert list((root / "egs/mini/exp").glob("**/RESULTS.md"))  # of the page
    tables = [path.read_text() for path in (root / "egs/demo").glob("*/exp/*/RESULTS.md")]
    assert len(tables) == 7 and all("--preset demo" in table for table in tables)
    times = {
        path: path.stat().st_mtime_ns for path in (root / "egs/demo").glob("*/exp/*/RESULTS.md")
    }
    run(root)
    assert all(path.stat().st_mtime_ns == then for path, then in times.items())  # up to date


def test_a_recipe_that_fails_stops_no_other(root: Path) -> None:
    broken = TOY.replace(
        "def stages(r, o):", "def stages(r, o):\n    r.refuse('it', 'one', 'none', 'stop')"
    )
    (root / "local/recipes/fmp.py").write_text(broken)
    found = results(run(root, "--nj", "1", code=1))
    assert {("mini", "fmp", "FAILED"), ("mini", "fedlm", "done")} <= found and len(found) == 7


def test_an_interrupt_ends_both_chains(root: Path) -> None:
    slow = root / "slow"
    slow.write_text(
        '#!/usr/bin/env bash\necho $$ > "$PRIVASR_ROOT/$(basename "$PWD").pid"\nexec sleep 60\n'
    )
    slow.chmod(0o755)
    for recipe in ("ctc", "dpsgd"):
        (root / f"local/recipes/{recipe}.py").write_text(TOY.replace('"copy"', '"slow"'))
    environment = {
        **os.environ,
        "PRIVASR_ENV": "current",
        "PYTHONPATH": str(ROOT),
        "PRIVASR_ROOT": str(root),
    }
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
    tables = [path.read_text() for path in (tmp_path / "mine").glob("*/exp/*/RESULTS.md")]
    assert len(tables) == 7 and all("--preset tiny" in table for table in tables)
    assert not (root / "egs/demo").exists() and not (root / "egs/mini/exp").exists()


@pytest.mark.parametrize(
    ("words", "parts"), [(("--encoder", "blstm"), ["--encoder"]), (("--nj", "none"), ["--nj", "none"]),
                         (("--nj",), ["--nj"])],
)  # fmt: skip
def test_bad_options(root: Path, words: tuple[str, ...], parts: list[str]) -> None:
    text = run(root, *words, code=2)
    assert all(part in text for part in parts) and "way out: " in text
    assert not (root / "egs/demo").exists()


def test_the_wiring_of_the_real_recipes(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "run.sh", "--dry-run", "true", "--work-dir", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" done ") == 7
    assert "stage 13 (inversion, white_box, ctc control)" in done.stdout
