"""G in OpenFst's text format is the grammar that it was written of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from privasr_k2.errors import DataError, GraphError
from privasr_k2.graph.grammar import Grammar, grammar
from privasr_k2.graph.grammar_file import read_grammar
from privasr_k2.graph.lang import Lang
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.ngram import count_ngrams, estimate
from tests.support.conf import section
from tests.support.small_graphs import make_lang
from tests.support.verbs import call, refused

TEXT = [["a", "ab"], ["two", "abba"], ["too", "two", "a"]]


@pytest.fixture
def lang(tmp_path: Path) -> Lang:
    return make_lang(tmp_path / "lang", "a A\nab A B\nabba A B B A\ntoo C A\ntwo C A\n")


@pytest.fixture
def G(tmp_path: Path, lang: Lang) -> Grammar:
    model = estimate(count_ngrams(TEXT, list(lang.word_ids), order=2), "witten_bell")
    write_arpa(model, tmp_path / "a.arpa")
    made = grammar(model, lang.word_ids, backoff_label=len(lang.words) - 1, place="a.arpa")
    (tmp_path / "G.fst.txt").write_text(made.to_openfst())
    return made


def rows(G: Grammar) -> list[tuple[int, int, int, float]]:
    columns = (G.sources, G.targets, G.labels, G.costs.round(3))
    return sorted(zip(*(column.tolist() for column in columns)))


def test_there_and_back(tmp_path: Path, lang: Lang, G: Grammar) -> None:
    found = read_grammar(tmp_path / "G.fst.txt", len(lang.words))
    assert rows(found) == rows(G) and found.num_words == G.num_words == 5
    np.testing.assert_allclose(found.finals, G.finals, atol=1e-5)


def test_the_start_is_the_first_line(tmp_path: Path) -> None:
    # kaldilm may write back-off as "#0 <eps>", here 3 and 0.
    (tmp_path / "G.fst.txt").write_text("1 0 3 0 0.5\n\n0 1 1 1 0.25\n1 1 2 2\n1\n0 0.75\n")
    found = read_grammar(tmp_path / "G.fst.txt", 4)
    assert rows(found) == [(0, 0, 2, 0.0), (0, 1, 3, 0.5), (1, 0, 1, 0.25)]
    assert found.finals.tolist() == [0.0, 0.75]


def test_the_same_graph_as_of_arpa(tmp_path: Path, lang: Lang, G: Grammar) -> None:
    for name, out in (("a.arpa", "one"), ("G.fst.txt", "other")):
        flags = f"--in-lang {lang.folder} --in-lm {tmp_path / name} --out-dir {tmp_path / out}"
        call(f"compile_graph {flags} --config {section('graph')}")
    one, other = (load_file(tmp_path / out / "HLG.safetensors") for out in ("one", "other"))
    np.testing.assert_allclose(one.pop("scores"), other.pop("scores"), atol=1e-4)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    words = tmp_path / "hot.txt"
    words.write_text("a\n")
    with refused("expected an ARPA model for --in-hotwords, found G.fst.txt"):
        call(
            f"compile_graph --in-lang {lang.folder} --in-lm {tmp_path}/G.fst.txt --in-hotwords"
            f" {words} --out-dir {tmp_path}/hot --config {section('graph')} {section('hotwords')}"
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1 1 1 0.5\n0 1 9 9\n1\n", r"G\.fst\.txt:2: expected word numbers up to 6"),
        ("0 1 1 2 0.5\n1\n", r"G\.fst\.txt:1: expected SOURCE TARGET WORD WORD COST"),
        ("0 1 x x\n1\n", r"fst\.txt:1: .*'0 1 x x'"),
        ("0 1 1 1 nan\n1\n", r"fst\.txt:1: "),
        ("0 -1 1 1\n1\n", r"fst\.txt:1: "),
        ("0 1 1\n1\n", r"fst\.txt:1: "),
        ("0 1 1 1 0.5 7\n1\n", r"fst\.txt:1: "),
        ("0 1 1 1 0.5\n", "found no sentence end"),
        ("", "found no arcs"),
        ("0 1 1 1\n0 1 0 0 0.3\n1\n", "the disambiguation symbol #0"),
        ("0 1000000000000 1 1\n1\n", "states that are numbered from 0"),
    ],
)
def test_other_texts_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "G.fst.txt").write_text(text)
    with pytest.raises((DataError, GraphError), match=message):
        read_grammar(tmp_path / "G.fst.txt", 7)
