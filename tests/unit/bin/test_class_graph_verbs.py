"""compile_graph with a class LM, and replace_names, from the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from privasr_k2.bin import cli
from privasr_k2.graph.lang import file_hash, symbols_text
from privasr_k2.lm.class_files import save_class_lm
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.sub_lm import make_sub_lm, write_sub_lm
from tests.support.conf import section

WORDS = ["ann", "bob", "call", "lee"]
pytestmark = pytest.mark.k2


def call(monkeypatch: pytest.MonkeyPatch, verb: str, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [verb, *map(str, arguments)])
    cli.run(importlib.import_module(f"privasr_k2.bin.{verb}").main)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    pytest.importorskip("k2")
    (tmp_path / "lang").mkdir()
    (tmp_path / "lang/tokens.txt").write_text(symbols_text(["<blk>", "A", "B", "L", "N"]))
    (tmp_path / "lang/words.txt").write_text(symbols_text(["<eps>", *WORDS, "#0"]))
    (tmp_path / "lang/lexicon.txt").write_text("ann A N\nbob B A B\ncall A L\nlee L\n")
    text = [["call", "<PER>"], ["<PER>"], ["call", "lee"]]
    root = estimate(count_ngrams(text, [*WORDS, "<PER>"], order=2), "witten_bell")
    save_class_lm(tmp_path / "lm", ClassLm(root, {"PER": make_sub_lm({("ann",): 1.0}, "tree")}))
    call(
        monkeypatch, "compile_graph", "--in-lang", tmp_path / "lang", "--in-lm", tmp_path / "lm",
        "--out-dir", tmp_path / "graph", "--config", section("graph"),
    )  # fmt: skip
    return tmp_path


def replace(monkeypatch: pytest.MonkeyPatch, made: Path, repo_root: Path, *more: object) -> None:
    call(
        monkeypatch, "replace_names", "--in-graph", made / "graph", "--in-lang", made / "lang",
        "--out-dir", made / "user", "--config", section("replace_names"), *more,
    )  # fmt: skip


def test_a_class_lm_becomes_a_graph(made: Path) -> None:
    from privasr_k2.graph.hlg import load_graph
    from privasr_k2.graph.tlg import load_tlg

    graph = load_graph(made / "graph")
    assert graph.words[-2:] == ("#bPER", "#xPER") and graph.info["classes"]["cut_history"] is True
    assert {"lexicon.txt", "root.arpa.gz", "PER.txt"} <= set(graph.info["sha256"])
    assert load_tlg(made / "graph").delimiters == graph.delimiters


def test_lists_and_automata_give_new_names(
    monkeypatch: pytest.MonkeyPatch, made: Path, repo_root: Path
) -> None:
    from privasr_k2.graph.hlg import load_graph

    (made / "names").mkdir()
    (made / "names/per.txt").write_text("Bob Lee\nAnn\n")
    replace(monkeypatch, made, repo_root, "--in-names", made / "names")
    told = load_graph(made / "user").info
    assert told["sha256"]["PER.txt"] == file_hash(made / "names/per.txt")
    first = told["classes"]["pieces"]["PER"]
    assert first["arcs"] > load_graph(made / "graph").info["classes"]["pieces"]["PER"]["arcs"]
    (made / "subs").mkdir()
    write_sub_lm(made / "subs/PER.txt", make_sub_lm({("bob", "lee"): 0.5, ("ann",): 0.5}, "tree"))
    replace(monkeypatch, made, repo_root, "--in-sub-lms", made / "subs", "--set", "with_tlg=true")
    assert load_graph(made / "user").info["classes"]["pieces"]["PER"] == first
    assert (made / "user/TLG.fst").is_file()


def test_names_that_no_list_has(
    monkeypatch: pytest.MonkeyPatch, made: Path, repo_root: Path
) -> None:
    from privasr_k2.graph.hlg import load_graph

    call(
        monkeypatch, "compile_graph", "--in-lang", made / "lang", "--in-lm", made / "lm",
        "--out-dir", made / "graph", "--config", section("graph"),
        "--set", "unknown_names=phone_loop", "unknown_min_tokens=1",
    )  # fmt: skip
    (made / "names").mkdir()
    (made / "names/per.txt").write_text("Bob Lee\nAnn\n")
    arcs = []
    for mass in ("0", "0.1"):
        replace(
            monkeypatch,
            made,
            repo_root,
            "--in-names",
            made / "names",
            "--set",
            f"unknown_mass={mass}",
        )
        graph = load_graph(made / "user")
        assert graph.words[-3:] == ("<unk>", "#bPER", "#xPER")
        arcs.append(graph.info["classes"]["pieces"]["PER"]["arcs"])
    assert arcs[1] >= arcs[0] + 4 + 4 * 4  # the loop has four tokens


def test_what_cannot_be_replaced(
    monkeypatch: pytest.MonkeyPatch, made: Path, repo_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, name, text in (
        ("a", "per.txt", "Zoe\n"),
        ("b", "org.txt", "Ann\n"),
        ("c", "per.txt", "\n"),
    ):
        (made / folder).mkdir()
        (made / folder / name).write_text(text)
    wrong = {
        "per.txt:1: expected a name of PER with all its words in words.txt": [
            "--in-names",
            made / "a",
        ],
        "one of the classes PER, found ORG": ["--in-names", made / "b"],
        "an empty class": ["--in-names", made / "c"],
        "--in-names or --in-sub-lms, found both or none": [],
        "automata of names": ["--in-sub-lms", made / "a" / "nothing"],
    }
    for message, flags in wrong.items():
        with pytest.raises(SystemExit) as stopped:
            replace(monkeypatch, made, repo_root, *flags)
        assert stopped.value.code == 2 and message in capsys.readouterr().err, message
    assert not (made / "user").exists()
