"""Compiling, storing and loading decoding graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.graph.hlg import GraphConfig, compile_graph, lexicon_openfst, load_graph, save_graph
from privasr_k2.graph.lang import Lang, load_lang, symbols_text
from privasr_k2.graph.nonterminals import ClassGraphConfig
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.ngram import count_ngrams, estimate
from tests.support.conf import section
from tests.support.small_graphs import make_graph, make_lang


@pytest.fixture
def lang(tmp_path: Path) -> Lang:
    lexicon = "a A\nab A B\nabba A B B A\ntoo C A\ntwo C A\ntwo C\n"
    return make_lang(tmp_path / "lang", lexicon)


@pytest.fixture
def model(lang: Lang) -> Arpa:
    text = [["a", "ab"], ["two", "abba"], ["too", "two", "a"]]
    return estimate(count_ngrams(text, list(lang.word_ids), order=2), "witten_bell")


def test_lexicon_disambiguates_homophones_and_beginnings(lang: Lang) -> None:
    text, num_disambig = lexicon_openfst(lang)
    assert num_disambig == 3  # the back-off symbol and two homophones
    arcs = [line.split() for line in text.splitlines() if len(line.split()) == 4]
    assert arcs[0] == ["0", "0", "4", "6"]  # C = 4 tokens; #0 is word 6
    ends = [arc[2] for arc in arcs if int(arc[2]) > 4]
    # a and ab begin longer words; too and two sound alike; "two C" begins them.
    assert sorted(ends) == ["5", "5", "5", "5", "6"]


@pytest.mark.k2
@pytest.mark.parametrize("topology", ["standard", "modified"])
def test_stored_and_loaded_is_the_same(
    tmp_path: Path, lang: Lang, model: Arpa, topology: str
) -> None:
    graphs, info = compile_graph(
        lang, model, GraphConfig(topology, 1000), model_path=Path("a.arpa")
    )
    HLG = graphs.HLG
    save_graph(graphs, lang, info, tmp_path / "graph")
    graph = load_graph(tmp_path / "graph")
    arcs = np.stack([HLG.sources, HLG.targets, HLG.labels], axis=1)
    assert graph.HLG.arcs.values()[:, :3].tolist() == arcs.tolist()
    said = [row.tolist() for row in np.split(HLG.words, HLG.splits[1:-1])]
    assert graph.HLG.aux_labels.tolist() == said
    assert graph.HLG.lm_scores.tolist() == HLG.scores.tolist()
    assert (graph.tokens, graph.words, graph.info) == (lang.tokens, lang.words, info)
    assert info["ctc_topology"] == topology and info["lm_order"] == 2 and info["num_words"] == 5
    assert int(graph.HLG.labels.max()) == 3


@pytest.mark.k2
def test_a_graph_that_grows_too_large_is_refused(lang: Lang, model: Arpa) -> None:
    with pytest.raises(GraphError, match="at most 3 states"):
        compile_graph(lang, model, GraphConfig("standard", 3), model_path=Path("a.arpa"))


@pytest.fixture
def folder(tmp_path: Path, lang: Lang, model: Arpa) -> Path:
    pytest.importorskip("k2")
    return make_graph(tmp_path / "graph", lang, model)


@pytest.mark.k2
def test_labels_beyond_tokens_and_words_are_refused(folder: Path) -> None:
    (folder / "tokens.txt").write_text(symbols_text(["<blk>", "A", "B"]))
    with pytest.raises(GraphError, match="num_tokens: 3"):
        load_graph(folder)
    text = (folder / "graph.yaml").read_text()
    (folder / "graph.yaml").write_text(text.replace("num_tokens: 4", "num_tokens: 3"))
    with pytest.raises(GraphError, match="labels below 3, found label 3"):
        load_graph(folder)
    (folder / "graph.yaml").write_text(text)
    (folder / "tokens.txt").write_text(symbols_text(["<blk>", "A", "B", "C"]))
    (folder / "words.txt").write_text(symbols_text(["<eps>", "a", "#0"]))
    with pytest.raises(GraphError, match="word numbers below 3"):
        load_graph(folder)


@pytest.mark.k2
def test_a_graph_of_another_compilation_is_refused(
    tmp_path: Path, lang: Lang, model: Arpa, folder: Path
) -> None:
    other = make_graph(tmp_path / "modified", lang, model, "modified") / "HLG.safetensors"
    (folder / "HLG.safetensors").write_bytes(other.read_bytes())
    with pytest.raises(GraphError, match="another compilation, or another CTC topology"):
        load_graph(folder)


@pytest.mark.k2
def test_broken_folders(folder: Path) -> None:
    (folder / "graph.yaml").write_text("ctc_topology: round\n")
    with pytest.raises(GraphError, match="a ctc_topology"):
        load_graph(folder)
    path = folder / "HLG.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(GraphError, match="a whole safetensors file"):
        load_graph(folder)
    path.unlink()
    with pytest.raises(GraphError, match="found nothing"):
        load_graph(folder)
    (folder / "HLG.pt").write_bytes(b"")
    with pytest.raises(GraphError, match="import it: privasr import --raw-hlg"):
        load_graph(folder)


def test_defaults() -> None:
    assert config.load(ClassGraphConfig, [section("graph")]).ctc_topology == "standard"
    with pytest.raises(ConfigError, match="ctc_topology must be one of"):
        config.load(ClassGraphConfig, [section("graph")], ["ctc_topology=round"])


def test_a_lang_folder_without_files(tmp_path: Path) -> None:
    with pytest.raises((DataError, FileNotFoundError)):
        load_lang(tmp_path)
