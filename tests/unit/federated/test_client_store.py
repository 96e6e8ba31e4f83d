"""Clients on the disk are those that were added, and only a cohort of them is in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch

from privasr_k2.federated.client_store import ClientData, StoredClients
from privasr_k2.lm.neural.vocabulary import Text


def made(number: int, sentences: int = 3, words: int = 5) -> ClientData:
    generator = np.random.default_rng(number)
    lengths = generator.integers(0, words, size=sentences)
    text = generator.integers(2, 9, size=lengths.sum()).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    weights = generator.random(len(text) + sentences, dtype=np.float32)
    return ClientData(f"c{number}", Text(text, starts), weights, len(text))


def test_what_was_added_is_read() -> None:
    """In any order; one client has no sentence."""
    clients = [made(number, sentences=number % 4) for number in range(20)]
    stored = StoredClients()
    for client in clients:
        stored.add(client)
    assert len(stored) == 20 and [client.name for client in stored] == [c.name for c in clients]
    for number in (7, 19, 0, -1, 4):
        found, expected = stored[number], clients[number]
        assert (found.name, found.num_words) == (expected.name, expected.num_words)
        for one, other in (
            (found.text.words, expected.text.words),
            (found.text.starts, expected.text.starts),
            (found.weights, expected.weights),
        ):
            np.testing.assert_array_equal(one, other)
        assert found.text.words.dtype == np.int32 and found.weights.dtype == np.float32
        torch.from_numpy(found.weights).zero_()  # own memory, that can be written to
        np.testing.assert_array_equal(stored[number].weights, expected.weights)
    assert [client.name for client in stored[2:8:3]] == ["c2", "c5"]
    with pytest.raises(IndexError):
        stored[20]


def test_memory_does_not_grow_with_the_text() -> None:
    client = made(1, sentences=100, words=200)
    size = client.text.words.nbytes + client.text.starts.nbytes + client.weights.nbytes
    tracemalloc.start()
    stored = StoredClients()
    for _ in range(200):
        stored.add(client)
    sum(one.num_words for one in stored)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * size
