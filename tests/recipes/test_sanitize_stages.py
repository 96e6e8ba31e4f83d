"""Tagging, sanitizing and its report as stages: what is spent, and the lineage of each file."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.fileio import read_lines, write_jsonl
from privasr_k2.privacy.events import is_unprotected
from privasr_k2.privacy.lineage import lineage
from tests.support.conf import section
from tests.support.private_tools import entries
from tests.support.stage_tools import Tree


def recipe(path: Path) -> Tree:
    """corpus -> tagged -> sanitized -> what is made of it, and the owner's report."""
    tree = Tree(path)
    lines = [f"Ask Ann or Bob in Bath about number {n} .\n" for n in range(200)]
    tree.write("corpus.txt", "".join(lines))
    tree.write("lists/per.txt", "Ann\nBob\nEve\nLee\n")
    tree.write("lists/loc.txt", "Bath\nRome\n")
    tag, sanitize = (f"--config {section(name)} --set" for name in ("tag_entities", "sanitize"))
    tag = f"tag_entities --in-text corpus.txt --in-public-lists lists {tag} taggers=[gazetteer]"
    tree.stage(1, "tag", f"{tag} --out-text data/tagged.jsonl.gz")
    sanitize = f"sanitize_text --in-private-text data/tagged.jsonl.gz {sanitize} data=toy/train"
    sanitize += " --in-public-lists lists --ledger privacy/ledger.json"
    tree.stage(2, "sanitize", f"{sanitize} --out-dir exp/sanitized --out-privacy exp/privacy.json")
    tree.stage(3, "model", "--in-text exp/sanitized --out-model exp/model.txt --set folder=1")
    report = "report_entities --in-text data/tagged.jsonl.gz --in-sanitized exp/sanitized"
    tree.stage(4, "report", f"{report} --in-privacy exp/privacy.json --out-report exp/r.json")
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


def test_lists_that_a_stage_has_made_of_the_private_text_are_refused(tmp_path: Path) -> None:
    tree = recipe(tmp_path / "tree")
    rome = {"id": "1", "text": "rome", "entities": [[0, 1, "LOC"]]}
    write_jsonl(tree.path / "other.jsonl", [rome])
    lists = "make_name_lists --in-tagged data/tagged.jsonl.gz other.jsonl"
    lists += f" --config {section('name_lists')}"
    [tag, sanitize] = tree.stages[:2]
    tree.stages = [tag]
    tree.stage(2, "lists of it", f"{lists} --out-lists data/lists")
    tree.stages.append([word.replace("lists", "data/lists") if word == "lists" else word
                        for word in sanitize])  # fmt: skip
    assert "exit code 2" in tree.run(code=2)
    log = tree.read("exp/log/sanitized.log")
    assert "--in-public-lists data/lists" in log and "stage 2 (lists of it)" in log
    assert not (tree.path / "exp/sanitized").exists() and not (tree.path / "privacy").exists()
    tree.stages[-1] += ["--public-from-private", "true"]
    tree.run()
    [entry] = entries(tree)
    assert is_unprotected(entry.spending.event)
    tree.stages[-1] = tree.stages[-1][:-2]  # it is neutral: nothing is spent again
    assert "up to date" in tree.run() and len(entries(tree)) == 1
