"""Batches of lhotse's K2SpeechRecognitionDataset, both ways; the oracle is lhotse itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from privasr_k2.am.ctc import CtcTask
from privasr_k2.data.batches import Batch, Batches, encode_texts, pad_batch
from privasr_k2.data.features import load_features
from privasr_k2.data.k2_batches import from_k2, to_k2
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import Lang, load_lang
from tests.support.small_am import tiny_model, write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Lang]:
    feats, lang = write_corpus(tmp_path_factory.mktemp("k2"), utterances=9)
    return load_cuts(feats, "train"), load_lang(lang)


def of_lhotse(cuts: Any, **options: Any) -> list[dict[str, Any]]:
    from lhotse.dataset import K2SpeechRecognitionDataset, SimpleCutSampler

    dataset = K2SpeechRecognitionDataset(**options)
    return [dataset[some] for some in SimpleCutSampler(cuts, max_cuts=4, shuffle=False)]


def test_lhotses_batches_are_ours(corpus: tuple[Any, Lang]) -> None:
    cuts, lang = corpus
    by_name = {cut.id: cut for cut in cuts}
    seen: list[str] = []
    for found in of_lhotse(cuts, return_cuts=True):
        batch = from_k2(found, lang.encode)
        chosen = [by_name[name] for name in batch.ids]
        features = [torch.from_numpy(load_features(cut)) for cut in chosen]
        texts = encode_texts(chosen, lang.encode)  # type: ignore[arg-type]
        expected = pad_batch(batch.ids, features, [texts[name] for name in batch.ids])
        for name in ("features", "lengths", "targets", "target_lengths"):
            assert torch.equal(getattr(batch, name), getattr(expected, name)), name
        seen += batch.ids
    assert sorted(seen) == sorted(by_name)
    assert from_k2(of_lhotse(cuts)[0], lang.encode).ids == ("0", "1", "2", "3")


def test_losses_are_those_of_our_own_loader(corpus: tuple[Any, Lang]) -> None:
    cuts, lang = corpus
    model, task = tiny_model("tdnn").eval(), CtcTask()

    def losses(batches: list[Batch]) -> dict[str, float]:
        found = {}
        for batch in batches:
            found.update(zip(batch.ids, task.loss(model, batch, None).sums.tolist()))
        return found

    theirs = losses([from_k2(one, lang.encode) for one in of_lhotse(cuts, return_cuts=True)])
    ours = Batches(cuts, encode_texts(cuts, lang.encode), max_duration=3.0, seed=None)
    assert theirs == pytest.approx(losses([*ours.epoch(0)]), rel=1e-4)


def test_ours_are_lhotses(corpus: tuple[Any, Lang]) -> None:
    cuts, lang = corpus
    texts = {cut.id: cut.supervisions[0].text for cut in cuts}
    for found in of_lhotse(cuts, return_cuts=True):
        made = to_k2(from_k2(found, lang.encode), texts)
        assert torch.equal(made["inputs"], found["inputs"])
        for name, value in made["supervisions"].items():
            given = found["supervisions"][name]
            assert value == given if name == "text" else torch.equal(value, given.int()), name


def test_several_supervisions_of_a_sequence_are_utterances() -> None:
    inputs = torch.arange(20.0).view(1, 10, 2)
    numbers = {"sequence_idx": [0, 0], "start_frame": [1, 6], "num_frames": [3, 4]}
    said = {name: torch.tensor(value) for name, value in numbers.items()}
    batch = from_k2({"inputs": inputs, "supervisions": {**said, "text": ["a", "b"]}}, lambda t: [1])
    assert torch.equal(batch.features[0, :3], inputs[0, 1:4])
    assert torch.equal(batch.features[1], inputs[0, 6:10])


@pytest.mark.parametrize("case", ["audio", "keys", "frames", "sequence"])
def test_what_is_no_such_batch(case: str) -> None:
    said: dict[str, Any] = {"sequence_idx": torch.tensor([0]), "start_frame": torch.tensor([0])}
    said |= {"num_frames": torch.tensor([4]), "text": ["a"]}
    found: dict[str, Any] = {"inputs": torch.ones(1, 4, 2), "supervisions": said}
    if case == "audio":
        found["inputs"] = torch.ones(1, 16000)
    elif case == "keys":
        del said["num_frames"]
    elif case == "frames":
        said["num_frames"] = torch.tensor([5])
    else:
        said["sequence_idx"] = torch.tensor([1])
    with pytest.raises(DataError):
        from_k2(found, lambda text: [1])
