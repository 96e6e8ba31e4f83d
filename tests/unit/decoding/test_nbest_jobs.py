"""What becomes of a search's list: words, scores, and times in seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.decoding.nbest import Nbest, NbestSearchConfig
from privasr_k2.decoding.nbest import Path as SearchPath
from privasr_k2.decoding.nbest_jobs import NbestJobConfig, WordTimes, nbest_list
from privasr_k2.errors import ConfigError, GraphError
from privasr_k2.graph.hlg import Graph
from privasr_k2.graph.lang import Lang
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList
from tests.support.conf import section
from tests.support.nbest_jobs import Cut

TOKENS, WORDS = ("<blk>", "A", "B"), ("<eps>", "ab", "b", "#0")
LANG = Lang(Path("lang"), TOKENS, WORDS, (("ab", ("A", "B")), ("b", ("B",))))


def graph(words: tuple[str, ...] = WORDS, topology: str = "standard") -> Graph:
    return Graph(Path("graph"), TOKENS, words, {"ctc_topology": topology}, None)  # type: ignore[arg-type]


def a_list(labels: list[int], word_times: WordTimes | None) -> NbestList:
    path = SearchPath((1, 2), -3.5, -1.25, np.array(labels, dtype=np.int32), np.arange(len(labels)))
    return nbest_list(Cut(), Nbest((path,), False, 2.0), WORDS, 3, word_times)  # type: ignore[arg-type]


def test_times_are_seconds_of_the_cut() -> None:
    """Three features of 20 ms make one output; the last one reaches beyond the cut's end."""
    found = a_list([0, 1, 2, 2, 0, 0, 0, 2, 2], WordTimes(LANG, graph()))
    hyp = Hypothesis(1, "ab b", -3.5, {"graph": -1.25}, times=((0.06, 0.24), (0.42, 0.5)))
    assert found == NbestList("u1", "dev_x", "s1", "ab b", False, (hyp,))
    assert a_list([1, 2, 2], None).hyps[0].times is None


def test_the_topology_decides_about_equal_tokens() -> None:
    with pytest.raises(GraphError, match="that spell the path of 'ab b', found none"):
        a_list([1, 2, 2], WordTimes(LANG, graph()))
    times = a_list([1, 2, 2], WordTimes(LANG, graph(topology="modified"))).hyps[0].times
    assert times == ((0.0, 0.12), (0.12, 0.18))


def test_posteriors_become_confidences_and_names_spans() -> None:
    sure, named = {"posteriors": np.array([0.12345678])}, {"classes": ((0, 1, "PER"),)}
    path = SearchPath((2,), -3.5, -1.25, np.array([2]), np.array([0, 1]), **sure, **named)
    path = replace(path, depths=np.array([1.5]))
    hyp = nbest_list(Cut(), Nbest((path,), False, 2.0), WORDS, 3, None).hyps[0]  # type: ignore[arg-type]
    expected = Hypothesis(1, "b", -3.5, {"graph": -1.25}, (0.123457,), depths=(1.5,), **named)
    assert hyp == expected


def test_delimiters_of_a_graph_are_no_words_of_the_language_folder() -> None:
    info = {"ctc_topology": "standard", "classes": {"names": ["PER"]}}
    marked = (*graph().words, "#bPER", "#xPER")
    times = WordTimes(LANG, replace(graph(), words=marked, info=info))
    found = a_list([0, 1, 2, 2, 0, 0, 0, 2, 2], times)
    assert found.hyps[0].times == ((0.06, 0.24), (0.42, 0.5))


def test_names_that_no_list_has_have_times() -> None:
    info = {"ctc_topology": "standard", "classes": {"names": ["PER"]}}
    words = (*WORDS, "<unk>", "#bPER", "#xPER")
    times = WordTimes(LANG, replace(graph(), words=words, info=info))
    path = SearchPath((4, 2), -3.5, -1.25, np.array([2, 1, 0, 2], dtype=np.int32), np.arange(4))
    found = nbest_list(Cut(), Nbest((path,), False, 2.0), words, 3, times)  # type: ignore[arg-type]
    assert found.hyps[0].words == "<unk> b" and found.hyps[0].times == ((0.0, 0.12), (0.18, 0.24))
    with pytest.raises(GraphError, match="expected the words of graph"):
        WordTimes(LANG, graph((*WORDS, "b")))


def test_without_a_path() -> None:
    found = nbest_list(Cut(custom={}), None, WORDS, 3, None)  # type: ignore[arg-type]
    assert found == NbestList("u1", "", "s1", "ab b", True, ())


def test_another_language_folder_is_refused() -> None:
    with pytest.raises(GraphError, match="expected the words of graph"):
        WordTimes(LANG, graph(("<eps>", "ab", "c", "#0")))


def test_settings() -> None:
    config.load(NbestSearchConfig, [section("nbest")])
    both = [section("decode"), section("nbest")]
    assert config.load(NbestJobConfig, both, ["num_paths=7"]).num_paths == 7
    lists = ("num_paths=0", "first_beam=0", "first_beam=.inf", "max_states=0", "method=drawn")
    for wrong in (*lists, "job=2", "search_beam=0", "posterior_scale=0"):
        with pytest.raises(ConfigError, match="allows"):
            config.load(NbestJobConfig, both, [wrong])
