"""How utterances are cut into rounds, what grows when, and values that are refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from privasr_k2.federated.adapted_lm import Mixing
from privasr_k2.federated.fmp_simulation import (
    client_perplexities,
    epochs,
    global_marginals,
    rounds_of,
    sampled_clients,
    token_log_ratios,
)
from privasr_k2.federated.fmp_spoken import Turn, spoken_of
from privasr_k2.federated.marginals import background_unigrams
from tests.support.fmp_tiny import CACHES, NUMBERS, made_lists, random_world

U = background_unigrams([list("abcab")], NUMBERS, 3.0)


def one_client(*words: str) -> object:
    """Utterances of one client in their order."""
    lists = made_lists([[text] for text in words])
    return spoken_of(lists, [Turn(one.id, "c", "s", "prefix") for one in lists.lists], NUMBERS)


@pytest.mark.parametrize(("number", "rounds"), [(12, 3), (13, 3), (7, 10), (1, 2), (11, 10)])
def test_rounds_are_even_and_in_order(number: int, rounds: int) -> None:
    found = rounds_of(one_client(*["a"] * number), rounds)  # type: ignore[arg-type]
    sizes = np.bincount(found, minlength=rounds + 1)
    assert (np.diff(found) >= 0).all() and sizes.sum() == number and found[0] == 0
    assert sizes.max() - sizes.min() <= 1


def test_round_0_is_not_adapted_and_later_ones_know_what_was_said_before() -> None:
    spoken = one_client("h", "h", "h", "h")
    for refresh, expected in (("round", [0, 0, 1, 1]), ("utterance", [0, 0, 1, 2])):
        config = dataclasses.replace(CACHES, rounds=1, refresh=refresh)
        found = token_log_ratios(spoken, config, U, [Mixing(1.0, 0.0, 0.5)], [None])  # type: ignore[arg-type]
        words = found[spoken.tokens == NUMBERS.ids["h"], 0]  # type: ignore[attr-defined]
        assert (words[:2] == 0).all() and words[2] > 0
        assert (words[3] > words[2]) == (expected[3] > expected[2])
        assert not found[spoken.tokens == NUMBERS.end].any()  # type: ignore[attr-defined]


def test_caches_are_one_sparse_marginal_a_client() -> None:
    _, _, spoken = random_world(3, utterances=40, clients=5)
    kinds = [
        len({w for w in spoken.tokens[spoken.clients[spoken.token_utterances] == c] if w})
        for c in range(5)
    ]
    for refresh in ("round", "utterance"):
        config = dataclasses.replace(CACHES, rounds=5, refresh=refresh, decay=0.9)
        for epoch in epochs(spoken, config, U):
            assert (np.diff(epoch.caches.counts.indptr) <= kinds).all()


def test_nothing_is_adapted_with_a_global_marginal_of_the_background() -> None:
    _, _, spoken = random_world(2)
    mixing = Mixing(1.0, 0.7, 0.0)
    released = np.repeat(U[None], 2, axis=0)
    assert not token_log_ratios(spoken, CACHES, U, [mixing], [released]).any()
    assert token_log_ratios(spoken, CACHES, U, [mixing], [None]).any()


def test_samples_of_clients() -> None:
    config = dataclasses.replace(CACHES, rounds=6, client_fraction=0.5)
    drawn = sampled_clients(10, config)
    assert (drawn.sum(axis=1) == 5).all() and len({tuple(row) for row in drawn.tolist()}) > 1
    assert (sampled_clients(10, dataclasses.replace(config, client_fraction=1.0))).all()
    assert sampled_clients(10, dataclasses.replace(config, client_fraction=1e-9)).sum() == 6
    _, _, spoken = random_world(4, utterances=30)
    few = global_marginals(spoken, dataclasses.replace(CACHES, client_fraction=0.4), U)
    every = global_marginals(spoken, CACHES, U)
    assert np.allclose(few.sum(axis=1), 1) and not np.allclose(few, every)


def test_perplexities_by_client_and_round() -> None:
    spoken = one_client("a b", "a", "c")
    found = client_perplexities(spoken, np.full(7, -np.log(4.0)), 2)  # type: ignore[arg-type]
    assert found.tokens.tolist() == [[3, 2, 2]]
    assert np.allclose(found.by_round, 4) and np.isclose(found.total, 4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("rounds", 0), ("kernel_bandwidth", -1.0), ("prior_words", -1.0), ("decay", 0.0)),
        *(("decay", 1.5), ("refresh", "day"), ("client_fraction", 0.0)),
    ],
)
def test_values_out_of_range(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        dataclasses.replace(CACHES, **{name: value})  # type: ignore[arg-type]
