"""Kaldi's search on graphs small enough to know the answer, and what it refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from privasr_k2.decoding.first_pass import Decoder, SearchConfig
from privasr_k2.decoding.kaldi_backend import KaldiDecoder, open_decoder
from privasr_k2.errors import ConfigError, GraphError
from privasr_k2.graph.hlg import GraphConfig, compile_graph, save_graph
from privasr_k2.graph.lang import load_lang, symbols_text
from privasr_k2.lm.ngram import count_ngrams, estimate

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.k2

TOKENS = ["<blk>", "A", "B", "C"]
CONFIG = SearchConfig("kaldi", 50.0, 30.0, 30, 10000, 1.0, [1.0], [0.0])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("kaldi_decoder")
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


def opened(folder: Path, **changes: object) -> KaldiDecoder:
    decoder = open_decoder(folder, dataclasses.replace(CONFIG, **changes))  # type: ignore[arg-type]
    assert isinstance(decoder, KaldiDecoder)
    return decoder


def test_equal_tokens_need_a_blank_in_the_standard_topology(folders: dict[str, Path]) -> None:
    import torch

    found = {}
    for topology, folder in folders.items():
        [hyps] = opened(folder).decode(spoken("CAABBA"), torch.tensor([6]))
        assert hyps is not None
        found[topology] = hyps[0].words
    assert found["modified"] == "two abba" != found["standard"]


def test_padding_is_not_decoded_and_rows_stay_in_order(folders: dict[str, Path]) -> None:
    import torch

    decoder = opened(folders["standard"])
    rows = [spoken("CAB", 9), spoken("CA-AB-BA-", 9), spoken("CA-CA", 9)]
    rows[0][0, 3:] = spoken("CACACA")[0]
    found = decoder.decode(torch.cat(rows), torch.tensor([3, 9, 5]))
    assert [hyps[0].words for hyps in found if hyps] == ["cab", "two abba", "too too"]
    assert decoder.decode(torch.cat(rows), torch.tensor([0, 0, 0])) == [None, None, None]
    assert decoder.decode(torch.cat(rows), torch.tensor([0, 9, 0]))[::2] == [None, None]


def test_a_path_that_stops_inside_a_word_is_none(folders: dict[str, Path]) -> None:
    import torch

    decoder = opened(folders["standard"], search_beam=0.01, min_active_states=0)
    found = decoder.decode(torch.cat([spoken("CCC", 6), spoken("CA-CAB")]), torch.tensor([3, 6]))
    assert found[0] is None
    assert found[1] is not None and found[1][0].words == "two cab"


def test_each_point_is_a_search_of_its_own(folders: dict[str, Path]) -> None:
    """A grid gives what each of its points gives alone, also after one another and twice."""
    import torch

    weights, penalties = [0.0, 0.5, 2.0], [-3.0, 0.0, 2.0]
    decoder = opened(folders["standard"], lm_weights=weights, insertion_penalties=penalties)
    log_probs, lengths = spoken("CA-CA") * 0.3, torch.tensor([5])
    log_probs = log_probs.log_softmax(dim=2)
    [grid] = decoder.decode(log_probs, lengths)
    assert grid is not None and decoder.decode(log_probs, lengths) == [grid]
    alone = []
    for weight in weights:
        for penalty in penalties:
            one = opened(folders["standard"], lm_weights=[weight], insertion_penalties=[penalty])
            [hyps] = one.decode(log_probs, lengths)
            assert hyps is not None
            alone += hyps
    assert list(grid) == alone
    assert len({hyp.words for hyp in grid}) > 1
    # At weight 0 the LM has no say, and its score is known all the same.
    assert all(hyp.lm_score < 0 for hyp in grid)


def test_what_needs_lattices_refuses_this_back_end(folders: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match="expected backend=k2 for what needs lattices"):
        Decoder.from_folder(folders["standard"], CONFIG)
    with pytest.raises(ValueError, match="backend must be one of k2, kaldi, got 'htk'"):
        dataclasses.replace(CONFIG, backend="htk")


@pytest.mark.parametrize("backend", ["k2", "kaldi"])
def test_other_models_are_refused(folders: dict[str, Path], backend: str) -> None:
    import torch

    decoder = open_decoder(folders["standard"], dataclasses.replace(CONFIG, backend=backend))
    decoder.check_model(4, TOKENS, Path("am"), "standard")
    decoder.check_model(4, None, Path("am"), None)
    with pytest.raises(GraphError, match="4 outputs, as many as the graph has tokens, found 5"):
        decoder.check_model(5, None, Path("am"))
    with pytest.raises(GraphError, match="token 2, 'B'"):
        decoder.check_model(4, ["<blk>", "A", "X", "C"], Path("am"))
    with pytest.raises(GraphError, match="a graph of the modified CTC topology"):
        decoder.check_model(4, TOKENS, Path("am"), "modified")
    other = open_decoder(folders["modified"], dataclasses.replace(CONFIG, backend=backend))
    with pytest.raises(GraphError, match="compile the graph with ctc_topology=standard"):
        other.check_model(4, TOKENS, Path("am"), "standard")
    with pytest.raises(GraphError, match="4 outputs, found 5"):
        decoder.decode(torch.zeros(1, 3, 5), torch.tensor([3]))
