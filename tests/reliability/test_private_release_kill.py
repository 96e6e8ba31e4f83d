"""A private stage under the stage runner: killed, continued, forced, changed and deleted."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.private_tools import VERB, entries, private_recipe, sums
from tests.support.stage_tools import Tree, environment, kill

pytestmark = pytest.mark.reliability


def keys(tree: Tree) -> list[str]:
    """The keys that are still there."""
    return [path.name for path in (tree.path / "privacy" / "ledger.json.keys").iterdir()]


def drawn_anew(before: dict[str, float], now: dict[str, float]) -> bool:
    """Whether the noise is another: on a grid one value may come twice, but not most of them."""
    return before.keys() == now.keys() and sum(before[name] != now[name] for name in before) > 3


def test_killed_and_continued_spends_once_and_keeps_what_was_released(tmp_path: Path) -> None:
    tree = private_recipe(tmp_path / "tree", seconds=0.3)
    rng = random.Random(7)
    seen: dict[str, float] = {}
    killed_on_the_way = 0
    for _ in range(6):
        process = tree.start()
        time.sleep(rng.uniform(1.2, 2.4))
        killed_on_the_way += process.poll() is None
        kill(process)
        time.sleep(0.2)  # what the runner started ends with it
        now = sums(tree)
        assert {name: now[name] for name in seen} == seen, "a released value was drawn again"
        seen = now
    tree.run()
    assert killed_on_the_way >= 2
    assert {name: sums(tree)[name] for name in seen} == seen and len(sums(tree)) == 6
    assert len(entries(tree)) == 1
    assert keys(tree) == ["seal"], "the key of a finished release is gone"
    assert tree.run().count("up to date") == 5


def test_a_redrawn_round_has_the_same_noise(tmp_path: Path) -> None:
    """Take away a round of an unfinished release: the next run draws the very same value."""
    tree = private_recipe(tmp_path / "tree", seconds=0.5)
    process = tree.start()
    deadline = time.monotonic() + 60
    while len(sums(tree)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    kill(process)
    time.sleep(0.2)
    before = sums(tree)
    assert 2 <= len(before) < 6
    (tree.path / "exp" / "sums" / "0.json").unlink()
    tree.run()
    assert {name: sums(tree)[name] for name in before} == before
    assert len(entries(tree)) == 1


def test_force_other_configuration_and_a_deleted_exp_are_further_releases(tmp_path: Path) -> None:
    tree = private_recipe(tmp_path / "tree")
    tree.run()
    first = sums(tree)
    tree.run("--force", "true")
    forced = sums(tree)
    assert len(entries(tree)) == 2 and drawn_anew(first, forced)
    tree.stages[2][-2] = "rate=0.25"
    assert "--force true" in tree.run(code=2) and sums(tree) == forced and len(entries(tree)) == 2
    tree.run("--force", "true")
    changed = sums(tree)
    assert len(entries(tree)) == 3 and drawn_anew(forced, changed)
    subprocess.run(["rm", "-r", tree.path / "exp"], check=True)
    tree.run()
    assert len(entries(tree)) == 4 and drawn_anew(changed, sums(tree))
    # What the flags about spending say changes no result, and so makes no release.
    tree.stages[2] += ["--max-epsilon", "100"]
    assert tree.run().count("up to date") == 5
    assert len(entries(tree)) == 4


def test_the_budget_stops_a_stage_and_loses_nothing(tmp_path: Path) -> None:
    tree = private_recipe(tmp_path / "tree")
    tree.run()
    before = sums(tree)
    tree.stages[2][-2] = "rate=0.6"
    tree.stages[2] += ["--max-epsilon", "4"]
    text = tree.run("--force", "true", code=2)
    assert "the budget of toy/train" in text and "--max-epsilon" in text
    assert sums(tree) == before and len(entries(tree)) == 1


def report(tree: Tree, *arguments: str, code: int = 0) -> str:
    """What the verb ledger prints."""
    command = [sys.executable, "-m", "privasr_k2.bin.ledger", *arguments]
    options = {"cwd": tree.path, "env": environment()}
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_report_tells_the_guarantee_and_the_lineage(tmp_path: Path) -> None:
    tree = private_recipe(tmp_path / "tree")
    tree.run()
    one = report(tree, "--in-path", "exp/mean.txt", "--out-table", "table.md")
    tree.run("--force", "true")
    two = report(tree, "--in-path", "exp/mean.txt")

    def epsilon(text: str) -> float:
        return float(text.split("epsilon ")[1].split()[0])

    assert epsilon(two) > epsilon(one), "what was spent before is not forgotten"
    for part in ("toy/train", "user of 1,000", "Poisson, rate 0.5", "1 release together"):
        assert part in one
    assert "2 releases together" in two
    assert "spent: stage 2 (noisy sums), exp/privacy.json" in one
    assert "covered by stage 2 (noisy sums): corpus.txt, for the units of that release" in one
    assert "post-processing: stage 3 (mean)" in one
    assert "declared public by stage 2 (noisy sums): words.txt" in one
    assert "does not cover: how many rounds there are" in one
    assert "NO" not in one
    assert "| epsilon (RDP) |" in tree.read("table.md").replace("  ", " ")

    mixed = report(tree, "--in-path", "exp/mixed.txt")
    assert mixed.startswith("NO GUARANTEE holds for this file")
    assert "NOT PROTECTED: stage 0 (data) reads the corpus" in mixed

    whole = report(tree, "--ledger", "privacy/ledger.json")
    assert epsilon(whole) == epsilon(two)
    beside = report(tree, "--in-path", "exp/privacy.json")
    assert epsilon(beside) == epsilon(two)


def test_report_shows_no_epsilon_where_a_ledger_cannot_be_trusted(tmp_path: Path) -> None:
    tree = private_recipe(tmp_path / "tree")
    tree.run()
    ledger = tree.path / "privacy" / "ledger.json"
    cheaper = ('"noise_multiplier": 2.0', '"noise_multiplier": 20.0')
    ledger.write_text(ledger.read_text().replace(*cheaper))
    text = report(tree, "--in-path", "exp/mean.txt", code=2)
    assert "entry 1" in text and " epsilon " not in text
    ledger.unlink()
    text = report(tree, "--in-path", "exp/mean.txt", code=2)
    assert "what was spent is not known" in text and " epsilon " not in text
    subprocess.run(["rm", "-r", tree.path / "privacy"], check=True)
    alone = report(tree, "--in-path", "exp/mean.txt")
    assert alone.startswith("There is no ledger") and "NOT in these figures" in alone
    assert "without a stamp" in report(tree, "--in-path", "corpus.txt", code=2)


def test_a_ledger_without_its_key_says_that_its_end_is_not_checked(tmp_path: Path) -> None:
    tree = private_recipe(tmp_path / "tree")
    tree.run()
    subprocess.run(["rm", "-r", tree.path / "privacy" / "ledger.json.keys"], check=True)
    assert "may be MISSING" in report(tree, "--in-path", "exp/mean.txt").splitlines()[0]


def changed_by_hand(tree: Tree) -> None:
    """A released file is edited after its stage."""
    (tree.path / "exp" / "mean.txt").write_text("0\n")


def unknown_origin(tree: Tree) -> None:
    """A stage reads what somebody has put there."""
    tree.write("exp/brought.txt", "something\n")
    flags = "--in-mean exp/mean.txt --in-more exp/brought.txt --out-late exp/late.txt"
    tree.stage(5, "late", *flags.split())
    tree.run()


def raw_in_the_private_stage(tree: Tree) -> None:
    """The private stage reads the corpus besides what its release covers."""
    tree.write("more.txt", "more of the corpus\n")
    tree.stages[2] += ["--raw-corpus", "more.txt"]
    verb = VERB.replace('"in-private-data",', '"in-private-data", "raw-corpus",')
    (tree.path / "noisy_sums").write_text(verb)
    tree.run("--force", "true")


@pytest.mark.parametrize(
    ("change", "path", "reason"),
    [
        (changed_by_hand, "exp/mean.txt", "exp/mean.txt was changed after stage 3 (mean)"),
        (unknown_origin, "exp/late.txt", "exp/brought.txt, read by stage 5 (late), is of unknown"),
        (raw_in_the_private_stage, "exp/mean.txt", "stage 2 (noisy sums) reads the corpus"),
    ],
)
def test_files_that_are_not_covered_are_told_first(
    tmp_path: Path, change: Callable[[Tree], None], path: str, reason: str
) -> None:
    tree = private_recipe(tmp_path / "tree")
    tree.run()
    change(tree)
    text = report(tree, "--in-path", path)
    assert text.startswith("NO GUARANTEE holds for this file") and reason in text


def test_a_lost_ledger_on_the_way_is_an_error(tmp_path: Path) -> None:
    tree = private_recipe(tmp_path / "tree")
    tree.run()
    (tree.path / "exp" / "privacy.json").unlink()
    text = report(tree, "--in-path", "exp/mean.txt", code=2)
    assert "the ledger of a release" in text and " epsilon " not in text
