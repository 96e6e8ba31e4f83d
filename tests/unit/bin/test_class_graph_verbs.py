"""compile_graph with a class LM, and replace_names, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.fileio import file_hash
from privasr_k2.graph.lang import symbols_text
from privasr_k2.lm.class_files import save_class_lm
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.sub_lm import make_sub_lm, write_sub_lm
from tests.support.conf import section
from tests.support.verbs import call, refused

WORDS = ["ann", "bob", "call", "lee"]
pytestmark = pytest.mark.k2


@pytest.fixture
def made(tmp_path: Path) -> Path:
    pytest.importorskip("k2")
    (tmp_path / "lang").mkdir()
    (tmp_path / "lang/tokens.txt").write_text(symbols_text(["<blk>", "A", "B", "L", "N"]))
    (tmp_path / "lang/words.txt").write_text(symbols_text(["<eps>", *WORDS, "#0"]))
    (tmp_path / "lang/lexicon.txt").write_text("ann A N\nbob B A B\ncall A L\nlee L\n")
    text = [["call", "<PER>"], ["<PER>"], ["call", "lee"]]
    root = estimate(count_ngrams(text, [*WORDS, "<PER>"], order=2), "witten_bell")
    save_class_lm(tmp_path / "lm", ClassLm(root, {"PER": make_sub_lm({("ann",): 1.0}, "tree")}))
    call(
        f"compile_graph --in-lang {tmp_path}/lang --in-lm {tmp_path}/lm"
        f" --out-dir {tmp_path}/graph --config {section('graph')}"
    )
    return tmp_path


def replace(made: Path, *more: object) -> None:
    call(
        f"replace_names --in-graph {made}/graph --in-lang {made}/lang --out-dir {made}/user"
        f" --config {section('replace_names')}",
        *more,
    )


def test_a_class_lm_becomes_a_graph(made: Path) -> None:
    from privasr_k2.graph.hlg import load_graph
    from privasr_k2.graph.tlg import load_tlg

    graph = load_graph(made / "graph")
    assert graph.words[-2:] == ("#bPER", "#xPER") and graph.info["classes"]["cut_history"] is True
    assert {"lexicon.txt", "root.arpa.gz", "PER.txt"} <= set(graph.info["sha256"])
    assert load_tlg(made / "graph").delimiters == graph.delimiters


def test_lists_and_automata_give_new_names(made: Path) -> None:
    from privasr_k2.graph.hlg import load_graph

    (made / "names").mkdir()
    (made / "names/per.txt").write_text("Bob Lee\nAnn\n")
    replace(made, "--in-names", made / "names")
    told = load_graph(made / "user").info
    assert told["sha256"]["PER.txt"] == file_hash(made / "names/per.txt")
    first = told["classes"]["pieces"]["PER"]
    assert first["arcs"] > load_graph(made / "graph").info["classes"]["pieces"]["PER"]["arcs"]
    (made / "subs").mkdir()
    write_sub_lm(made / "subs/PER.txt", make_sub_lm({("bob", "lee"): 0.5, ("ann",): 0.5}, "tree"))
    replace(made, "--in-sub-lms", made / "subs", "--set", "with_tlg=true")
    assert load_graph(made / "user").info["classes"]["pieces"]["PER"] == first
    assert (made / "user/TLG.fst").is_file()


def test_names_that_no_list_has(made: Path) -> None:
    from privasr_k2.graph.hlg import load_graph

    call(
        f"compile_graph --in-lang {made}/lang --in-lm {made}/lm --out-dir {made}/graph"
        f" --config {section('graph')} --set unknown_names=phone_loop unknown_min_tokens=1"
    )
    (made / "names").mkdir()
    (made / "names/per.txt").write_text("Bob Lee\nAnn\n")
    arcs = []
    for mass in ("0", "0.1"):
        replace(made, f"--in-names {made}/names --set unknown_mass={mass}")
        graph = load_graph(made / "user")
        assert graph.words[-3:] == ("<unk>", "#bPER", "#xPER")
        arcs.append(graph.info["classes"]["pieces"]["PER"]["arcs"])
    assert arcs[1] >= arcs[0] + 4 + 4 * 4  # the loop has four tokens


@pytest.mark.parametrize(
    ("flag", "names", "message"),
    [
        (
            "--in-names",
            {"per.txt": "Zoe\n"},
            "per.txt:1: expected a name of PER with all its words",
        ),
        ("--in-names", {"org.txt": "Ann\n"}, "one of the classes PER, found ORG"),
        ("--in-names", {"per.txt": "\n"}, "an empty class"),
        ("--in-sub-lms", {}, "automata of names"),
        ("", {}, "--in-names or --in-sub-lms, found both or none"),
    ],
)
def test_what_cannot_be_replaced(made: Path, flag: str, names: dict, message: str) -> None:
    (made / "names").mkdir()
    for name, text in names.items():
        (made / "names" / name).write_text(text)
    with refused(message):
        replace(made, *([flag, made / "names"] if flag else []))
    assert not (made / "user").exists()
