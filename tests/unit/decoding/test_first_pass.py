"""The first pass on graphs small enough to know the answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from privasr_k2.decoding.first_pass import Decoder, SearchConfig
from privasr_k2.errors import GraphError
from privasr_k2.graph.hlg import GraphConfig, compile_graph, save_graph
from privasr_k2.graph.lang import load_lang, symbols_text
from privasr_k2.lm.ngram import count_ngrams, estimate

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.k2

TOKENS = ["<blk>", "A", "B", "C"]


def config(
    search_beam: float = 50.0,
    search_lm_weight: float = 1.0,
    weights: tuple[float, ...] = (1.0,),
    backend: str = "k2",
) -> SearchConfig:
    return SearchConfig(
        backend=backend,
        search_beam=search_beam,
        output_beam=30.0,
        min_active_states=0 if search_beam < 1 else 30,
        max_active_states=10000,
        search_lm_weight=search_lm_weight,
        lm_weights=list(weights),
        insertion_penalties=[0.0],
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("graphs")
    lang_dir = root / "lang"
    lang_dir.mkdir()
    (lang_dir / "tokens.txt").write_text(symbols_text(TOKENS))
    (lang_dir / "words.txt").write_text(symbols_text(["<eps>", "abba", "cab", "too", "two", "#0"]))
    (lang_dir / "lexicon.txt").write_text("abba A B B A\ncab C A B\ntoo C A\ntwo C A\n")
    lang = load_lang(lang_dir)
    text = [["two", "abba"], ["two", "cab"], ["too", "too"]]
    model = estimate(count_ngrams(text, list(lang.word_ids), order=2), "witten_bell")
    for topology in ("standard", "modified"):
        graphs, info = compile_graph(
            lang, model, GraphConfig(topology, 1000), model_path=Path("a.arpa")
        )
        save_graph(graphs, lang, info, root / topology)
    return {topology: root / topology for topology in ("standard", "modified")}


def spoken(path: str, frames: int | None = None) -> torch.Tensor:
    """(1, T, C) log-probabilities that all but spell ``path``, ``-`` for the blank."""
    import torch

    probs = torch.full((1, frames or len(path), 4), 0.01)
    for t, symbol in enumerate(path):
        probs[0, t, "-ABC".index(symbol)] = 0.97
    return probs.log()


def words(decoder: Decoder, log_probs: torch.Tensor) -> str | None:
    import torch

    [hyps] = decoder.decode(log_probs, torch.tensor([log_probs.shape[1]]))
    return None if hyps is None else hyps[0].words


def test_equal_tokens_need_a_blank_in_the_standard_topology(folders: dict[str, Path]) -> None:
    standard = Decoder.from_folder(folders["standard"], config())
    modified = Decoder.from_folder(folders["modified"], config())
    assert words(standard, spoken("CA-AB-BA")) == words(modified, spoken("CA-AB-BA")) == "two abba"
    # Six frames are too few for C A A B B A with two blanks.
    assert words(standard, spoken("CAABBA")) != "two abba"
    assert words(modified, spoken("CAABBA")) == "two abba"


def test_homophones_are_told_apart_by_the_language_model(folders: dict[str, Path]) -> None:
    decoder = Decoder.from_folder(folders["standard"], config())
    assert words(decoder, spoken("CA-CAB")) == "two cab"
    assert words(decoder, spoken("CA-CA")) == "too too"


def test_padding_is_not_decoded_and_rows_stay_in_order(folders: dict[str, Path]) -> None:
    import torch

    decoder = Decoder.from_folder(folders["standard"], config())
    rows = [spoken("CAB", 9), spoken("CA-AB-BA-", 9), spoken("CA-CA", 9)]
    rows[0][0, 3:] = spoken("CACACA")[0]
    found = decoder.decode(torch.cat(rows), torch.tensor([3, 9, 5]))
    assert [hyps[0].words for hyps in found if hyps] == ["cab", "two abba", "too too"]
    assert decoder.decode(torch.cat(rows), torch.tensor([0, 0, 0])) == [None, None, None]
    assert decoder.decode(torch.cat(rows), torch.tensor([0, 9, 0]))[0] is None


def test_no_path(folders: dict[str, Path]) -> None:
    """C alone is no word, and a tiny beam keeps no way around it."""
    import torch

    decoder = Decoder.from_folder(folders["standard"], config(search_beam=0.01))
    found = decoder.decode(torch.cat([spoken("CCC", 6), spoken("CA-CAB")]), torch.tensor([3, 6]))
    assert found[0] is None
    assert found[1] is not None and found[1][0].words == "two cab"


def test_the_search_can_do_without_the_language_model(folders: dict[str, Path]) -> None:
    decoder = Decoder.from_folder(
        folders["standard"], config(search_lm_weight=0.0, weights=(0.0, 1.0))
    )
    import torch

    [hyps] = decoder.decode(spoken("CA-CAB"), torch.tensor([6]))
    assert hyps is not None
    assert [hyp.lm_weight for hyp in hyps] == [0.0, 1.0]
    assert hyps[0].am_score == pytest.approx(hyps[1].am_score, abs=1e-3)
    assert hyps[0].words.split()[1] == "cab" and hyps[1].words == "two cab"


def test_two_decoders_of_one_graph_do_not_share_weights(folders: dict[str, Path]) -> None:
    import torch

    from privasr_k2.graph.hlg import load_graph

    graph = load_graph(folders["standard"])
    first = Decoder(graph, config(search_lm_weight=1.0))
    log_probs, lengths = spoken("CA-CA"), torch.tensor([5])
    before = first.decode(log_probs, lengths)
    Decoder(graph, config(search_lm_weight=0.0))
    assert first.decode(log_probs, lengths) == before


def test_other_outputs_are_refused(folders: dict[str, Path]) -> None:
    import torch

    decoder = Decoder.from_folder(folders["standard"], config())
    decoder.check_model(4, TOKENS, Path("am"))
    decoder.check_model(4, None, Path("am"))
    with pytest.raises(GraphError, match="4 outputs, as many as the graph has tokens, found 5"):
        decoder.check_model(5, None, Path("am"))
    with pytest.raises(GraphError, match="token 2, 'B'"):
        decoder.check_model(4, ["<blk>", "A", "X", "C"], Path("am"))
    with pytest.raises(GraphError, match="4 outputs, found 5"):
        decoder.decode(torch.zeros(1, 3, 5), torch.tensor([3]))
