"""Both back ends of the first pass on graphs small enough to know the answer."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from privasr_k2.decoding.first_pass import Decoder, FirstPass, SearchConfig
from privasr_k2.decoding.kaldi_backend import open_decoder
from privasr_k2.errors import ConfigError, GraphError
from privasr_k2.graph.folder import check_outputs
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.scoring.hypotheses import Weights
from tests.support.small_graphs import make_graph, make_lang

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.k2

CONFIG = SearchConfig("k2", 50.0, 30.0, 30, 10000, 1.0, [1.0], [0.0])
LEXICON = "abba A B B A\ncab C A B\ntoo C A\ntwo C A\n"
TEXT = [["two", "abba"], ["two", "cab"], ["too", "too"]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("graphs")
    lang = make_lang(root / "lang", LEXICON)
    model = estimate(count_ngrams(TEXT, list(lang.word_ids), order=2), "witten_bell")
    topologies = ("standard", "modified")
    return {name: make_graph(root / name, lang, model, name) for name in topologies}


@pytest.fixture(params=["k2", "kaldi"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "kaldi":
        pytest.importorskip("kaldi_decoder")
    return request.param


def opened(folder: Path, backend: str, **changes: Any) -> FirstPass[Any]:
    return open_decoder(folder, dataclasses.replace(CONFIG, backend=backend, **changes))


def spoken(path: str, frames: int | None = None) -> torch.Tensor:
    """(1, T, C) log-probabilities that all but spell ``path``, ``-`` for the blank."""
    import torch

    probs = torch.full((1, frames or len(path), 4), 0.01)
    for t, symbol in enumerate(path):
        probs[0, t, "-ABC".index(symbol)] = 0.97
    return probs.log()


def words(decoder: FirstPass[Any], log_probs: torch.Tensor) -> str | None:
    import torch

    [hyps] = decoder.decode(log_probs, torch.tensor([log_probs.shape[1]]))
    return None if hyps is None else hyps[0].words


def test_equal_tokens_need_a_blank_in_the_standard_topology(
    folders: dict[str, Path], backend: str
) -> None:
    standard, modified = (opened(folder, backend) for folder in folders.values())
    assert words(standard, spoken("CA-AB-BA")) == words(modified, spoken("CA-AB-BA")) == "two abba"
    # Six frames are too few for C A A B B A with two blanks.
    assert words(standard, spoken("CAABBA")) != "two abba"
    assert words(modified, spoken("CAABBA")) == "two abba"


def test_the_language_model_separates_homophones(folders: dict[str, Path], backend: str) -> None:
    decoder = opened(folders["standard"], backend)
    assert words(decoder, spoken("CA-CAB")) == "two cab"
    assert words(decoder, spoken("CA-CA")) == "too too"


def test_padding_is_not_decoded_and_rows_stay_in_order(
    folders: dict[str, Path], backend: str
) -> None:
    import torch

    decoder = opened(folders["standard"], backend)
    rows = [spoken("CAB", 9), spoken("CA-AB-BA-", 9), spoken("CA-CA", 9)]
    rows[0][0, 3:] = spoken("CACACA")[0]
    found = decoder.decode(torch.cat(rows), torch.tensor([3, 9, 5]))
    assert [hyps[0].words for hyps in found if hyps] == ["cab", "two abba", "too too"]
    assert decoder.decode(torch.cat(rows), torch.tensor([0, 0, 0])) == [None, None, None]
    assert decoder.decode(torch.cat(rows), torch.tensor([0, 9, 0]))[::2] == [None, None]


def test_a_path_that_stops_inside_a_word_is_none(folders: dict[str, Path], backend: str) -> None:
    import torch

    decoder = opened(folders["standard"], backend, search_beam=0.01, min_active_states=0)
    found = decoder.decode(torch.cat([spoken("CCC", 6), spoken("CA-CAB")]), torch.tensor([3, 6]))
    assert found[0] is None
    assert found[1] is not None and found[1][0].words == "two cab"


def test_k2_searches_without_the_language_model(folders: dict[str, Path]) -> None:
    import torch

    decoder = opened(folders["standard"], "k2", search_lm_weight=0.0, lm_weights=[0.0, 1.0])
    [hyps] = decoder.decode(spoken("CA-CAB"), torch.tensor([6]))
    assert hyps is not None
    assert [hyp.lm_weight for hyp in hyps] == [0.0, 1.0]
    assert hyps[0].am_score == pytest.approx(hyps[1].am_score, abs=1e-3)
    assert hyps[0].words.split()[1] == "cab" and hyps[1].words == "two cab"


@pytest.mark.parametrize(
    ("backend", "weight", "beams"),
    [("k2", 2.0, (50.0, 20.0)), ("k2", 0.4, (20.0, 8.0)), ("kaldi", 2.0, (20.0, 8.0))],
)
def test_beams_grow_with_the_chosen_weight(
    backend: str, weight: float, beams: tuple[float, float]
) -> None:
    config = SearchConfig(backend, 20.0, 8.0, 30, 1000, 0.8, [1.0, 2.0], [0.0, 1.0])
    found = config.at(Weights(weight, 1.0))
    assert (found.search_beam, found.output_beam) == pytest.approx(beams)
    assert (found.lm_weights, found.insertion_penalties) == ([weight], [1.0])


def test_the_search_of_a_point_finds_the_best_path_that_the_grid_misses(
    folders: dict[str, Path],
) -> None:
    import torch

    generator = torch.Generator().manual_seed(1)
    log_probs = torch.randn(40, 12, 4, generator=generator).mul(2).log_softmax(-1)
    lengths = torch.full((40,), 12)
    narrow = dataclasses.replace(
        CONFIG, search_beam=4.0, output_beam=2.0, min_active_states=0, search_lm_weight=0.2
    )
    point = Weights(3.0, 0.0)

    def totals(settings: SearchConfig) -> list[float]:
        found = Decoder.from_folder(folders["standard"], settings).decode(log_probs, lengths)
        best = [hyps[0] for hyps in found if hyps is not None]
        assert len(best) == len(found)
        return [hyp.am_score + point.lm_weight * hyp.lm_score for hyp in best]

    wide = {"search_beam": 1000.0, "output_beam": 1000.0, "search_lm_weight": point.lm_weight}
    exact = totals(dataclasses.replace(CONFIG, lm_weights=[3.0], **wide))
    of_grid = totals(dataclasses.replace(narrow, lm_weights=[3.0]))
    of_point = totals(narrow.at(point))
    assert of_point == pytest.approx(exact, abs=1e-3)
    assert sum(one < best - 0.01 for one, best in zip(of_grid, exact)) >= 4


def test_two_decoders_of_one_graph_do_not_share_weights(folders: dict[str, Path]) -> None:
    import torch

    from privasr_k2.graph.hlg import load_graph

    graph = load_graph(folders["standard"])
    first = Decoder(graph, CONFIG)
    log_probs, lengths = spoken("CA-CA"), torch.tensor([5])
    before = first.decode(log_probs, lengths)
    Decoder(graph, dataclasses.replace(CONFIG, search_lm_weight=0.0))
    assert first.decode(log_probs, lengths) == before


def test_each_point_is_a_search_of_kaldi(folders: dict[str, Path]) -> None:
    """A grid gives what each of its points gives alone, also after one another and twice."""
    import torch

    pytest.importorskip("kaldi_decoder")
    grid = {"lm_weights": [0.0, 0.5, 2.0], "insertion_penalties": [-3.0, 0.0, 2.0]}
    decoder = opened(folders["standard"], "kaldi", **grid)
    log_probs, lengths = (spoken("CA-CA") * 0.3).log_softmax(dim=2), torch.tensor([5])
    [hyps] = decoder.decode(log_probs, lengths)
    assert hyps is not None and decoder.decode(log_probs, lengths) == [hyps]
    alone = []
    for weight, penalty in itertools.product(*grid.values()):
        point = {"lm_weights": [weight], "insertion_penalties": [penalty]}
        [of_point] = opened(folders["standard"], "kaldi", **point).decode(log_probs, lengths)
        alone += of_point or ()
    assert list(hyps) == alone
    assert len({hyp.words for hyp in hyps}) > 1
    assert all(hyp.lm_score < 0 for hyp in hyps)  # also at weight 0


def test_lattices_need_k2(folders: dict[str, Path]) -> None:
    kaldi = dataclasses.replace(CONFIG, backend="kaldi")
    with pytest.raises(ConfigError, match="expected backend=k2 for what needs lattices"):
        Decoder.from_folder(folders["standard"], kaldi)
    with pytest.raises(ValueError, match="backend must be one of k2, kaldi, got 'htk'"):
        dataclasses.replace(CONFIG, backend="htk")


@pytest.mark.parametrize(
    ("outputs", "tokens", "topology", "message"),
    [
        (5, None, None, "4 outputs, as many as the graph has tokens, found 5"),
        (4, ["<blk>", "A", "X", "C"], None, "token 2, 'B'"),
        (4, ["<blk>", "A", "B", "C"], "modified", "compile the graph with ctc_topology=modified"),
    ],
)
def test_other_models_are_refused(
    folders: dict[str, Path],
    backend: str,
    outputs: int,
    tokens: list[str] | None,
    topology: str | None,
    message: str,
) -> None:
    import torch

    decoder = opened(folders["standard"], backend)
    check_outputs(decoder.graph, 4, ["<blk>", "A", "B", "C"], "standard", Path("am"))
    check_outputs(decoder.graph, 4, None, None, Path("am"))
    with pytest.raises(GraphError, match=message):
        check_outputs(decoder.graph, outputs, tokens, topology, Path("am"))
    with pytest.raises(GraphError, match="4 outputs, found 5"):
        decoder.decode(torch.zeros(1, 3, 5), torch.tensor([3]))
