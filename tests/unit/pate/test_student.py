"""Training students from folders."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import load_recognizer
from privasr_k2.am.kinds import kind_of
from privasr_k2.am.train import train_cuts
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.graph.lang import load_lang
from privasr_k2.pate.student import StudentInputs, config_of, train_student
from privasr_k2.pate.student_data import Hyp
from privasr_k2.training.distributed import Process
from privasr_k2.training.weights import load_tensors, read_header
from tests.support.conf import section
from tests.support.end_to_end import END_TO_END, encoder, spelled_lang, speller, transducer
from tests.support.small_am import encoder_config, write_corpus

ALONE = Process(0, 1, torch.device("cpu"))
SHORT = ["epochs=2", "avg=1", "max_duration=4", "lr=0.01", "warmup_steps=2"]
SHORT += ["spec_augment.time_masks_per_second=5.0", "spec_augment.time_width=4"]
SHORT += ["student.pool_role=train", "student.least_steps=0", "student.patience=0"]
BOTH = ["student.unlabeled_data=[none,consistency]", "student.unanswered.min_confidence=0.0"]


def quick(kind: str, *changes: str) -> Any:
    files = [section(f"am_{kind}"), section(f"am_{kind}", "tiny"), section("student")]
    found = configuration.load(config_of(kind_of(files)), files, [*SHORT, *changes])
    if kind == "ctc":
        return replace(found, encoder=encoder_config("tdnn", dropout=0.1))
    part: dict[str, Any] = {"speller": speller(dim=16, layers=1, attention=8)}
    if kind == "rnnt":
        part = {"transducer": transducer(dim=16, joint=16)}
    return replace(found, encoder=encoder("tdnn", dropout=0.1), **part)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    feats, lang = write_corpus(tmp_path_factory.mktemp("student"), utterances=10)
    return feats, spelled_lang(lang)


def inputs(corpus: tuple[Path, Path], **changes: Any) -> StudentInputs:
    pool = load_cuts(corpus[0], "train")
    labels = {cut.id: (Hyp(cut.supervisions[0].text, 1.0),) for cut in pool}
    public = dict(dev=load_cuts(corpus[0], "dev"), lang=load_lang(corpus[1]), init=None)
    given: dict[str, Any] = dict(pool=pool, labels=labels, labeled=None, lists=None, **public)
    return StudentInputs(**{**given, **changes})


def log_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "train_log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("kind", ["ctc", *END_TO_END])
def test_certain_labels_train_as_transcripts_do(kind, corpus, tmp_path):
    given, config = inputs(corpus), quick(kind)
    train_student(given, tmp_path / "student", config, ALONE)
    train_cuts({"train": given.pool, "dev": given.dev}, given.lang, tmp_path / "am", config, ALONE)
    ours, theirs = (
        load_tensors(tmp_path / name / "model.safetensors") for name in ("student", "am")
    )
    assert ours.keys() == theirs.keys()
    for name in theirs:
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-3, atol=1e-4)
    assert load_recognizer(tmp_path / "student").tokens == list(given.lang.tokens)
    records = log_of(tmp_path / "student" / "candidates" / "none")
    expected = [record["dev_loss"] for record in log_of(tmp_path / "am")]
    assert [record["dev_loss"] for record in records] == pytest.approx(expected, rel=1e-3)
    about = read_json(tmp_path / "student" / "student.json")
    assert (
        about["unlabeled_data"] == "none"
        and about["candidates"]["none"]["utterances"]["answered_used"] == 10
    )
    # One epoch averaged: the dev loss of the model is that of the last epoch.
    assert about["candidates"]["none"]["dev"]["loss"] == pytest.approx(
        records[-1]["dev_loss"], rel=1e-5
    )


def test_a_small_pool_is_read_more_often(corpus, tmp_path):
    given = inputs(corpus)
    train_student(given, tmp_path, quick("ctc", "student.least_steps=7"), ALONE)
    epochs = log_of(tmp_path / "candidates" / "none")
    steps = [epoch["step"] for epoch in epochs]
    assert steps[-1] >= 7 > steps[-2] and len(epochs) > 2
    schedule = [epoch["epoch"] for epoch in epochs]
    assert schedule == [*range(1, len(epochs) + 1)]


def test_dev_ends_the_training_and_chooses_its_epochs(corpus, tmp_path):
    # Such a rate does not settle.
    worse = ["epochs=40", "lr=0.3", "warmup_steps=0", "final_lr_share=1.0"]
    train_student(inputs(corpus), tmp_path, quick("ctc", *worse, "student.patience=2"), ALONE)
    losses = [epoch["dev_loss"] for epoch in log_of(tmp_path / "candidates" / "none")]
    best = min(range(len(losses)), key=losses.__getitem__)
    assert len(losses) == best + 3 < 40
    about = read_json(tmp_path / "student.json")["candidates"]["none"]
    assert about["dev"]["loss"] == pytest.approx(losses[best], rel=1e-4)


def test_of_several_ways_the_best_on_dev_is_kept(corpus, tmp_path):
    pool = load_cuts(corpus[0], "train")
    labels = {cut.id: (Hyp(cut.supervisions[0].text, 1.0),) for cut in list(pool)[:3]}
    given = inputs(corpus, labels=labels)
    config = quick("ctc", *BOTH)
    train_student(given, tmp_path / "s", config, ALONE)
    about = read_json(tmp_path / "s" / "student.json")["candidates"]
    assert list(about) == ["none", "consistency"]
    assert [way["utterances"]["unanswered_used"] for way in about.values()] == [0, 7]
    chosen = read_json(tmp_path / "s" / "student.json")["unlabeled_data"]
    of_dev = {way: record["dev"] for way, record in about.items()}
    ranks = {way: (dev["token_errors"], dev["loss"]) for way, dev in of_dev.items()}
    assert chosen == min(ranks, key=lambda way: ranks[way]) and len(set(ranks.values())) == 2
    for name, value in load_tensors(tmp_path / "s" / "model.safetensors").items():
        path = tmp_path / "s" / "candidates" / chosen / "checkpoints" / "epoch-2.safetensors"
        assert torch.equal(value, load_tensors(path)[f"model.{name}"])
    before = (tmp_path / "s" / "model.safetensors").read_bytes()
    train_student(given, tmp_path / "s", config, ALONE)  # finished: nothing is trained again
    assert (tmp_path / "s" / "model.safetensors").read_bytes() == before
    latest = tmp_path / "s" / "candidates" / "none" / "checkpoints" / "latest.safetensors"
    fingerprint = read_header(latest)["fingerprint"]
    other = quick("ctc", *BOTH, "student.unlabeled_data=[none]", "student.labeled_weight=2")
    train_student(given, tmp_path / "s", other, ALONE)  # another loss is another training
    assert read_header(latest)["fingerprint"] != fingerprint


def test_ways_without_a_difference_are_trained_once(corpus, tmp_path):
    labels = {cut.id: (Hyp("C", 1.0),) for cut in load_cuts(corpus[0], "train")}
    config = quick("ctc", "epochs=1", *BOTH)
    train_student(inputs(corpus, labels=labels), tmp_path / "s", config, ALONE)
    about = read_json(tmp_path / "s" / "student.json")
    assert (
        about["unlabeled_data"] == "none"
        and about["candidates"]["none"] == about["candidates"]["consistency"]
    )
    assert [path.name for path in (tmp_path / "s" / "candidates").iterdir()] == ["none"]


def test_weights_and_guesses_count(corpus, tmp_path):
    """Another weight is another training; one that begins with a model keeps its mean."""
    pool = load_cuts(corpus[0], "train")
    given = inputs(corpus)
    config = quick("ctc", "epochs=1")
    train_student(given, tmp_path / "start", config, ALONE)
    found = []
    for share in (0.9, 0.6):
        labels = {cut.id: (Hyp("C", share), Hyp("CA", 1 - share)) for cut in pool}
        student = tmp_path / "student"  # that of the other weights is not continued
        begun = replace(given, labels=labels, init=tmp_path / "start")
        train_student(begun, student, config, ALONE)
        found.append(load_tensors(student / "model.safetensors"))
    start = load_tensors(tmp_path / "start" / "model.safetensors")
    assert not torch.equal(found[0]["output.weight"], found[1]["output.weight"])
    assert torch.equal(found[0]["mean"], start["mean"])


def test_with_nothing_to_learn_it_is_the_public_model(corpus, tmp_path):
    """Without an init random weights are refused, and nothing is written."""
    given, config = inputs(corpus), quick("ctc", "student.unlabeled_data=[none,consistency]")
    train_student(given, tmp_path / "start", quick("ctc", "epochs=1"), ALONE)
    student = tmp_path / "student"
    train_student(replace(given, labels={}, init=tmp_path / "start"), student, config, ALONE)
    folders = (student, tmp_path / "start")
    found, start = (load_tensors(folder / "model.safetensors") for folder in folders)
    assert found.keys() == start.keys()
    assert all(torch.equal(found[name], start[name]) for name in start)
    about = json.loads((student / "student.json").read_text())
    assert (
        about["unlabeled_data"] == "none"
        and about["candidates"]["none"]["utterances"]["answered_used"] == 0
    )
    with pytest.raises(DataError, match="none of 10 utterances answered"):
        train_student(replace(given, labels={}), tmp_path / "other", config, ALONE)
    assert not (tmp_path / "other").exists()


def test_features_of_another_kind_are_refused(corpus, tmp_path):
    given = inputs(corpus)
    cut = given.pool[0]
    wide = replace(cut, features=replace(cut.features, num_features=7))
    other = type(given.pool).from_cuts([wide])
    with pytest.raises(DataError, match="5 in --in-public-feats, 7 in --in-public-pool"):
        train_student(replace(given, pool=other, labels={}), tmp_path / "s", quick("ctc"), ALONE)
    assert not (tmp_path / "s").exists()
