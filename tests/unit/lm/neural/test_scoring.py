"""Scores in batches and with shared prefixes; every prefix is evaluated once, memory is bounded."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privasr_k2.lm.neural import scoring
from privasr_k2.lm.neural.scoring import NeuralScorer
from tests.support.small_lm import KINDS, MODELS, nbest_lists, scorer


def slow_score(lm: NeuralScorer, hyp: list[str]) -> float:
    """One hypothesis at a time, one position after the other, nothing shared."""
    ids = [lm.vocabulary.ids.get(word, 1) for word in hyp]
    total = 0.0
    for place, word in enumerate([*ids, 0]):
        with torch.no_grad():
            total += float(lm.model.log_probs(torch.tensor([[0, *ids[:place]]]))[0, -1, word])
    return total


@pytest.mark.parametrize(("kind", "softmax", "tied"), MODELS)
def test_both_ways_equal_one_at_a_time(kind: str, softmax: str, tied: bool) -> None:
    lm, nbests = scorer(kind, softmax, tied), nbest_lists(3)
    expected = [np.array([slow_score(lm, hyp) for hyp in nbest]) for nbest in nbests]
    shared = lm.score_with_shared_prefixes(nbests)
    assert [len(one) for one in shared] == [12, 12, 12]
    for found, wanted, nbest in zip(shared, expected, nbests):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
        np.testing.assert_allclose(lm.score_sentences(nbest), wanted, atol=1e-4)
    assert np.concatenate(expected).std() > 1
    by_token = lm.token_log_probs([hyp for nbest in nbests for hyp in nbest])
    shared = lm.nbest_token_log_probs(nbests, max_numbers=20_000)
    np.testing.assert_allclose(shared, by_token, atol=1e-4)


@pytest.mark.parametrize(("kind", "softmax", "tied"), MODELS)
def test_all_words_are_predicted_in_the_states_of_a_text(
    kind: str, softmax: str, tied: bool
) -> None:
    lm = scorer(kind, softmax, tied)
    text = [hyp for nbest in nbest_lists(3) for hyp in nbest]
    states = lm.states(text)
    probs = lm.probs(states)
    assert probs.shape == (sum(len(hyp) + 1 for hyp in text), len(lm.symbols))
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-5)
    said = [lm.vocabulary.ids.get(word, 1) for hyp in text for word in (*hyp, None)]
    ends = np.cumsum([len(hyp) + 1 for hyp in text]) - 1
    columns = np.array(said)
    columns[ends] = 0
    own = np.log(probs[np.arange(len(columns)), columns])
    np.testing.assert_allclose(own, lm.token_log_probs(text), atol=1e-4)
    some = np.arange(len(columns))[::-3]  # in any order
    np.testing.assert_allclose(lm.probs(states[some]), probs[some], atol=1e-6)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_each_prefix_is_evaluated_once(
    kind: str, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for all lists, or once a list where a limit admits one list at a time."""
    lm, nbests = scorer(kind), nbest_lists(4, seed=1)
    evaluated = 0
    read = lm.model.read

    def counted(inputs, state):
        nonlocal evaluated
        evaluated += len(inputs)
        return read(inputs, state)

    monkeypatch.setattr(lm.model, "read", counted)
    longest = max(len(hyp) + 1 for nbest in nbests for hyp in nbest)
    size = lm.model.state_size(longest) + (longest + 1) * lm.model.output.dim
    lm.score_with_shared_prefixes(nbests, max_numbers=1 << 25 if together else 12 * size)
    prefixes = [{tuple(hyp[:n]) for hyp in nbest for n in range(len(hyp) + 1)} for nbest in nbests]
    together_or_not = [set().union(*prefixes)] if together else prefixes
    assert evaluated <= sum(map(len, together_or_not))
    assert evaluated >= len(set().union(*prefixes))
    assert evaluated < sum(len(hyp) + 1 for nbest in nbests for hyp in nbest) / 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [1, 4_000, 20_000])
def test_little_memory_gives_the_same(
    kind: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm, nbests = scorer(kind), nbest_lists(5, seed=2)
    largest = 0
    read = lm.model.read

    def watched(inputs, state):
        nonlocal largest
        hidden, after = read(inputs, state)
        numbers = sum(t.numel() for t in after.tensors if t.dtype == torch.float32)
        largest = max(largest, numbers)
        return hidden, after

    expected = lm.score_with_shared_prefixes(nbests)
    monkeypatch.setattr(lm.model, "read", watched)
    found = lm.score_with_shared_prefixes(nbests, max_numbers=limit)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, atol=1e-4)
    longest = max(len(hyp) for nbest in nbests for hyp in nbest)
    assert largest <= max(limit, lm.model.state_size(longest + 1))


def test_small_blocks_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    lm, sentences = scorer("lstm", "adaptive"), [hyp for nbest in nbest_lists(3) for hyp in nbest]
    expected = lm.score_sentences(sentences)
    monkeypatch.setattr(scoring, "BATCH_POSITIONS", 7)
    monkeypatch.setattr("privasr_k2.lm.neural.softmax.MAX_SCORES", 30)
    np.testing.assert_allclose(lm.score_sentences(sentences), expected, atol=1e-4)
    np.testing.assert_allclose(lm.score_with_shared_prefixes([sentences])[0], expected, atol=1e-4)


def test_empty_lists_and_hypotheses() -> None:
    lm = scorer("lstm")
    end = slow_score(lm, [])
    found = lm.score_with_shared_prefixes([[], [[]], [], [[], ["word3"]], []])
    assert [len(one) for one in found] == [0, 1, 0, 2, 0]
    np.testing.assert_allclose([found[1][0], found[3][0]], end, atol=1e-5)
    assert lm.score_with_shared_prefixes([]) == []
    assert [len(one) for one in lm.score_with_shared_prefixes([[], []])] == [0, 0]
    assert lm.score_sentences([]).shape == (0,)
    np.testing.assert_allclose(lm.score_sentences([[], ["word3"]]), found[3], atol=1e-5)


def test_scores_of_words_and_ends_are_in_the_order_of_the_text() -> None:
    lm, sentences = scorer("transformer"), [["word3", "ord4", "rd5"], [], ["unheard of"]]
    found = lm.token_log_probs(sentences)
    assert found.shape == (3 + 1 + 1 + 1 + 1,)
    np.testing.assert_allclose(found[3 + 1], slow_score(lm, []), atol=1e-5)
    np.testing.assert_allclose(found[:4].sum(), slow_score(lm, sentences[0]), atol=1e-4)
    np.testing.assert_allclose(found[5:].sum(), slow_score(lm, sentences[2]), atol=1e-4)


def test_a_symbol_in_a_text_is_no_sentence_end() -> None:
    lm = scorer("lstm")
    [found] = lm.score_with_shared_prefixes([[["</s>", "word3"]]])
    np.testing.assert_allclose(found, lm.score_sentences([["other", "word3"]]), atol=1e-5)


def test_dropout_is_off_and_the_mode_stays() -> None:
    lm, sentences = scorer("lstm"), [["word3", "ord4"]]
    expected = lm.score_sentences(sentences)
    lm.model.recurrent.dropout.p = 0.5
    lm.model.train()
    np.testing.assert_array_equal(lm.score_sentences(sentences), expected)
    np.testing.assert_allclose(lm.score_with_shared_prefixes([sentences])[0], expected, atol=1e-5)
    assert lm.model.training
