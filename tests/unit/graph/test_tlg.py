"""The CTC topology, and TLG as it is stored and loaded."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import GraphError
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.tlg import ctc_topology, load_tlg, silenced
from privasr_k2.lm.ngram import count_ngrams, estimate
from tests.support.small_graphs import make_graph, make_lang


@pytest.mark.k2
@pytest.mark.parametrize("topology", ["standard", "modified"])
@pytest.mark.parametrize("num_tokens", [2, 3, 7])
def test_topology_is_that_of_k2(topology: str, num_tokens: int) -> None:
    import k2

    theirs = k2.ctc_topo(num_tokens - 1, modified=topology == "modified")
    arcs = theirs.arcs.values()[:, :3].tolist()
    wanted = {(s, t, label, word) for (s, t, label), word in zip(arcs, theirs.aux_labels.tolist())}
    ours = ctc_topology(num_tokens, topology)
    columns = (ours.sources, ours.targets, ours.ilabels - 1, ours.olabels)
    found = {tuple(arc) for arc in np.stack(columns, axis=1).tolist()}
    ends = {(state, num_tokens, -1, -1) for state in np.flatnonzero(ours.finals == 0).tolist()}
    assert found | ends == wanted and ours.num_arcs + len(ends) == len(arcs)


def test_disambiguation_symbols_become_epsilons_and_marks_stay() -> None:
    fst = Fst.from_arcs(
        *np.array([[0, 0, 0], [0, 0, 0], [3, 4, 9], [5, 6, 7], [1, 1, 1]]), np.zeros(1)
    )
    found = silenced(fst, num_tokens=4, backoff_word=6)
    assert found.ilabels.tolist() == [3, 0, 0] and found.olabels.tolist() == [5, 0, 7]
    assert found.ilabels.dtype == found.olabels.dtype == np.int32


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("k2")
    root = tmp_path_factory.mktemp("graphs")
    lang = make_lang(root / "lang", "ab A B\ntoo C A\ntwo C A\n")
    counts = count_ngrams([["ab", "two"], ["too"]], list(lang.word_ids), order=2)
    model, topologies = estimate(counts, "witten_bell"), ("standard", "modified")
    return {name: make_graph(root / name, lang, model, name) for name in topologies}


@pytest.fixture
def folder(folders: dict[str, Path], tmp_path: Path) -> Path:
    for path in folders["standard"].iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.mark.parametrize("topology", ["standard", "modified"])
def test_stored_and_loaded(folders: dict[str, Path], topology: str) -> None:
    graph = load_tlg(folders[topology])
    assert graph.tokens == ("<blk>", "A", "B", "C") and graph.words[3] == "two"
    assert graph.info["ctc_topology"] == topology
    assert graph.info["num_states"]["TLG"] == graph.TLG.num_states
    assert graph.info["num_arcs"]["TLG"] == graph.TLG.num_arcs
    assert int(graph.TLG.ilabels.max()) == 4 and int(graph.TLG.olabels.max()) == 3


def test_a_tlg_of_the_other_topology_is_refused(folders: dict[str, Path], folder: Path) -> None:
    (folder / "TLG.fst").write_bytes((folders["modified"] / "TLG.fst").read_bytes())
    with pytest.raises(GraphError, match="another compilation, or another CTC topology"):
        load_tlg(folder)


def test_no_tlg(folder: Path) -> None:
    (folder / "TLG.fst").unlink()
    with pytest.raises(GraphError, match="decode with backend=k2"):
        load_tlg(folder)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ilabels", 5, "labels below 4, found label 4"),
        ("olabels", 5, "word numbers below 5, found 5"),
    ],
)
def test_labels_beyond_tokens_and_words(folder: Path, name: str, value: int, expected: str) -> None:
    fst = Fst.read(folder / "TLG.fst")
    labels = getattr(fst, name).copy()
    labels[3] = value
    dataclasses.replace(fst, **{name: labels}).write(folder / "TLG.fst")
    with pytest.raises(GraphError, match=expected):
        load_tlg(folder)
