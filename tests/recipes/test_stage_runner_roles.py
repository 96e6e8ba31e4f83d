"""Roles of a corpus that stages read: a missing one stops the run before the first training."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stage_tools import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A work folder."""
    return Tree(tmp_path / "work")


def test_a_role_that_the_corpus_lacks_stops_the_run_once_manifests_are_made(tree: Tree) -> None:
    tree.program(
        "prepare", "mkdir -p data/m\ntouch data/m/cuts_dev.jsonl.gz data/m/cuts_train.jsonl.gz"
    )
    tree.stage(0, "manifests", "./prepare --out-dir data/m")
    tree.stage(1, "model", "--in-cuts data/m/cuts_train.jsonl.gz --out-a exp/a.txt")
    tree.stage(2, "clients", "--in-cuts data/m/cuts_adapt.jsonl.gz --out-b exp/b.txt")
    text = tree.run(code=2)
    assert "found those of dev train" in text and "adapt_fraction=0.3" in text
    assert tree.ran() == []  # not the model
    tree.run("--stop-stage", "1")
    assert tree.ran() == ["exp/a.txt"]


def test_a_role_that_a_stage_sets_is_looked_for_in_all_its_folders(tree: Tree) -> None:
    tree.program("prepare", 'mkdir -p "$2" "$4"\ntouch $2/cuts_dev.jsonl.gz $4/cuts_pool.jsonl.gz')
    tree.stage(0, "manifests", "./prepare --out-a data/a --out-b data/b")
    tree.stage(1, "model", "--in-cuts data/a --out-a exp/a.txt --set role=dev")
    tree.stage(2, "labels", "--in-a data/a --in-b data/b --out-c exp/c.txt --set role=pool")
    tree.run()
    assert tree.ran() == ["exp/a.txt", "exp/c.txt"]
    tree.stage(3, "lists", "--in-a data/a --in-c exp/c.txt --out-d exp/d.txt --set role=pool")
    assert "data/a/cuts_pool.jsonl.gz" in tree.run(code=2)
    assert tree.ran() == []
