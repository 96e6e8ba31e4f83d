"""What a changed command, corpus or preset means for a folder with finished work and releases."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from privasr_k2.privacy.ledger import Ledger
from tests.support.private_tools import VERB
from tests.support.stage_tools import run, write_program
from tests.support.toy_recipe import toy_checkout

PRIVATE = '''\
"""A private recipe for tests: noisy sums."""

from dataclasses import dataclass

@dataclass(frozen=True)
class Options:
    pass

def stages(r, o):
    r.stage(1, "sums", str(r.root / "noisy_sums"), in_private_data=r.root / "numbers", spends=True,
            out_dir="exp/sums", out_privacy="exp/privacy.json",
            set={"rounds": 6, "noise": 2.0, "rate": 0.5, "seconds": 0})
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return toy_checkout(tmp_path / "clone")


def add_private_recipe(root: Path) -> None:
    """Add the recipe ``private`` with its verb and data."""
    (root / "local/recipes/private.py").write_text(PRIVATE)
    write_program(root / "noisy_sums", VERB)
    (root / "numbers").write_text("1\n0\n1\n")


def test_ledger_and_limit_of_a_private_recipe(root: Path, tmp_path: Path) -> None:
    """--max-epsilon refuses to start; another ledger makes nothing run again, nor forget."""
    add_private_recipe(root)
    text = run(root, "little", "private", "--max-epsilon", "1", code=2)
    assert "3.07 at delta 1e-05" in text
    work = root / "egs/little"
    assert not (work / "exp/privacy.json").exists()
    assert Ledger(work / "privacy/ledger.json").entries() == ()

    run(root, "little", "private", "--max-epsilon", "4")
    assert (work / "privacy/ledger.json").exists()
    run(root, "little", "private", "--max-epsilon", "4", "--force", "true", "--stage", "1", code=2)
    (tmp_path / "a folder").mkdir()
    words = ("little", "private", "--ledger", "a folder/spent.json")
    text = run(root, *words, cwd=tmp_path)
    assert text.count("up to date") == 1 and not (tmp_path / "a folder/spent.json").exists()
    # Another ledger would count from zero: what was released in this folder is missing there.
    text = run(root, *words, "--force", "true", cwd=tmp_path, code=2)
    assert "1 that it lacks" in text and (work / "exp/privacy.json").exists()
    assert Ledger(tmp_path / "a folder/spent.json").entries() == ()


def test_a_finished_release_is_not_made_again_by_a_change(root: Path) -> None:
    add_private_recipe(root)
    run(root, "little", "private")
    work = root / "egs/little"
    released = (work / "exp/sums/0.json").read_bytes()
    (root / "local/recipes/private.py").write_text(PRIVATE.replace('"rounds": 6', '"rounds": 5'))
    text = run(root, "little", "private", code=2)
    assert "stage 1 (sums)" in text and "rounds=5" in text and "--force true" in text
    (root / "local/recipes/private.py").write_text(PRIVATE)
    (root / "numbers").write_text("1\n1\n1\n")
    assert "numbers changed" in run(root, "little", "private", code=2)
    assert (work / "exp/sums/0.json").read_bytes() == released
    assert len(Ledger(work / "privacy/ledger.json").entries()) == 1
    run(root, "little", "private", "--force", "true")
    assert len(Ledger(work / "privacy/ledger.json").entries()) == 2


def test_a_folder_has_one_preset(root: Path) -> None:
    run(root, "little", "ctc", "--preset", "tiny")
    text = run(root, "little", "ctc", code=2)
    assert "--preset tiny" in text and "--preset small, the default" in text
    assert run(root, "little", "ctc", "--preset", "tiny").count("up to date") == 2
    assert "--preset tiny" in run(root, "little", "ctc", "--dry-run", "true", code=2)
    run(root, "little", "ctc", "--work-dir", "other", cwd=root)
    (root / "egs/little/.stages/preset").unlink()  # as an earlier version left it
    assert "--preset tiny" in run(root, "little", "ctc", code=2)


TAKES = PRIVATE.replace(
    "def stages(r, o):\n",
    "def stages(r, o):\n"
    '    r.stage(0, "numbers", str(r.root / "take"), raw_corpus=r.root / "raw",\n'
    '            out_data="data/numbers")\n',
).replace('r.root / "numbers", spends', '"data/numbers", spends')


def test_an_edited_corpus_is_refused_before_anything_behind_a_release_runs(root: Path) -> None:
    add_private_recipe(root)
    (root / "local/recipes/private.py").write_text(TAKES)
    write_program(root / "take", 'cp "$2/numbers" "$4"\n')
    (root / "raw").mkdir()
    (root / "raw/numbers").write_text("1\n0\n1\n")
    (root / "raw/a.wav").write_text("sound")
    run(root, "little", "private")
    work = root / "egs/little"
    released = (work / "exp/sums/0.json").read_bytes()
    # Audio that was touched: stage 0 runs, and the release stands.
    os.utime(root / "raw/a.wav", ns=(0, 0))
    text = run(root, "little", "private")
    assert "sizes and times of audio) changed" in text and text.count("up to date") == 1
    (root / "raw/numbers").write_text("1\n1\n1\n")
    text = run(root, "little", "private", code=2)
    assert "stage 1 (sums)" in text and "raw (text and lists) changed" in text
    assert "--stop-stage 0" in text and "--force true" in text and "--work-dir" in text
    assert (work / "data/numbers").read_text() == "1\n0\n1\n"  # nothing ran
    # The way out that spends nothing tells whether the release's own inputs changed.
    run(root, "little", "private", "--stop-stage", "0")
    assert "data/numbers changed" in run(root, "little", "private", code=2)
    (root / "raw/numbers").write_text("1\n0\n1\n")
    run(root, "little", "private", "--stop-stage", "0")
    assert run(root, "little", "private").count("up to date") == 2
    (root / "raw/readme.txt").write_text("nobody reads it\n")
    assert "that" in run(root, "little", "private", code=2)
    run(root, "little", "private", "--stop-stage", "0")
    assert run(root, "little", "private").count("up to date") == 2
    assert (work / "exp/sums/0.json").read_bytes() == released
    assert len(Ledger(work / "privacy/ledger.json").entries()) == 1
