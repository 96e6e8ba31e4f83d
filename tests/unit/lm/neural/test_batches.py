"""Batches: every sentence once, of like length, the same again; as many for each process."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.lm.neural.batches import Batches, choose_sentences, group_by_length, make_batch
from privasr_k2.lm.neural.vocabulary import Text
from privasr_k2.randomness import stream


def random_text(sentences: int = 200) -> Text:
    lengths = stream(1, "lengths").integers(0, 15, size=sentences)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Text(np.arange(2, 2 + starts[-1], dtype=np.int32), starts)


def content(batch) -> list[tuple[int, ...]]:
    return [tuple(row[:n]) for row, n in zip(batch.targets.tolist(), batch.lengths.tolist())]


@pytest.mark.parametrize("seed", [None, 1])
def test_every_sentence_comes_once(seed: int | None) -> None:
    text = random_text()
    batches = list(Batches(text, max_words=60, seed=seed).epoch(0))
    found = sorted(sentence for batch in batches for sentence in content(batch))
    assert found == sorted(
        (*text.words[a:b].tolist(), 0) for a, b in zip(text.starts, text.starts[1:])
    )
    total = Batches(text, max_words=60, seed=1).total_frames
    assert sum(int(batch.lengths.sum()) for batch in batches) == total
    for batch in batches:
        assert batch.inputs.numel() <= 60
        assert batch.inputs.shape == batch.targets.shape
        assert (batch.inputs[:, 0] == 0).all()
        for row, n in zip(range(len(batch)), batch.lengths.tolist()):
            assert batch.inputs[row, 1:n].tolist() == batch.targets[row, : n - 1].tolist()


def test_little_is_padding() -> None:
    batches = list(Batches(random_text(2000), max_words=200, seed=1).epoch(3))
    positions = sum(batch.inputs.numel() for batch in batches)
    assert positions < 1.02 * sum(int(batch.lengths.sum()) for batch in batches)
    assert len(batches) < 1.1 * positions / 200 + 15


def test_an_epoch_can_be_entered_anywhere_and_comes_again() -> None:
    source = Batches(random_text(), max_words=60, seed=1)
    whole = [batch.ids for batch in source.epoch(2)]
    assert [batch.ids for batch in source.epoch(2, skip=5)] == whole[5:]
    assert whole == [batch.ids for batch in Batches(random_text(), max_words=60, seed=1).epoch(2)]
    assert whole != [batch.ids for batch in source.epoch(1)]
    assert sorted(whole) != sorted(batch.ids for batch in source.epoch(1))  # other company, too


def test_processes_share_an_epoch() -> None:
    text = random_text()
    parts = [
        list(Batches(text, max_words=60, seed=1, rank=r, world_size=3).epoch(1)) for r in range(3)
    ]
    assert len({len(part) for part in parts}) == 1
    found = [name for part in parts for batch in part for name in batch.ids]
    assert {*found} == {f"sentence-{n + 1}" for n in range(200)}
    whole = [batch.ids for batch in Batches(text, max_words=60, seed=1).epoch(1)]
    dealt = [part[place].ids for place in range(len(parts[0])) for part in parts]
    assert dealt[: len(whole)] == whole
    assert dealt[len(whole) :] == whole[: len(dealt) - len(whole)]


def test_a_long_sentence_stands_alone() -> None:
    groups = group_by_length(np.array([3, 99, 2, 98]), 5, np.arange(4))
    assert [group.tolist() for group in groups] == [[2], [0], [3], [1]]
    assert group_by_length(np.array([], dtype=np.int64), 5, np.arange(0)) == []


def test_a_part_of_a_text() -> None:
    lengths = stream(1, "lengths").integers(1, 15, size=500)
    chosen = choose_sentences(lengths, 1000, seed=1)
    assert 980 < lengths[chosen].sum() <= 1000
    assert (np.diff(chosen) > 0).all()
    assert chosen.tolist() != choose_sentences(lengths, 1000, seed=2).tolist()
    assert choose_sentences(lengths, 0, seed=1).tolist() == list(range(500))


def test_the_ids_of_a_batch_name_sentences_of_the_text() -> None:
    assert make_batch(random_text(), np.array([4, 0])).ids == ("sentence-5", "sentence-1")
