"""Kaldi's language folders: their graphs against our own of the same words, and bad folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.graph.hlg import GraphConfig
from privasr_k2.graph.hlg import compile_graph as own_graph
from privasr_k2.graph.kaldi_files import read_table
from privasr_k2.graph.kaldi_grammar import KaldiWords, plain_g, write_g
from privasr_k2.graph.lang import Lang, lexicon_text
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.tlg import load_tlg
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.ngram import count_ngrams, estimate
from tests.support.conf import section
from tests.support.small_graphs import make_lang
from tests.support.tiny_lm import sentences
from tests.support.verbs import call, refused

kaldifst = pytest.importorskip("kaldifst")

LEXICON = "ab A B\nb B\nbe B\nc A\n"
WORDS, PHONES = ("ab", "b", "be", "c"), ("A", "B")
MODEL = estimate(count_ngrams(sentences(1, 60, words=list(WORDS)), WORDS, order=3), "witten_bell")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As prepare_lang.sh leaves it, without optional silence; words.txt with nonterminals."""
    lang = tmp_path / "lang"
    (lang / "phones").mkdir(parents=True)
    symbols = ["<eps>", *WORDS, "#0", "<s>", "</s>"]
    table = "".join(f"{word} {number}\n" for number, word in enumerate(symbols))
    (lang / "words.txt").write_text(table + "#nonterm:x 12\n")
    (lang / "phones.txt").write_text("<eps> 0\nA 1\nB 2\n#0 3\n#1 4\n#2 5\n")
    (lang / "phones/disambig.int").write_text("3\n4\n5\n")
    text = "0 0 3 5\n0 1 1 1\n1 0 2 0\n0 2 2 2\n2 0 4 0\n0 3 2 3\n3 0 5 0\n0 4 1 4\n4 0 4 0\n0 0\n"
    kaldifst.compile(text).write(str(lang / "L_disambig.fst"))
    without = "\n".join(line for line in text.splitlines() if line.split()[-2:] != ["3", "5"])
    kaldifst.compile(without + "\n").write(str(lang / "L.fst"))
    words = KaldiWords(lang / "words.txt", read_table(lang / "words.txt"))
    write_g(lang / "G.fst", plain_g(MODEL, words, place="lm"))
    write_arpa(MODEL, tmp_path / "lm.arpa")
    return lang


def compile_graph(folder: Path, *more: object) -> Path:
    out = folder.parent / "graph"
    call(f"compile_graph --raw-kaldi-lang {folder} --out-dir {out} --config {section('graph')}",
         *more)  # fmt: skip
    return out


def cost(TLG: Fst, labels: list[int]) -> tuple[float, list[int]]:
    fst = kaldifst.StdVectorFst(TLG.to_kaldifst())
    kaldifst.arcsort(fst, "ilabel")
    composed = kaldifst.compose(kaldifst.make_linear_acceptor(labels), fst)
    _, _, words, total = kaldifst.get_linear_symbol_sequence(kaldifst.shortest_path(composed))
    return float(total.value), list(words)


@pytest.mark.parametrize("arpa", [False, True])
def test_the_graph_is_that_of_our_own_folder(folder: Path, arpa: bool) -> None:
    more = [f"--in-lm {folder.parent}/lm.arpa"] if arpa else []
    graph = load_tlg(compile_graph(folder, *more))
    lang: Lang = make_lang(folder.parent / "own", LEXICON, list(PHONES))
    assert graph.tokens == lang.tokens == ("<blk>", *PHONES)
    assert graph.words == ("<eps>", *WORDS, "#0") == lang.words
    config = GraphConfig("standard", 10_000)
    compiled, info = own_graph(lang, MODEL, config, model_path=Path("lm"))
    assert compiled.TLG is not None
    assert graph.info["num_states"]["HLG"] == info["num_states"]["HLG"]
    assert graph.info["num_words"] == info["num_words"] == 4
    for labels in ([2, 3], [3], [2, 1, 3, 3, 1, 2, 2], [3, 1, 3, 2, 1, 2, 3]):
        found, wanted = cost(graph.TLG, labels), cost(compiled.TLG, labels)
        assert found[0] == pytest.approx(wanted[0], abs=1e-3)
        # "b" and "be" sound alike, and may cost the same.
        sounds = [[graph.words[w].replace("be", "b") for w in path] for _, path in (found, wanted)]
        assert sounds[0] == sounds[1]
    assert lexicon_text(lang.pronunciations) == LEXICON
    assert np.isfinite(graph.TLG.finals).any()


def test_what_is_refused(folder: Path) -> None:
    def refuse(message: str, *more: object) -> None:
        with refused(message):
            compile_graph(folder, *more)
        assert not (folder.parent / "graph").exists()

    def change(name: str, content: bytes) -> bytes:
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(content)
        return before

    refuse("an ARPA model beside it, or nothing", f"--in-lang {folder}")
    whole = change("L_disambig.fst", (folder / "L.fst").read_bytes())
    refuse("L_disambig.fst: expected disambiguation symbols and #0 of words.txt")
    change("L_disambig.fst", whole[:-10])
    refuse("L_disambig.fst: expected an OpenFst file")
    change("L_disambig.fst", whole)
    for name, content, message in (
        ("phones/disambig.int", b"", "expected disambiguation symbols, found none"),
        ("phones/disambig.int", b"1\n", "disambig.int:1: expected a disambiguation symbol"),
        ("phones/disambig.int", b"99\n", "disambig.int:1: expected the number of a phone"),
        ("phones.txt", b"<eps> 0\nA 1\n#0 2\n", "disambig.int:1: expected the number of a phone"),
        ("words.txt", b"<eps> 0\nab 1\n#0 2\n", "labels of words.txt, below 3"),
        ("words.txt", b"<eps> 0\nab 1\nb 2\nbe 3\nc 4\nd 5\n", "the symbol #0, found none"),
        ("G.fst", b"text", "G.fst: expected an OpenFst file"),
    ):
        before = change(name, content)
        refuse(message)
        change(name, before)
    kaldifst.compile("0 1 12 0\n1\n").write(str(folder / "G.fst"))
    refuse("words and #0 as input labels, found #nonterm:x")
    (folder / "G.fst").unlink()
    refuse("G.fst: expected an OpenFst file, type vector or const, arcs standard, found nothing")
    (folder / "phones.txt").unlink()
    refuse("phones.txt: expected a file of a Kaldi language folder, found nothing")
    with refused("--in-lang and --in-lm, or --raw-kaldi-lang"):
        call(f"compile_graph --in-lang {folder} --out-dir {folder}/x --config {section('graph')}")
