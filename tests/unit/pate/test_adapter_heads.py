"""Heads that are adapters of a public encoder: their folder is read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import save_model
from privasr_k2.graph.lang import load_lang
from privasr_k2.pate.ensembles import TeacherEnsemble
from privasr_k2.pate.heads import HeadConfig, load_heads, teacher
from privasr_k2.pate.heads_training import train_heads
from privasr_k2.training.weights import load_tensors
from tests.support.conf import section
from tests.support.small_am import features, upon_whisper
from tests.support.small_pate import heads_corpus

pytest.importorskip("lhotse")


def test_adapters_of_heads_are_read_back(tmp_path: Path) -> None:
    shards, _, lang = heads_corpus(tmp_path)
    model, folder = upon_whisper(), tmp_path / "upon"
    save_model(folder, model.spec, model.state_dict(), load_lang(lang).tokens)
    changes = ["trained=lora", "lora.rank=2", "lora.layers=[query,value,wide]"]
    changes += ["steps=6", "batch=3", "lr=0.02", "warmup_steps=2", "decay_to_public=0.0"]
    config = configuration.load(HeadConfig, [section("heads")], changes)
    train_heads(shards, folder, lang, tmp_path / "heads", config, torch.device("cpu"))
    found = load_tensors(tmp_path / "heads/heads.safetensors")
    assert len(found) == 2 * 3 * 2 and all(".lora." in name for name in found)
    ensemble = load_heads(tmp_path / "heads", "cpu", per_token=True)
    x, lengths = features(40, 31)
    hyps = [[(1, 2), (3,)], [(2, 2, 1)]]
    scores = []
    for k in range(3):
        alone = TeacherEnsemble([teacher(upon_whisper(config.lora), found, k)], per_token=True)
        scores.append(alone.hypothesis_scores(x, lengths, hyps))
    expected = np.concatenate(scores)
    np.testing.assert_allclose(ensemble.hypothesis_scores(x, lengths, hyps), expected, atol=1e-4)
    assert np.ptp(expected[:, 0, 0]) > 1e-3
