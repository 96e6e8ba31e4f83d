"""HLG of icefall becomes a graph folder, and a graph folder HLG for icefall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from privasr_k2.errors import DataError, GraphError
from privasr_k2.graph.grammar import grammar
from privasr_k2.graph.hlg import load_graph
from privasr_k2.graph.icefall_graph import hlg_of, import_hlg, inner_labels
from privasr_k2.graph.icefall_lang import import_icefall_lang
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.lm.ngram import count_ngrams, estimate
from tests.support.icefall_files import compile_hlg, write_lang
from tests.support.verbs import call, refused

k2 = pytest.importorskip("k2")
pytestmark = pytest.mark.k2
TEXT = [["CALL", "ANN"], ["CALL", "BOB"], ["LEE", "CALL", "LEAN"], ["LEA"]]
# Without !SIL, as in icefall: it sounds like the silence between words.
MODEL = estimate(
    count_ngrams(TEXT, ["ANN", "BOB", "CALL", "LEA", "LEAN", "LEE"], order=2), "witten_bell"
)


@pytest.fixture
def lang(tmp_path: Path) -> Lang:
    import_icefall_lang(write_lang(tmp_path / "phone"), tmp_path / "lang")
    return load_lang(tmp_path / "lang")


def write_hlg(folder: Path, lang: Lang, topology: str) -> Any:
    G = grammar(MODEL, lang.word_ids, backoff_label=len(lang.words) - 1, place="G").to_openfst()
    HLG = compile_hlg(folder / "phone", G, modified=topology == "modified")
    torch.save(HLG.as_dict(), str(folder / "phone/HLG.pt"))
    return HLG


@pytest.mark.parametrize("topology", ["standard", "modified"])
def test_there_and_back(tmp_path: Path, lang: Lang, topology: str) -> None:
    theirs = write_hlg(tmp_path, lang, topology)
    call(
        f"import_external --raw-hlg {tmp_path}/phone/HLG.pt --in-lang {tmp_path}/lang"
        f" --out-graph {tmp_path}/graph"
    )
    graph = load_graph(tmp_path / "graph")
    assert graph.info["ctc_topology"] == topology and graph.words == lang.words
    call(f"export --in-graph {tmp_path}/graph --out-hlg {tmp_path}/back")
    back = k2.Fsa.from_dict(torch.load(str(tmp_path / "back/HLG.pt"), weights_only=False))
    assert torch.equal(back.arcs.values(), theirs.arcs.values())
    assert torch.equal(back.tokens, theirs.tokens) and torch.equal(back.lm_scores, theirs.scores)
    assert back.aux_labels.tolist() == theirs.aux_labels.tolist()
    assert (tmp_path / "back/words.txt").read_text() == (tmp_path / "lang/words.txt").read_text()


@pytest.mark.parametrize("silence", [0.5, 0.2, None])
def test_the_lexicon_beside_it_is_theirs(tmp_path: Path, silence: float | None) -> None:
    """What ``Lexicon(lang_dir)`` of icefall opens, for ``decode.py``."""
    import_icefall_lang(write_lang(tmp_path / "phone", silence=silence), tmp_path / "lang")
    write_hlg(tmp_path, load_lang(tmp_path / "lang"), "standard")
    call(
        f"import_external --raw-hlg {tmp_path}/phone/HLG.pt --in-lang {tmp_path}/lang"
        f" --out-graph {tmp_path}/graph"
    )
    base = f"export --in-graph {tmp_path}/graph --out-hlg {tmp_path}/back"
    call(base, f"--in-lang {tmp_path}/lang")
    theirs, ours = (
        k2.Fsa.from_dict(torch.load(str(tmp_path / name / "L.pt"), weights_only=False))
        for name in ("phone", "back")
    )
    assert torch.equal(ours.arcs.values()[:, :3], theirs.arcs.values()[:, :3])
    torch.testing.assert_close(ours.scores, theirs.scores)
    assert torch.equal(ours.aux_labels, theirs.aux_labels)
    words = k2.SymbolTable.from_file(str(tmp_path / "back/words.txt"))
    tokens = k2.SymbolTable.from_file(str(tmp_path / "back/tokens.txt"))
    labels = [tokens[token] for token in ("K", "AO1", "L")]
    spoken = k2.linear_fst(labels, labels)
    paths = k2.connect(k2.compose(spoken, k2.arc_sort(ours)))
    found = k2.shortest_path(k2.create_fsa_vec([k2.top_sort(paths)]), use_double_scores=True)
    assert [words[n] for n in found.aux_labels.tolist() if n > 0] == ["CALL"]
    # A lexicon of another graph.
    import_icefall_lang(write_lang(tmp_path / "other", "ANN AE1 N\n"), tmp_path / "lang2")
    with refused("lang2"):
        call(base, f"--in-lang {tmp_path}/lang2")


def test_their_order_of_arcs_does_not_matter(tmp_path: Path, lang: Lang) -> None:
    HLG = write_hlg(tmp_path, lang, "standard")
    expected = import_hlg(tmp_path / "phone/HLG.pt", lang, tmp_path / "graph")
    arcs = HLG.arcs.values()
    order = np.lexsort((np.arange(len(arcs))[::-1], arcs[:, 0].numpy()))
    words = [HLG.aux_labels.tolist()[arc] for arc in order]
    turned = k2.Fsa(arcs[torch.from_numpy(order)], aux_labels=k2.RaggedTensor(words))
    torch.save(turned.as_dict(), str(tmp_path / "phone/HLG.pt"))
    info = import_hlg(tmp_path / "phone/HLG.pt", lang, tmp_path / "turned")
    assert info["num_arcs"] == expected["num_arcs"]
    one, other = load_graph(tmp_path / "graph").HLG, load_graph(tmp_path / "turned").HLG
    rows = [
        [*arc, *words] for arc, words in zip(one.arcs.values().tolist(), one.aux_labels.tolist())
    ]
    others = zip(other.arcs.values().tolist(), other.aux_labels.tolist())
    assert sorted(rows) == sorted([*arc, *words] for arc, words in others)
    ends = other.arcs.values()[:, [0, 2]].numpy().astype(np.uint32).astype(np.int64)
    assert (np.diff(ends[:, 0] << 32 | ends[:, 1]) >= 0).all()


@pytest.mark.parametrize("name", ["tokens.txt", "words.txt"])
def test_the_tables_beside_hlg_are_those_of_the_lang(tmp_path: Path, lang: Lang, name: str) -> None:
    write_hlg(tmp_path, lang, "standard")
    table = tmp_path / "phone" / name
    whole = table.read_text().splitlines(keepends=True)
    for lines in ([whole[0], whole[1].replace(" 1", "X 1"), *whole[2:]], whole[:3]):
        table.write_text("".join(lines))
        with pytest.raises(GraphError, match=f"lang/{name}: expected symbol"):
            import_hlg(tmp_path / "phone/HLG.pt", lang, tmp_path / "graph")
        assert not (tmp_path / "graph").exists()
    table.unlink()
    import_hlg(tmp_path / "phone/HLG.pt", lang, tmp_path / "graph")


def test_other_files_are_refused(tmp_path: Path, lang: Lang) -> None:
    HLG = write_hlg(tmp_path, lang, "standard")
    path, out = tmp_path / "phone/HLG.pt", tmp_path / "graph"
    data = path.read_bytes()

    def refuse(error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            import_hlg(path, lang, out)
        assert not out.exists()

    path.write_bytes(data[:-100])
    refuse(DataError, "a checkpoint of tensors")
    path.write_bytes((tmp_path / "phone/L.pt").read_bytes())
    refuse(GraphError, "HLG, composed of k2.ctc_topo and LG")
    torch.save(k2.create_fsa_vec([HLG]).as_dict(), str(path))
    refuse(DataError, "a vector of automata")
    record = HLG.as_dict()
    torch.save({**record, "aux_labels": record["aux_labels"].values}, str(path))
    refuse(DataError, "aux_labels of")
    torch.save({name: record[name] for name in ("arcs", "tokens")}, str(path))
    refuse(DataError, "no aux_labels")
    for column, value in ((0, -1), (1, 10**6), (2, -2)):
        arcs = record["arcs"].clone()
        arcs[3, column] = value
        torch.save({**record, "arcs": arcs}, str(path))
        refuse(DataError, "one automaton of k2")
    path.write_bytes(data)
    write_lang(tmp_path / "few", "ANN AE1 N\n")
    import_icefall_lang(tmp_path / "few", tmp_path / "few_lang")
    flags = f"--raw-hlg {path} --in-lang {tmp_path}/few_lang --out-graph {out}"
    with refused("HLG.pt: expected labels below 5"):
        call(f"import_external {flags}")


@pytest.mark.parametrize("topology", ["standard", "modified"])
def test_inner_labels_are_those_of_k2(tmp_path: Path, lang: Lang, topology: str) -> None:
    from tests.support.small_graphs import make_graph

    HLG = hlg_of(load_graph(make_graph(tmp_path / "graph", lang, MODEL, topology)))
    theirs = write_hlg(tmp_path, lang, topology)
    for fsa in (HLG, theirs):
        columns = (fsa.arcs.values()[:, n].numpy() for n in range(3))
        assert inner_labels(*columns, topology).tolist() == fsa.tokens.tolist()
    assert k2.is_rand_equivalent(
        k2.invert(HLG),
        k2.invert(theirs),
        log_semiring=False,
        delta=1e-3,
        treat_epsilons_specially=True,
    )
