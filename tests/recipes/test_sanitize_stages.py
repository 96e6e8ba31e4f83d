"""Tagging, sanitizing and its report as stages: what is spent when, and what a lineage says of each
file.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.fileio import read_lines
from privasr_k2.privacy.lineage import lineage
from tests.support.conf import section
from tests.support.private_tools import entries
from tests.support.stage_tools import Tree


def recipe(path: Path) -> Tree:
    """corpus -> tagged -> sanitized -> what is made of it, and the owner's report."""
    tree = Tree(path)
    tree.write(
        "corpus.txt", "".join(f"Ask Ann or Bob in Bath about number {n} .\n" for n in range(200))
    )
    for name, names in (("per", "Ann\nBob\nEve\nLee\n"), ("loc", "Bath\nRome\n")):
        tree.write(f"lists/{name}.txt", names)
    tree.stage(
        *(
            1,
            "tag",
            "tag_entities",
            "--in-text",
            "corpus.txt",
            "--out-text",
            "data/tagged.jsonl.gz",
        ),
        *("--in-public-lists", "lists", "--config", str(section("tag_entities"))),
        *("--set", "taggers=[gazetteer]"),
    )
    tree.stage(
        *(2, "sanitize", "sanitize_text", "--in-private-text", "data/tagged.jsonl.gz"),
        *(
            "--in-public-lists",
            "lists",
            "--out-dir",
            "exp/sanitized",
            "--out-privacy",
            "exp/privacy.json",
        ),
        *(
            "--ledger",
            "privacy/ledger.json",
            "--config",
            str(section("sanitize")),
            "--set",
            "data=toy/train",
        ),
    )
    tree.stage(
        3,
        "model",
        "--in-text",
        "exp/sanitized",
        "--out-model",
        "exp/model.txt",
        "--set",
        "folder=1",
    )
    tree.stage(
        *(4, "report", "report_entities", "--in-text", "data/tagged.jsonl.gz"),
        *(
            "--in-sanitized",
            "exp/sanitized",
            "--in-privacy",
            "exp/privacy.json",
            "--out-report",
            "exp/r.json",
        ),
    )
    return tree


def text(tree: Tree) -> list[str]:
    """The sanitized sentences."""
    return [line for _, line in read_lines(tree.path / "exp/sanitized/text.txt.gz")]


def test_stages_spend_once_and_a_rerun_is_another_release(tmp_path: Path) -> None:
    tree = recipe(tmp_path / "tree")
    tree.run()
    first = text(tree)
    assert len(set(line.split()[1] for line in first)) == 4
    numbers = [int(line.rsplit(" ", 1)[1]) for line in first]  # in a secret order
    assert sorted(numbers) == list(range(len(numbers))) != numbers
    tree.run()
    assert text(tree) == first and len(entries(tree)) == 1
    tree.run("--stage", "2", "--stop-stage", "2", "--force", "true")
    assert text(tree) != first and len(entries(tree)) == 2
    assert entries(tree)[0].spending == entries(tree)[1].spending


def test_what_is_made_of_sanitized_text_is_covered_and_the_report_is_not(tmp_path: Path) -> None:
    tree = recipe(tmp_path / "tree")
    tree.run()
    model = lineage(tree.path / "exp/model.txt", tree.path)
    assert model.is_covered and model.spent == {"stage 2 (sanitize)": "exp/privacy.json"}
    assert model.public == [("stage 2 (sanitize)", "lists")]
    assert not lineage(tree.path / "exp/r.json", tree.path).is_covered
