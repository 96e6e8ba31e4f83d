"""Training a CTC model from folders: it learns, says what it drops, and gives the same again."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import is_untrained, load_model
from privasr_k2.am.ctc import CtcConfig
from privasr_k2.am.losses import greedy_tokens
from privasr_k2.am.train import train_am
from privasr_k2.data.batches import NothingLeftError, pad_batch
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import load_lang
from privasr_k2.training.distributed import Process
from privasr_k2.training.weights import load_tensors
from tests.support.conf import section
from tests.support.small_am import encoder_config, write_corpus

ALONE = Process(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_corpus(tmp_path_factory.mktemp("ctc"), utterances=48)


@pytest.fixture(scope="module")
def quick() -> CtcConfig:
    layers = [section("am_ctc"), section("am_ctc", "tiny")]
    changes = ["epochs=25", "max_duration=3", "lr=0.01", "warmup_steps=10"]
    changes += ["spec_augment.time_width=0"]
    conf_only = configuration.load(CtcConfig, layers, changes)
    return replace(conf_only, encoder=encoder_config("tdnn", dropout=0.0))


def test_learns_what_can_be_learned(corpus, quick, tmp_path):
    train_am(*corpus, tmp_path, quick, ALONE)
    model = load_model(tmp_path)
    lang = load_lang(corpus[1])
    assert tuple(model.tokens or ()) == lang.tokens
    dev = list(load_cuts(corpus[0], "dev"))
    given = [torch.from_numpy(cut.load_features()) for cut in dev]
    batch = pad_batch([cut.id for cut in dev], given, [[1]] * len(dev))
    found = greedy_tokens(*model.log_probs(batch.features, batch.lengths))
    right = sum(hyp == lang.encode(cut.supervisions[0].text) for hyp, cut in zip(found, dev))
    assert right >= len(dev) - 1
    assert configuration.load(CtcConfig, [tmp_path / "config.yaml"]) == quick


def test_the_same_again(corpus, quick, tmp_path):
    short = replace(quick, epochs=2)
    torch.manual_seed(7)
    train_am(*corpus, tmp_path / "one", short, ALONE)
    torch.manual_seed(8)
    train_am(*corpus, tmp_path / "two", short, ALONE)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two
    train_am(*corpus, tmp_path / "three", replace(short, seed=2), ALONE)
    assert one != (tmp_path / "three" / "model.safetensors").read_bytes()


def test_a_shard_without_data_gives_the_model_that_it_begins_with(corpus, quick, tmp_path):
    from lhotse.utils import fastcopy

    from privasr_k2.data.manifests import save_cuts

    short, feats = replace(quick, epochs=1), tmp_path / "shard"
    save_cuts(load_cuts(corpus[0], "dev"), feats, "dev")
    train_am(*corpus, tmp_path / "public", short, ALONE)
    begun = (load_tensors(tmp_path / "public" / "model.safetensors"), tmp_path / "public")
    cuts = list(load_cuts(corpus[0], "train"))
    unspelled = [fastcopy(cuts[0], supervisions=[fastcopy(cuts[0].supervisions[0], text="É")])]
    for left in ([], unspelled):
        save_cuts(left, feats, "train")
        with pytest.raises(NothingLeftError):
            train_am(feats, corpus[1], tmp_path / "am", short, ALONE, init=begun[1])
        again = {"may_be_empty": True, "init": begun[1]}
        train_am(feats, corpus[1], tmp_path / "am", short, ALONE, **again)
        assert is_untrained(tmp_path / "am")
        found = load_tensors(tmp_path / "am" / "model.safetensors")
        assert found.keys() == begun[0].keys()
        assert all((found[name] == value).all() for name, value in begun[0].items())
        assert load_model(tmp_path / "am").num_tokens == 4
    train_am(feats, corpus[1], tmp_path / "random", short, ALONE, may_be_empty=True)
    assert is_untrained(tmp_path / "random") and load_model(tmp_path / "random").num_tokens == 4
    save_cuts(cuts, feats, "train")
    train_am(feats, corpus[1], tmp_path / "am", short, ALONE, init=begun[1], may_be_empty=True)
    assert not is_untrained(tmp_path / "am")


def test_another_configuration_trains_anew(corpus, quick, tmp_path, caplog):
    train_am(*corpus, tmp_path, replace(quick, epochs=1), ALONE)
    with caplog.at_level(logging.WARNING):
        train_am(*corpus, tmp_path, replace(quick, epochs=2), ALONE)
    assert "training anew" in caplog.text
    assert len((tmp_path / "train_log.jsonl").read_text().splitlines()) == 2


def test_fewer_epochs_are_averaged_without_training(corpus, quick, tmp_path, caplog):
    train_am(*corpus, tmp_path, replace(quick, epochs=3, avg=2), ALONE)
    before = (tmp_path / "model.safetensors").read_bytes()
    with caplog.at_level(logging.INFO):
        train_am(*corpus, tmp_path, replace(quick, epochs=3, avg=1), ALONE)
    assert "continuing in epoch 4" in caplog.text
    assert before != (tmp_path / "model.safetensors").read_bytes()


def test_other_features_train_anew(quick, tmp_path, caplog):
    one, two = (write_corpus(tmp_path / str(scale), scale=scale) for scale in (1.0, 1.01))
    train_am(*one, tmp_path / "am", replace(quick, epochs=1), ALONE)
    with caplog.at_level(logging.WARNING):
        train_am(*two, tmp_path / "am", replace(quick, epochs=1), ALONE)
    assert "training anew" in caplog.text


def test_too_much_subsampling_is_said(corpus, quick, tmp_path):
    words = (corpus[1] / "lexicon.txt").read_text()
    lang = tmp_path / "lang"
    lang.mkdir()
    for name in ("tokens.txt", "words.txt"):
        (lang / name).write_text((corpus[1] / name).read_text())
    longer = "".join(f"{line} {'a b ' * 60}\n" for line in words.splitlines())
    (lang / "lexicon.txt").write_text(longer)
    with pytest.raises(DataError, match="all shorter"):
        train_am(corpus[0], lang, tmp_path / "am", quick, ALONE)
