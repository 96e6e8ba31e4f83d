"""The grammar's arcs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import GraphError
from privasr_k2.graph.grammar import grammar
from privasr_k2.lm.arpa import Arpa, read_arpa

TEXT = """\\data\\
ngram 1=5
ngram 2=4

\\1-grams:
-99\t<s>\t-0.3
-0.7\t</s>
-0.5\ta\t-0.2
-0.6\tb
-0.9\t<unk>\t-0.7

\\2-grams:
-0.2\t<s> a
-0.3\ta b
-0.4\ta </s>
-0.4\t<unk> b

\\end\\
"""


@pytest.fixture
def model(tmp_path: Path) -> Arpa:
    (tmp_path / "a.arpa").write_text(TEXT)
    return read_arpa(tmp_path / "a.arpa")


def test_arcs_by_hand(model: Arpa) -> None:
    made = grammar(model, {"a": 1, "b": 2}, backoff_label=9, place="a.arpa")
    arcs = zip(made.sources.tolist(), made.targets.tolist(), made.labels.tolist())
    costs = dict(zip(arcs, (made.costs / math.log(10)).tolist(), strict=True))
    # States: 0 after <s>, 1 the empty history, 2 after a; b has no longer n-grams.
    from_start = {(0, 2, 1): 0.2, (0, 1, 9): 0.3}
    others = {(1, 2, 1): 0.5, (1, 1, 2): 0.6, (2, 1, 2): 0.3, (2, 1, 9): 0.2}
    assert costs == pytest.approx(from_start | others)
    assert made.finals / math.log(10) == pytest.approx([math.inf, 0.7, 0.4])
    assert made.num_words == 2
    assert made.to_openfst().startswith("0 ")


def test_unigrams_are_one_state() -> None:
    words, log10_probs = ("<s>", "</s>", "a"), np.array([-99.0, -0.3, -0.2])
    model = Arpa(words, (3,), np.arange(3), log10_probs, np.zeros(3))
    made = grammar(model, {"a": 1}, backoff_label=9, place="a.arpa")
    assert (made.sources.tolist(), made.targets.tolist(), made.labels.tolist()) == ([0], [0], [1])
    assert made.costs / math.log(10) == pytest.approx([0.2])
    assert made.finals / math.log(10) == pytest.approx([0.3])


def test_words_of_the_lexicon_only(model: Arpa) -> None:
    made = grammar(model, {"b": 5}, backoff_label=9, place="a.arpa")
    assert set(made.labels.tolist()) == {5, 9}


def test_no_common_word(model: Arpa) -> None:
    with pytest.raises(GraphError, match=r"a.arpa: .* words.txt, found none of its 5 words"):
        grammar(model, {"c": 1}, backoff_label=9, place="a.arpa")


def test_no_end(model: Arpa) -> None:
    probs = np.where(model.last_words == model.word_ids["</s>"], -99.0, model.log10_probs)
    endless = Arpa(model.words, model.counts, model.keys, probs, model.log10_backoffs)
    with pytest.raises(GraphError, match="</s>"):
        grammar(endless, {"a": 1}, backoff_label=9, place="a.arpa")
