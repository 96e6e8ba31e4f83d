"""G.fst for Kaldi of a class LM, whole and in parts, against pynini, Kaldi's steps and readings."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privasr_k2.errors import GraphError
from privasr_k2.fileio import write_text
from privasr_k2.graph.kaldi_files import read_fst
from privasr_k2.graph.kaldi_grammar import KaldiWords, parts_of_g, plain_g, whole_g, write_g
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.class_files import save_class_lm
from tests.support.class_lm import PLAIN, class_lm, reading_probs
from tests.support.verbs import call, refused

kaldifst = pytest.importorskip("kaldifst")

SYMBOLS = (
    "<eps>", *PLAIN, "ann", "<UNK>", "#0", "<s>", "</s>", "", "#nonterm_begin", "#nonterm_end",
    "#nonterm:PER", "#nonterm:LOC",
)  # fmt: skip
WORDS = KaldiWords(Path("words.txt"), SYMBOLS)
BACKOFF = SYMBOLS.index("#0")
SENTENCES = [("a",), ("rose",), ("new", "york"), ("a", "ann", "rose", "b"), ("york", "rose", "c"),
             ("new", "york", "york", "new"), ("rose", "new", "york")]  # fmt: skip


def written(G: Any, folder: Path) -> Any:
    write_g(folder / "G.fst", G)
    return kaldifst.StdVectorFst(read_fst(folder / "G.fst"))


def silent(fst: Any, labels: set[int]) -> Any:
    """Some input labels as epsilons, as at the end of Kaldi's graph compilation."""
    text = []
    for state in range(fst.num_states):
        for arc in kaldifst.ArcIterator(fst, state):
            label = 0 if arc.ilabel in labels else arc.ilabel
            text.append(f"{state} {arc.nextstate} {label} {arc.olabel} {arc.weight.value!r}")
        if math.isfinite(fst.final(state).value):
            text.append(f"{state} {fst.final(state).value!r}")
    start = [line for line in text if line.split()[0] == str(fst.start)]
    return kaldifst.compile("\n".join([*start, *(one for one in text if one not in start)]) + "\n")


def cost(fst: Any, words: tuple[str, ...], labels: tuple[str, ...] | None = None) -> float:
    """Of the best path with this input; its output is the words."""
    numbers = [SYMBOLS.index(word) for word in labels or words]
    composed = kaldifst.compose(kaldifst.make_linear_acceptor(numbers), fst)
    if composed.num_states == 0:
        return math.inf
    _, _, said, total = kaldifst.get_linear_symbol_sequence(kaldifst.shortest_path(composed))
    assert [SYMBOLS[word] for word in said] == list(words)
    return float(total.value)


@pytest.mark.parametrize("cut_history", [True, False])
@pytest.mark.parametrize("kind", ["tree", "bigram", "unigram"])
def test_both_forms_have_the_costs_of_readings(
    kind: str, cut_history: bool, tmp_path: Path
) -> None:
    """pynini's replacement of nonterminals, the whole G, and the readings of the class LM."""
    openfst = pytest.importorskip("pywrapfst")  # of pynini
    lm = class_lm(kind, cut_history, unknown_mass=0.0)
    whole = silent(written(whole_g(lm, WORDS, place="lm"), tmp_path), {BACKOFF})
    kaldifst.arcsort(whole, "ilabel")
    parts = parts_of_g(lm, WORDS, place="lm")
    files = {}
    for name, part in parts.items():
        write_g(tmp_path / f"{name or 'root'}.fst", part)
        files[name] = openfst.Fst.read(str(tmp_path / f"{name or 'root'}.fst"))
    pairs = []
    for name in lm.sub_lms:
        # Its first and last labels are for the phonetic context alone.
        marks = {SYMBOLS.index("#nonterm_begin"), SYMBOLS.index("#nonterm_end")}
        files[name].relabel_pairs(ipairs=[(mark, 0) for mark in marks])
        # replace() looks at output labels.
        pairs.append((SYMBOLS.index(f"#nonterm:{name}"), files[name]))
    root = files[""]
    for state in root.states():
        arcs = root.mutable_arcs(state)
        for arc in arcs:
            if SYMBOLS[arc.ilabel].startswith("#nonterm:"):
                arcs.set_value(openfst.Arc(0, arc.ilabel, arc.weight, arc.nextstate))
    pairs = [(len(SYMBOLS), root), *pairs]
    settings = {"call_arc_labeling": "neither", "return_arc_labeling": "neither"}
    replaced = openfst.replace(pairs, **settings)
    replaced.relabel_pairs(ipairs=[(BACKOFF, 0)]).arcsort("ilabel").write(str(tmp_path / "r.fst"))
    expanded = kaldifst.StdVectorFst(read_fst(tmp_path / "r.fst"))
    met = 0
    for words in SENTENCES:
        found = cost(whole, words)
        assert found == pytest.approx(cost(expanded, words), abs=1e-3)
        best = -math.log(max(prob for _, prob in reading_probs(lm, words)))
        # A path may back off where the model has the n-gram; it is then the better one.
        assert found <= best + 1e-3
        met += found > best - 1e-3
    assert met >= 3


PHONES = {"a": "A", "b": "B", "c": "A B", "new": "N", "york": "Y", "rose": "R", "ann": "N",
          "<UNK>": "U"}  # fmt: skip


def lexicon() -> Any:
    """L_disambig with homophones (new, ann) and a loop for #0, as prepare_lang.sh makes it."""
    numbers = {
        name: n for n, name in enumerate(("A", "B", "N", "Y", "R", "U", "#0", "#1", "#2"), start=1)
    }
    lines, state = ["0 0 7 " + str(BACKOFF)], 1
    for place, (word, spelled) in enumerate(PHONES.items()):
        # One symbol for each homophone; words that begin others have one, too.
        extra = {"new": ["#1"], "ann": ["#2"], "a": ["#1"], "c": ["#2"]}.get(word, [])
        phones = [*spelled.split(), *extra]
        at = 0
        for n, phone in enumerate(phones):
            last = n == len(phones) - 1
            target = 0 if last else state
            output = SYMBOLS.index(word) if n == 0 else 0
            lines.append(f"{at} {target} {numbers[phone]} {output}")
            at, state = target, state + (not last)
        assert place >= 0
    return kaldifst.compile("\n".join([*lines, "0 0.0"]) + "\n")


@pytest.mark.parametrize("cut_history", [True, False])
def test_kaldi_determinizes_the_whole_g(cut_history: bool, tmp_path: Path) -> None:
    """The steps of mkgraph.sh up to LG end, and change no cost."""
    lm = class_lm("tree", cut_history, unknown_mass=0.0)
    G = written(whole_g(lm, WORDS, place="lm"), tmp_path)
    L = lexicon()
    kaldifst.arcsort(L, "olabel")
    LG = kaldifst.compose(L, G)
    states = LG.num_states
    stopped_early = kaldifst.determinize_star(LG, use_log=True, max_states=20 * states)
    assert not stopped_early
    kaldifst.minimize_encoded(LG)
    assert 0 < LG.num_states < 20 * states
    without = silent(LG, {7, 8, 9})
    kaldifst.arcsort(without, "ilabel")
    plain = silent(G, {BACKOFF})
    kaldifst.arcsort(plain, "ilabel")
    numbers = {"A": 1, "B": 2, "N": 3, "Y": 4, "R": 5}
    for words in (("a", "rose"), ("york",), ("b", "york", "york")):
        phones = [numbers[one] for word in words for one in PHONES[word].split()]
        composed = kaldifst.compose(kaldifst.make_linear_acceptor(phones), without)
        best = kaldifst.shortest_path(composed)
        _, _, said, total = kaldifst.get_linear_symbol_sequence(best)
        assert [SYMBOLS[word] for word in said] == list(words)
        assert total.value == pytest.approx(cost(plain, words), abs=1e-2)


def test_runs_tell_where_names_are(tmp_path: Path) -> None:
    """Two paths never have the same input, #0 included: G is unambiguous."""
    lm = class_lm("tree", False, unknown_mass=0.0, order=2)
    G = written(whole_g(lm, WORDS, place="lm"), tmp_path)
    rose, seen = SYMBOLS.index("rose"), {}
    for before, behind in itertools.product(range(8), repeat=2):
        labels = [BACKOFF] * before + [rose] + [BACKOFF] * behind
        composed = kaldifst.compose(kaldifst.make_linear_acceptor(labels), G)
        if composed.num_states:
            paths = kaldifst.convert_nbest_to_vector(kaldifst.shortest_path(composed, n=5))
            assert len(paths) == 1
            seen[before, behind] = paths
    assert len(seen) >= 3


def test_a_plain_model(tmp_path: Path) -> None:
    lm = class_lm("tree", True)
    G = plain_g(lm.root, WORDS, place="lm")
    assert set(G.olabels[G.ilabels == BACKOFF].tolist()) == {0}
    spoken = G.ilabels != BACKOFF
    assert (G.ilabels[spoken] == G.olabels[spoken]).all()
    fst = silent(written(G, tmp_path), {BACKOFF})
    assert math.isfinite(cost(fst, ("a", "b")))


def test_the_verb_and_what_it_refuses(tmp_path: Path) -> None:
    lm = class_lm("tree", True)
    save_class_lm(tmp_path / "lm", lm)
    write_arpa(class_lm("tree", True).root, tmp_path / "lm.arpa")
    table = tmp_path / "words.txt"

    def words(*without: str) -> None:
        kept = ((n, one) for n, one in enumerate(SYMBOLS) if one and one not in without)
        write_text(table, "".join(f"{symbol} {number}\n" for number, symbol in kept))

    words()
    out = f"--out-kaldi-g {tmp_path}/G.fst --out-kaldi-grammar {tmp_path}/parts"
    base = f"export --in-class-lm {tmp_path}/lm --raw-words {table}"
    call(f"{base} {out}")
    assert sorted(path.relative_to(tmp_path / "parts").as_posix()
                  for path in (tmp_path / "parts").rglob("G.fst")) == [
        "G.fst", "LOC/G.fst", "PER/G.fst",
    ]  # fmt: skip
    top = read_fst(tmp_path / "parts/G.fst")
    kinds = {SYMBOLS.index(f"#nonterm:{kind}") for kind in lm.sub_lms}
    labels = {
        (arc.ilabel, arc.olabel)
        for state in range(kaldifst.StdVectorFst(top).num_states)
        for arc in kaldifst.ArcIterator(kaldifst.StdVectorFst(top), state)
    }
    assert {(kind, 0) for kind in kinds} <= labels
    call(f"export --in-arpa {tmp_path}/lm.arpa --raw-words {table} --out-kaldi-g {tmp_path}/A.fst")
    for without, message, flags in (
        (("#0",), "expected the symbol #0, found none", out),
        (("#nonterm:PER",), "list #nonterm:PER in nonterminals.txt", out),
        (("#nonterm_end",), "the symbol #nonterm_end, found none", out),
        (tuple(PLAIN), "give the LM in its case", f"--out-kaldi-g {tmp_path}/G.fst"),
    ):
        words(*without)
        with refused(message):
            call(f"{base} {flags}")
    words("#nonterm:PER", "#nonterm_begin")
    call(f"{base} --out-kaldi-g {tmp_path}/G2.fst")  # it needs no nonterminals
    assert (tmp_path / "G2.fst").read_bytes() == (tmp_path / "G.fst").read_bytes()
    with refused("--in-class-lm --raw-words for --out-kaldi-grammar"):
        call(f"export --in-arpa {tmp_path}/lm.arpa --raw-words {table} {out}")


def test_models_take_the_case_of_the_table(tmp_path: Path) -> None:
    """G of a model in lower case over words in upper case has the same arcs; tags stay."""
    lm = class_lm("tree", True)
    save_class_lm(tmp_path / "lm", lm)
    write_arpa(lm.root, tmp_path / "lm.arpa")
    for change in (str, str.upper):
        table = tmp_path / f"{change.__name__}.txt"
        table_of = ((one, n) for n, one in enumerate(SYMBOLS) if one)
        lines = (f"{one if one[0] in '<#' else change(one)} {n}\n" for one, n in table_of)
        write_text(table, "".join(lines))
        out = tmp_path / change.__name__
        call(f"export --in-class-lm {tmp_path}/lm --raw-words {table} --out-kaldi-g {out}.fst"
             f" --out-kaldi-grammar {out}")  # fmt: skip
        call(f"export --in-arpa {tmp_path}/lm.arpa --raw-words {table} --out-kaldi-g {out}.a.fst")
    for name in ("{}.fst", "{}.a.fst", "{}/G.fst", "{}/PER/G.fst"):
        lower, upper = (tmp_path / name.format(case) for case in ("str", "upper"))
        assert lower.read_bytes() == upper.read_bytes()


def test_symbols_that_are_no_words() -> None:
    assert list(WORDS.word_ids) == [*PLAIN, "ann", "<UNK>"]
    with pytest.raises(GraphError, match=r"words.txt: expected the symbol #0, found none"):
        _ = KaldiWords(Path("words.txt"), ("<eps>", "a")).backoff
    assert np.isfinite(BACKOFF)
