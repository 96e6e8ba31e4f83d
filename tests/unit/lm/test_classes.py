"""Class models: a case by hand, and their protocol. Enumeration is in tests/oracles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privasr_k2.errors import GraphError
from privasr_k2.lm import classes
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.perplexity import perplexity
from privasr_k2.lm.sub_lm import make_sub_lm
from tests.support.tiny_lm import slow_prob, table

PLAIN = ["call", "now", "rose"]


def root() -> Arpa:
    text = ["call <PER> now", "call rose", "rose now", "call <PER>", "<PER> now"]
    counts = count_ngrams([s.split() for s in text], [*PLAIN, "<PER>"], order=3)
    return estimate(counts, "witten_bell")


def lm(cut_history: bool = False) -> ClassLm:
    names = make_sub_lm({("rose",): 1.0, ("ann", "lee"): 3.0}, "tree")
    return ClassLm(root(), {"PER": names}, cut_history=cut_history, name="x")


@pytest.mark.parametrize("cut_history", [False, True])
def test_a_word_that_is_both_has_the_sum(cut_history: bool) -> None:
    found = np.exp(lm(cut_history).token_log_probs([["call", "rose", "now"]]))
    ngrams = table(root())

    def p(*words: str) -> float:
        return slow_prob(ngrams, words[:-1], words[-1])

    plain, named = p("<s>", "call", "rose"), p("<s>", "call", "<PER>") * 0.25
    after_name = ("<PER>",) if cut_history else ("call", "<PER>")
    now = (plain * p("call", "rose", "now") + named * p(*after_name, "now")) / (plain + named)
    assert found[:2] == pytest.approx([p("<s>", "call"), plain + named])
    assert found[2] == pytest.approx(now)


def test_inside_a_name_nothing_else_can_follow() -> None:
    model = lm()
    found = np.exp(model.token_log_probs([["call", "ann", "lee"], ["call", "ann", "now"]]))
    assert found[2] == pytest.approx(1)
    assert found[6] == 0
    # After what cannot be, nothing is known.
    ngrams = table(root())
    assert found[7] == pytest.approx(ngrams[("</s>",)][0])


def test_protocol() -> None:
    model = lm()
    assert set(model.words) == {*PLAIN, "ann", "lee"}
    assert model.scores_unknown and model.name == "x"
    text = [["call", "ann", "lee", "now"], ["call", "zzz"], ["rose"]]
    scores = model.token_log_probs(text)
    assert len(scores) == 4 + 2 + 1 + 3
    assert scores.tolist() == model.nbest_token_log_probs([text[:1], text[1:]]).tolist()
    ngrams = table(root())
    assert scores[6] == pytest.approx(math.log(slow_prob(ngrams, ("<s>", "call"), "<unk>")))
    assert perplexity(model, text, [*PLAIN, "ann", "lee"]).oov == 1
    assert len(model.token_log_probs([])) == 0
    assert len(model.token_log_probs([[]])) == 1


def test_without_classes_it_is_the_root_model() -> None:
    text = [["call", "now"], ["rose", "rose", "now"], []]
    scores = ClassLm(root(), {}).token_log_probs(text)
    found = np.bincount([0, 0, 0, 1, 1, 1, 1, 2], scores)
    np.testing.assert_allclose(found, root().sentence_scores(text)[0] * math.log(10), atol=1e-12)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = [["call", "ann", "lee", "now"], ["call", "rose"], ["rose"], []]
    whole = lm().token_log_probs(text)
    monkeypatch.setattr(classes, "BLOCK", 1)
    np.testing.assert_array_equal(lm().token_log_probs(text), whole)


def test_names_alone_know_unknown_ones() -> None:
    text = [s.split() for s in ("call <PER> now", "call rose")]
    counts = count_ngrams(text, [*PLAIN, "<PER>"], order=2)
    plain = estimate(counts, "kneser_ney")  # gives <unk> nothing
    with_unknown = {"PER": make_sub_lm({("rose",): 1.0}, "tree", unknown_mass=0.5)}
    assert not ClassLm(plain, {"PER": make_sub_lm({("rose",): 1.0}, "tree")}).scores_unknown
    model = ClassLm(plain, with_unknown)
    expected = math.log(slow_prob(table(plain), ("call",), "<PER>") * 0.5)
    assert model.scores_unknown
    assert model.token_log_probs([["call", "zzz"]])[1] == pytest.approx(expected)


def test_another_root_and_the_same_names() -> None:
    model = lm()
    other = model.with_root(root())
    assert other.same_names(model) and other.name == model.name
    names = make_sub_lm({("rose",): 1.0, ("ann", "lee"): 2.0}, "tree")
    assert not model.same_names(ClassLm(root(), {"PER": names}))
    names = make_sub_lm({("rose",): 1.0, ("amy", "lee"): 3.0}, "tree")
    assert not model.same_names(ClassLm(root(), {"PER": names}))


def test_a_class_that_the_root_lacks() -> None:
    with pytest.raises(GraphError, match="<LOC> in the root model"):
        ClassLm(root(), {"LOC": make_sub_lm({("york",): 1.0}, "tree")})
