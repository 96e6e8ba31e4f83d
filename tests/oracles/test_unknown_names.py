"""Unlisted names in the graph against the enumeration of readings and pronunciations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.decoding.first_pass import Decoder, SearchConfig
from privasr_k2.decoding.kaldi_backend import open_decoder
from privasr_k2.decoding.nbest import NbestSearch, NbestSearchConfig
from privasr_k2.decoding.nbest_jobs import WordTimes
from privasr_k2.graph.class_pieces import Pieces, compile_class_graph, joined, replace_names
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.nonterminals import ClassGraphConfig
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.unknown_names import unknown_names_loop
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.sub_lm import KINDS, make_sub_lm
from privasr_k2.randomness import stream
from privasr_k2.scoring.hypotheses import Weights
from tests.support.class_lm import LOC, PER, PLAIN, class_lm, reading_probs
from tests.support.small_graphs import heard, make_class_graph, make_lang
from tests.support.unknown_names import cost

pytestmark = pytest.mark.k2

WORDS = [*PLAIN, "ann"]
LEXICONS = {
    "phone": "a A\nann A N\nb B\nc R O\nnew N\nnew N O\nrose R O\nyork Y A\n",
    "char": "".join(f"{word} ▁ {' '.join(word)}\n" for word in sorted(WORDS)),
}


@pytest.fixture(scope="module", params=["phone", "char"])
def lang(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lang:
    return make_lang(tmp_path_factory.mktemp("lang"), LEXICONS[request.param])


def a_config(cut_history: bool = True, min_tokens: int = 2) -> ClassGraphConfig:
    return ClassGraphConfig("standard", 100_000, cut_history, 100_000, "phone_loop", min_tokens)


def whole(lang: Lang, lm: ClassLm, config: ClassGraphConfig) -> Fst:
    graphs, info = compile_class_graph(lang, lm, config, place="lm")
    names = {kind: graphs.pieces[f"{kind}.fst"] for kind in info["classes"]["names"]}
    return joined(Pieces(graphs.pieces["root.fst"], names, info["classes"]["first_label"]))


def graph_cost(LG: Fst, lang: Lang, words: Sequence[int], tokens: Sequence[int]) -> float:
    """The cheapest path that says these tokens and means these words, whatever its delimiters."""
    import kaldifst

    graph = kaldifst.StdVectorFst(LG.to_kaldifst())
    silent = sorted({*LG.ilabels[LG.ilabels >= lang.num_tokens].tolist()})
    meant = [len(lang.words) - 1, *range(len(lang.words) + 1, int(LG.olabels.max()) + 1)]
    for labels, passed, sort in ((tokens, silent, "ilabel"), (words, meant, "olabel")):
        lines = [f"{n} {n + 1} {label} {label}\n" for n, label in enumerate(labels)]
        lines += [
            f"{n} {n} {symbol} {symbol}\n" for n in range(len(labels) + 1) for symbol in passed
        ]
        acceptor = kaldifst.compile("".join(lines) + f"{len(labels)}\n")
        kaldifst.arcsort(acceptor, "olabel" if sort == "ilabel" else "ilabel")
        kaldifst.arcsort(graph, sort)
        one, other = (acceptor, graph) if sort == "ilabel" else (graph, acceptor)
        graph = kaldifst.compose(one, other)
        if not graph.num_states:
            return math.inf
    return float(kaldifst.get_linear_symbol_sequence(kaldifst.shortest_path(graph))[3].value)


def direct_cost(
    lm: ClassLm, lang: Lang, words: Sequence[str], tokens: Sequence[int], min_tokens: int
) -> float:
    """Of the best reading with <unk> in names of PER, at its best pronunciation."""
    # ways[n]: the least cost of the words so far with n tokens.
    loop = unknown_names_loop(lang, lm.sub_lms["PER"], min_tokens=min_tokens)
    spelled: dict[str, set[tuple[int, ...]]] = {word: set() for word in WORDS}
    for word, spelling in lang.pronunciations:
        spelled[word].add(tuple(lang.token_ids[token] for token in spelling))
    best = max(
        (prob for symbols, prob in reading_probs(lm, words) if "<unk>" not in symbols), default=0.0
    )
    ways = {0: 0.0}
    for word in words:
        longer: dict[int, float] = {}
        for start, so_far in ways.items():
            for end in range(start + 1, len(tokens) + 1):
                part = tuple(tokens[start:end])
                known = 0.0 if part in spelled.get(word, ()) else math.inf
                said = cost(loop, part) if word == "<unk>" else known
                longer[end] = min(longer.get(end, math.inf), so_far + said)
        ways = longer
    return ways.get(len(tokens), math.inf) - math.log(best) if best > 0 else math.inf


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("cut_history", "min_tokens"), [(True, 2), (False, 1)])
def test_costs_are_direct_costs(lang: Lang, kind: str, cut_history: bool, min_tokens: int) -> None:
    """Never dearer; cheaper only where the root model backs off though it need not."""
    lm = class_lm(kind, cut_history)
    LG = whole(lang, lm, a_config(cut_history, min_tokens))
    generator = stream(7, "sentences with unknown names")
    ids, excess = {**lang.word_ids, "<unk>": len(lang.words)}, []
    for n in range(60):
        words = [["<unk>", *WORDS][i] for i in generator.integers(0, len(WORDS) + 1, size=n % 4)]
        words.insert(int(generator.integers(0, len(words) + 1)), "<unk>")
        tokens: list[int] = []
        for word in words:
            if word == "<unk>":
                length = generator.integers(1, 5)
                tokens += generator.integers(1, lang.num_tokens, size=length).tolist()
            else:
                tokens += lang.encode(word)
        found = graph_cost(LG, lang, [ids[word] for word in words], tokens)
        expected = direct_cost(lm, lang, words, tokens, min_tokens)
        assert (found == math.inf) == (expected == math.inf), (words, tokens)
        if math.isfinite(expected):
            excess.append(found - expected)
    assert len(excess) > 30 and max(excess) < 1e-3
    assert (np.abs(excess) < 1e-3).mean() > 0.5


def test_an_unlisted_name_has_its_share_of_the_mass(lang: Lang) -> None:
    """As the graph of the class's names has it; the shares of all sequences sum to 1."""
    sub = make_sub_lm(PER, "tree", unknown_mass=0.2)
    root = class_lm("tree", True).root
    lm = ClassLm(root, {"PER": sub, "LOC": make_sub_lm(LOC, "tree")}, cut_history=True)
    graphs, _ = compile_class_graph(lang, lm, a_config(), place="lm")
    piece, loop = graphs.pieces["PER.fst"], unknown_names_loop(lang, sub, min_tokens=2)
    single = math.exp(sub.log_prob(("<unk>",)))
    some = list(itertools.product(range(1, lang.num_tokens), repeat=2))[:20]
    for tokens in some:
        found = graph_cost(piece, lang, [len(lang.words)], tokens)
        assert math.exp(-found) == pytest.approx(single * math.exp(-cost(loop, tokens)), rel=1e-4)


def search(backend: str = "k2") -> SearchConfig:
    return SearchConfig(backend, 200.0, 30.0, 1000, 1_000_000, 1.0, [1.0], [0.0])


@pytest.fixture(scope="module")
def folder(lang: Lang, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("graph") / "graph"
    return make_class_graph(made, lang, class_lm("tree", True), a_config())


@pytest.mark.parametrize("backend", ["k2", "kaldi"])
def test_what_no_list_has_is_heard_as_a_name(lang: Lang, folder: Path, backend: str) -> None:
    """Where the acoustics say so; listed names and plain words stay what they are."""
    if backend == "kaldi":
        pytest.importorskip("kaldi_decoder")
    decoder = open_decoder(folder, search(backend))
    b, ann, a = (lang.encode(word) for word in ("b", "ann", "a"))
    other = [lang.token_ids[token] for token in ("▁yry" if "▁" in lang.token_ids else "YRR")]
    for tokens, words, named in (
        ([*b, *other, *a], "b <unk> a", (1, 2, "PER")),
        ([*b, *ann, *lang.encode("rose"), *a], "b ann rose a", (1, 3, "PER")),
        ([*b, *a, *b], "b a b", None),
    ):
        hyps = heard(decoder, lang.num_tokens, tokens, low=-20.0)
        assert hyps is not None and hyps[0].words == words
        assert hyps[0].classes == ((named,) if named else ())


def test_lists_have_times_and_scores(lang: Lang, folder: Path) -> None:
    decoder = Decoder.from_folder(folder, search())
    tokens = [*lang.encode("b"), *lang.encode("york")[::-1], *lang.encode("b"), *lang.encode("a")]
    config = NbestSearchConfig(30, 5.0, 100_000, 1.0, "exact")
    search_lists = NbestSearch(decoder, Weights(1.0, 0.0), config)
    found = heard(search_lists, lang.num_tokens, tokens, low=-20.0)
    assert found is not None
    times, unknown, lm = WordTimes(lang, decoder.graph), 0, class_lm("tree", True)
    for path in found.paths:
        words = [decoder.graph.words[word] for word in path.words]
        spans = times.times(path, 0.01, 10.0)
        assert len(spans) == len(words)
        for place in (n for n, word in enumerate(words) if word == "<unk>"):
            unknown += 1
            names = [span[:2] for span in path.classes or () if span[2] == "PER"]
            assert any(first <= place < end for first, end in names)
        said = [label for label, _ in itertools.groupby(path.labels) if label]
        assert -path.lm_score <= direct_cost(lm, lang, words, said, 2) + 1e-2
    assert unknown > 3


def test_other_names_are_as_if_compiled_anew(lang: Lang, folder: Path) -> None:
    """Those of another class leave the loop as it is; new names of the class make another."""
    lm = class_lm("tree", True)
    for kind, mass in (("LOC", 0.0), ("PER", 0.3), ("PER", 0.0)):
        other = make_sub_lm({("b", "b"): 1.0, ("york",): 2.0}, "tree", unknown_mass=mass)
        graphs, info = replace_names(folder, lang, {kind: other}, with_tlg=False)
        anew = ClassLm(lm.root, {**lm.sub_lms, kind: other})
        expected, described = compile_class_graph(lang, anew, a_config(), place="lm")
        assert graphs.words == expected.words and graphs.words[-5] == "<unk>"
        assert info["classes"] == described["classes"]
        assert graphs.HLG.scores.tolist() == expected.HLG.scores.tolist()
