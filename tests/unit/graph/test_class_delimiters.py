"""Which symbols of a graph are delimiters, and what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import GraphError
from privasr_k2.graph.class_delimiters import ClassDelimiters

WORDS = ["<eps>", "a", "b", "#0", "#bPER", "#xPER", "#bLOC", "#xLOC"]
INFO = {"classes": {"names": ["PER", "LOC"]}}


def test_delimiters_of_a_graph() -> None:
    delimiters = ClassDelimiters.of_graph(WORDS, INFO, Path("graph"))
    assert delimiters == ClassDelimiters(4, ("PER", "LOC"))
    assert list(delimiters.symbols) == WORDS[4:]
    words, spans = delimiters.split([4, 1, 5, 2, 6, 1, 2, 7])
    assert words == (1, 2, 1, 2) and spans == ((0, 1, "PER"), (2, 4, "LOC"))
    assert delimiters.split([1]) == ((1,), ()) and delimiters.split([]) == ((), ())


def test_a_graph_of_words_has_none() -> None:
    delimiters = ClassDelimiters.of_graph(WORDS[:4], {}, Path("graph"))
    assert delimiters.split([1, 2]) == ((1, 2), None) and delimiters.symbols == ()


def test_words_without_marks_are_refused() -> None:
    for words in (WORDS[:4], WORDS[:-1], ["a"]):
        with pytest.raises(GraphError, match="#bPER #xPER #bLOC #xLOC as the last symbols"):
            ClassDelimiters.of_graph(words, INFO, Path("graph"))


def test_lists_lose_their_marks() -> None:
    values, splits = np.array([4, 1, 5, -1, 6, 2], np.int32), np.array([0, 1, 3, 3, 4, 6], np.int32)
    words, starts = ClassDelimiters(4, ("PER", "LOC")).words_only(values, splits)
    assert words.tolist() == [1, -1, 2] and starts.tolist() == [0, 0, 1, 1, 2, 3]
    assert words.dtype == starts.dtype == np.int32
