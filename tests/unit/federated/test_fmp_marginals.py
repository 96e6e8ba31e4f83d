"""Personal and global marginals: the kernel's limits, smoothing, averages, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_spoken import Turn, WordNumbers, numbers_of_vocabulary, spoken_of
from privasr_k2.federated.marginals import (
    Marginals,
    background_share,
    background_unigrams,
    no_marginals,
    rank_kernel,
    ratio_to,
    utterance_counts,
)
from privasr_k2.lm.neural.vocabulary import Vocabulary
from tests.support.fmp_tiny import NUMBERS, made_lists, random_world

U = background_unigrams([list("abcab")], NUMBERS, 3.0)


def marginals(seed: int = 1, prior_words: float = 2.0) -> Marginals:
    """The caches of three clients, the last without words."""
    _, _, spoken = random_world(seed)
    counts = utterance_counts(spoken, 1.0, normalized=False)[:3].copy()
    counts.data[counts.indptr[2] :] = 0
    return no_marginals(3, NUMBERS, prior_words).grown(counts, 1.0)


@pytest.mark.parametrize(
    ("kernel_bandwidth", "rest"), [(1e-12, 0), (0.0, 0), (1e-300, 0), (1e12, 1), (np.inf, 1)]
)
def test_bandwidth_from_the_best_hypothesis_to_all(kernel_bandwidth: float, rest: int) -> None:
    assert rank_kernel([1, 2, 20], kernel_bandwidth).tolist() == [1, rest, rest]


def test_words_of_no_weight_are_not_in_the_smoothing_mass() -> None:
    """At bandwidth 0.1 the second hypothesis weighs 2e-22, the twentieth nothing at all."""
    timeline = [Turn("u000", "c", "s", "prefix")]
    spoken = spoken_of(made_lists([["a a b", "c d", "e f g"]]), timeline, NUMBERS)
    shares = {}
    for kernel_bandwidth in (0.0, 0.1, 1.0):
        counts = utterance_counts(spoken, kernel_bandwidth, normalized=False)
        [shares[kernel_bandwidth]] = no_marginals(1, NUMBERS, 0.0).grown(counts, 1.0).shares
    assert shares[0.1] == shares[0.0] == 2 / (3 + 2) < shares[1.0]
    edge = np.sqrt(-2 * np.log(1e-6))  # sigma 1: a rank so far behind weighs 1e-6
    assert (rank_kernel([1 + edge * 0.999, 1 + edge * 1.001], 1.0) > 0).tolist() == [True, False]


def test_bandwidth_below_zero_and_nan_are_refused() -> None:
    for kernel_bandwidth in (-1.0, np.nan):
        with pytest.raises(ValueError, match="kernel_bandwidth"):
            rank_kernel([1], kernel_bandwidth)


def test_counts_of_an_utterance() -> None:
    timeline = [Turn("u000", "c", "s", "prefix"), Turn("u001", "c", "s", "prefix")]
    spoken = spoken_of(made_lists([["a a b", "a", ""], []]), timeline, NUMBERS)
    plain = utterance_counts(spoken, np.inf, normalized=False).toarray()
    assert plain[0, :4].tolist() == [0, 3, 1, 0] and not plain[1].any()
    assert utterance_counts(spoken, 0.0, normalized=False).toarray()[0, :3].tolist() == [0, 2, 1]
    expected = utterance_counts(spoken, np.inf, normalized=True).toarray()
    assert np.allclose(expected[0, :3], [0, 1, 1 / 3])
    assert spoken.tokens.tolist() == [1, 1, 2, 0, 1, 0, 0]


def test_marginals_sum_to_one_and_an_empty_client_has_the_background() -> None:
    found = marginals()
    dense = np.stack([found.dense(i, U) for i in range(3)])
    assert np.allclose(dense.sum(axis=1), 1, atol=1e-12)
    assert dense[2].tolist() == U.tolist()
    assert not found.ratio(2, U).any()
    ratios = np.stack([found.ratio(i, U) for i in range(3)])
    assert np.allclose(ratios, ratio_to(dense, U), atol=1e-12)


def test_ratios_at_single_words() -> None:
    found = marginals()
    clients, words = np.divmod(np.arange(27), 9)
    expected = np.stack([found.ratio(i, U) for i in range(3)])
    assert np.allclose(found.ratios_at(clients, words, U), expected.ravel(), atol=1e-12)


def test_the_prior_of_the_background() -> None:
    assert background_share([10.0], [5], 0.0).tolist() == [1 / 3]
    assert background_share([10.0], [5], 30.0).tolist() == [0.75]
    with pytest.raises(ValueError, match="prior_words"):
        background_share([1.0], [1], -1.0)


def test_a_sample_of_clients_is_averaged_alone() -> None:
    found = marginals()
    for client in range(2):
        chosen = np.arange(3) == client
        assert np.allclose(found.average(U, chosen), found.dense(client, U), atol=1e-12)
    assert found.average(U, np.arange(3) == 2).tolist() == U.tolist()


def test_a_client_costs_what_it_has_said() -> None:
    found = no_marginals(1000, NUMBERS, 2.0)
    assert found.counts.nnz == 0
    grown = found.grown(no_marginals(1000, NUMBERS, 2.0).counts, 0.5)
    assert grown.counts.nnz == 0 and grown.average(U).tolist() == U.tolist()


def test_words_outside_the_vocabulary() -> None:
    timeline = [Turn("u000", "c", "s", "prefix")]
    message = r"1\.jsonl:1 \(u000\).*words of the vocabulary.*1 others: z"
    with pytest.raises(DataError, match=message):
        spoken_of(made_lists([["a z"]]), timeline, NUMBERS)
    known = WordNumbers(NUMBERS.ids, 9, 0, (0,), 1)
    assert spoken_of(made_lists([["b z"]]), timeline, known).tokens.tolist() == [2, 1, 0]
    numbers = numbers_of_vocabulary(Vocabulary(("</s>", "<unk>", "a")), unknown=True)
    assert numbers.of(["q"], "x") == [1]


def test_lists_without_ranks_are_refused() -> None:
    lists = made_lists([["a", "b"]])
    hyps = tuple(replace(hyp, rank=0) for hyp in lists.lists[0].hyps)
    unranked = replace(lists, lists=(replace(lists.lists[0], hyps=hyps),))
    with pytest.raises(DataError, match="hypotheses ranked 1, 2"):
        spoken_of(unranked, [Turn("u000", "c", "s", "prefix")], NUMBERS)


def test_a_timeline_of_other_utterances_is_refused() -> None:
    lists = made_lists([["a"]])
    with pytest.raises(DataError, match="utterances of the timeline"):
        spoken_of(lists, [], NUMBERS)
    with pytest.raises(DataError, match="every utterance once"):
        spoken_of(lists, [Turn("u000", "c", "s", "prefix")] * 2, NUMBERS)


def test_places_follow_time_within_each_client() -> None:
    order = [
        Turn("u002", "c", "s", "prefix"),
        Turn("u000", "d", "s", "prefix"),
        Turn("u001", "c", "s", "prefix"),
    ]
    assert spoken_of(made_lists([["a"], ["a"], ["b"]]), order, NUMBERS).places.tolist() == [0, 1, 0]
