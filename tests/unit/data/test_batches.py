"""Batches: all utterances once an epoch, by seed, shared by processes, never too long."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from privasr_k2.data.batches import (
    Batches,
    drop_unalignable,
    drop_unspelled,
    encode_texts,
    needed_frames,
    pad_batch,
)
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import load_lang
from tests.support.small_am import write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_corpus(tmp_path_factory.mktemp("batches"), utterances=60)


def batches(corpus: tuple[Path, Path], **options: object) -> Batches:
    cuts = load_cuts(corpus[0], "train")
    targets = encode_texts(cuts, load_lang(corpus[1]).encode)
    return Batches(cuts, targets, **{"max_duration": 4.0, "seed": 1, **options})  # type: ignore[arg-type]


def names(made: Batches, epoch: int, **options: int) -> list[tuple[str, ...]]:
    return [batch.ids for batch in made.epoch(epoch, **options)]


def flat(told: list[tuple[str, ...]]) -> list[str]:
    return [name for ids in told for name in ids]


def test_every_utterance_once_in_an_order_of_its_own(corpus: tuple[Path, Path]) -> None:
    one, two = names(batches(corpus), 1), names(batches(corpus), 2)
    assert sorted(flat(one)) == sorted(flat(two)) == sorted(f"train-{n}" for n in range(60))
    assert one != two


def test_same_seed_and_epoch_same_batches_whatever_was_read_before(
    corpus: tuple[Path, Path],
) -> None:
    made = batches(corpus)
    names(made, 1)
    assert names(made, 2) == names(batches(corpus), 2) != names(batches(corpus, seed=2), 2)


def test_torchs_global_generator_is_not_touched(corpus: tuple[Path, Path]) -> None:
    before = torch.random.get_rng_state()
    first = names(batches(corpus), 1)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(1234)
    assert names(batches(corpus), 1) == first


def test_skipping_goes_on_where_it_stopped(corpus: tuple[Path, Path]) -> None:
    whole = names(batches(corpus), 3)
    assert names(batches(corpus), 3, skip=4) == whole[4:]
    assert names(batches(corpus), 3, skip=len(whole)) == []


def test_no_batch_is_longer_than_allowed(corpus: tuple[Path, Path]) -> None:
    made = list(batches(corpus).epoch(0))
    assert all(batch.features.size(0) * batch.features.size(1) <= 400 for batch in made)
    assert max(map(len, made)) > 3


def test_features_and_targets_belong_together(corpus: tuple[Path, Path]) -> None:
    cuts = {cut.id: cut for cut in load_cuts(corpus[0], "train")}
    lang = load_lang(corpus[1])
    for batch in batches(corpus).epoch(0):
        for row, name in enumerate(batch.ids):
            length, tokens = batch.lengths[row], batch.target_lengths[row]
            stored = torch.from_numpy(cuts[name].load_features())
            assert torch.equal(batch.features[row, :length], stored)
            assert not batch.features[row, length:].any()
            assert batch.targets[row, :tokens].tolist() == lang.encode(
                cuts[name].supervisions[0].text
            )


@pytest.mark.parametrize("world_size", [2, 3])
def test_processes_share_an_epoch_and_take_equally_many_steps(
    corpus: tuple[Path, Path], world_size: int
) -> None:
    shares = [
        names(batches(corpus, rank=rank, world_size=world_size), 1) for rank in range(world_size)
    ]
    assert len({len(share) for share in shares}) == 1
    # The last step of an epoch may repeat an utterance to give every process one.
    told = [flat(share) for share in shares]
    assert set().union(*told) == {f"train-{n}" for n in range(60)}
    assert sum(map(len, told)) <= 60 + world_size


def test_scoring_keeps_the_order(corpus: tuple[Path, Path]) -> None:
    assert flat(names(batches(corpus, seed=None), 0)) == [f"train-{n}" for n in range(60)]


def test_features_out_of_memory_are_the_same(corpus: tuple[Path, Path]) -> None:
    kept, read = batches(corpus), batches(corpus, memory_gb=0.0, num_workers=1)
    for one, two in zip(kept.epoch(1), read.epoch(1)):
        assert one.ids == two.ids and torch.equal(one.features, two.features)


def test_everything_is_everything(corpus: tuple[Path, Path]) -> None:
    made = batches(corpus, rank=1, world_size=2)
    assert sum(int(batch.lengths.sum()) for batch in made.everything()) == made.total_frames


def test_needed_frames_count_blanks_between_equals() -> None:
    assert [needed_frames(one) for one in ([1], [1, 1], [1, 2, 1], [1, 1, 1])] == [1, 3, 3, 5]


def test_too_long_texts_are_dropped_and_named(
    corpus: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    cuts = load_cuts(corpus[0], "train")
    targets = encode_texts(cuts, load_lang(corpus[1]).encode)
    targets["train-7"] = [1, 1] * 60
    with caplog.at_level(logging.WARNING):
        kept = drop_unalignable(cuts, targets, lambda frames: frames // 3, role="train")
    assert [cut.id for cut in cuts if cut.id not in {k.id for k in kept}] == ["train-7"]
    assert "1 of 60 utterances left out" in caplog.text and "train-7 (" in caplog.text
    assert "120 tokens" in caplog.text


def test_all_too_long_is_an_error(corpus: tuple[Path, Path]) -> None:
    cuts = load_cuts(corpus[0], "dev")
    with pytest.raises(DataError, match="6 utterances, all shorter"):
        targets = encode_texts(cuts, load_lang(corpus[1]).encode)
        drop_unalignable(cuts, targets, lambda frames: 0, role="dev")


def test_unknown_words_leave_their_utterances_out(
    corpus: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    cuts = load_cuts(corpus[0], "train")
    with caplog.at_level(logging.WARNING):
        kept = drop_unspelled(cuts, {"AB", "CA"}, role="train")
    texts = {cut.id: cut.supervisions[0].text.split() for cut in cuts}
    assert [cut.id for cut in kept] == [name for name, words in texts.items() if "C" not in words]
    assert f"{60 - len(kept)} of 60 utterances left out" in caplog.text
    with pytest.raises(DataError, match="words that the lexicon has"):
        drop_unspelled(cuts, set(), role="train")


def test_a_cut_without_text_is_named(corpus: tuple[Path, Path]) -> None:
    cut = next(iter(load_cuts(corpus[0], "dev")))
    cut.supervisions[0].text = " "
    with pytest.raises(DataError, match=f"{cut.id}: expected one supervision with text"):
        encode_texts([cut], list)  # type: ignore[arg-type]


def test_padding() -> None:
    batch = pad_batch(["a", "b"], [torch.ones(2, 3), torch.ones(4, 3)], [[1, 2], [3]])
    assert batch.features.sum(2).tolist() == [[3, 3, 0, 0], [3, 3, 3, 3]]
    assert batch.lengths.tolist() == [2, 4] and batch.target_lengths.tolist() == [2, 1]
    assert len(batch) == 2 and batch.to(torch.device("cpu")).ids == ("a", "b")
    assert batch.masks is None and batch.split(2)[0].masks is None


def test_masks_are_padded_and_split_with_their_utterances() -> None:
    masks = [torch.tensor([[True], [False]]), torch.tensor([[False], [True], [True]])]
    batch = pad_batch(["a", "b"], [torch.ones(2, 1), torch.ones(3, 1)], [[1], [2]], masks)
    assert batch.masks.squeeze(2).tolist() == [[True, False, False], [False, True, True]]
    assert [part.masks.shape for part in batch.split(2)] == [(1, 2, 1), (1, 3, 1)]
