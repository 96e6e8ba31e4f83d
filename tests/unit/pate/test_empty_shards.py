"""The head of a shard without anything to learn from: it does not vote, and changes no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from privasr_k2 import config as configuration
from privasr_k2.pate.heads import HeadConfig, load_heads
from privasr_k2.pate.heads_training import train_heads
from privasr_k2.training.weights import load_tensors
from tests.support.conf import section
from tests.support.small_am import features
from tests.support.small_pate import heads_corpus

CONFIG = configuration.load(HeadConfig, [section("heads")], ["steps=3", "batch=2"])


@pytest.fixture
def corpus(tmp_path):
    pytest.importorskip("lhotse")
    return heads_corpus(tmp_path)


def run(corpus: tuple[Path, Path, Path], out: Path, **changes: Any) -> dict[str, torch.Tensor]:
    train_heads(*corpus, out, replace(CONFIG, **changes), torch.device("cpu"))
    return load_tensors(out / "heads.safetensors")


def test_the_head_of_an_empty_shard_does_not_vote(corpus, tmp_path):
    from lhotse.utils import fastcopy

    from privasr_k2.data.manifests import load_cuts, save_cuts

    whole = run(corpus, tmp_path / "whole", heads_at_once=1)
    kept = list(load_cuts(corpus[0] / "shard_2", "train"))
    unknown = [
        fastcopy(cut, supervisions=[fastcopy(cut.supervisions[0], text="é")]) for cut in kept
    ]
    public = load_tensors(corpus[1] / "model.safetensors")["output.bias"]
    for number, left in enumerate(([], unknown)):  # no data, or nothing that can be learned from
        save_cuts(left, corpus[0] / "shard_2", "train")
        found = run(corpus, tmp_path / f"{number}", heads_at_once=1)
        assert found["output.bias"].shape == whole["output.bias"].shape
        for head in (0, 2):  # nobody else's changes
            assert (found["output.weight"][head] == whole["output.weight"][head]).all()
        assert (found["output.bias"][1] == public).all()
        ensemble = load_heads(tmp_path / f"{number}", "cpu", per_token=True)
        assert ensemble.votes.tolist() == [1, 0, 1]
        assert load_heads(tmp_path / f"{number}", "cpu", per_token=True, chosen=[2]).votes == [0]
        x, lengths = features(40)
        assert ensemble.hypothesis_votes(x, lengths, [[(1,), (2, 3)]])[0].sum() == 2
        assert ensemble.token_votes(x, lengths).counts().sum() == 2
    save_cuts(kept, corpus[0] / "shard_2", "train")
    run(corpus, tmp_path / "0", heads_at_once=1)
    assert load_heads(tmp_path / "0", "cpu", per_token=True).votes.sum() == 3
