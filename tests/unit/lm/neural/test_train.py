"""Training learns, continues as if never interrupted, and logs."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import DataError
from privasr_k2.lm.neural.batches import Batches
from privasr_k2.lm.neural.files import load_lm
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.train import LmTask, train_lm
from privasr_k2.lm.perplexity import perplexity
from tests.support.lm_training import ALONE, Stop
from tests.support.small_lm import (
    GRAMMAR_WORDS,
    KINDS,
    grammar_sentences,
    settings,
    unigram_entropy,
)

TRAIN, DEV = grammar_sentences(300), grammar_sentences(60, seed=1)
TRUE_NATS = np.log(4) + np.log(3)  # of a sentence: which name, how many "very"
QUICK = ("epochs=5", "lr=0.02", "max_words=100", "save_every=0")


@pytest.mark.parametrize(
    ("kind", "softmax"), [*((kind, "full") for kind in KINDS), ("lstm", "adaptive")]
)
def test_a_small_grammar_is_learned(kind: str, softmax: str, tmp_path: Path) -> None:
    epochs = 5 if kind == "transformer" else 12
    larger = [] if kind == "transformer" else ["network.layers=1", "network.dim=32"]
    config = settings(kind, softmax, kind != "char_lstm", *QUICK, f"epochs={epochs}", *larger)
    train_lm(TRAIN, DEV, GRAMMAR_WORDS, tmp_path, config, ALONE)
    result = perplexity(NeuralScorer(*load_lm(tmp_path)), DEV, GRAMMAR_WORDS)
    nats = result.nats / (result.words + result.sentences)
    best = TRUE_NATS / np.mean([len(sentence) + 1 for sentence in DEV])
    assert best - 0.02 < nats < best + 0.25 < unigram_entropy(TRAIN) / 2
    logged = [json.loads(line) for line in (tmp_path / "train_log.jsonl").read_text().splitlines()]
    assert len(logged) == epochs
    chosen = min(record["dev_loss"] for record in logged)
    assert nats == pytest.approx(chosen, abs=1e-5)  # the best epoch's weights
    least = min(record["dev_ppl_with_oov"] for record in logged)
    assert least == pytest.approx(np.exp(nats), rel=1e-4)
    assert list((tmp_path / "tensorboard").iterdir())


def test_a_model_is_trained_further(tmp_path: Path) -> None:
    first, further = tmp_path / "first", tmp_path / "further"
    quick = settings("lstm", "full", True, *QUICK, "epochs=2")
    train_lm(TRAIN[:40], DEV, GRAMMAR_WORDS, first, quick, ALONE)
    # No step worth the name is taken: what comes out is what went in, in the first model's
    # numbering.
    still = settings("lstm", "full", True, *QUICK, "epochs=1", "lr=1e-12", "network.dropout=0.5")
    train_lm(TRAIN[::-1], DEV, GRAMMAR_WORDS, further, still, ALONE, init=first)
    assert (first / "words.txt").read_text() == (further / "words.txt").read_text()
    scores = [NeuralScorer(*load_lm(folder)).score_sentences(DEV) for folder in (first, further)]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-5)
    # The weights it began from are part of what a checkpoint depends on.
    train_lm(TRAIN, DEV, GRAMMAR_WORDS, first, quick, ALONE)
    train_lm(TRAIN[::-1], DEV, GRAMMAR_WORDS, further, still, ALONE, init=first)
    scores = [NeuralScorer(*load_lm(folder)).score_sentences(DEV) for folder in (first, further)]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-5)


def test_a_model_of_another_form_or_other_words_is_not_trained_further(tmp_path: Path) -> None:
    config = settings("lstm", "full", True, *QUICK)
    train_lm(TRAIN, DEV, GRAMMAR_WORDS, tmp_path / "first", config, ALONE)
    wider = settings("lstm", "full", True, *QUICK, "network.dim=48")
    other = settings("transformer", "full", True, *QUICK)
    same = settings("lstm", "full", True, *QUICK)
    for config, words, complaint in (
        (wider, GRAMMAR_WORDS, "the weights of this model"),
        (other, GRAMMAR_WORDS, "kind: transformer, found lstm"),
        (same, [*GRAMMAR_WORDS, "more"], "1 are in one of them only, 'more'"),
    ):
        with pytest.raises(DataError, match=complaint):
            train_lm(TRAIN, DEV, words, tmp_path / "x", config, ALONE, init=tmp_path / "first")


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_training_ends_alike(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = ("network.dropout=0.2", "epochs=3", "save_every=4")
    config = settings(kind, "adaptive", kind != "char_lstm", *QUICK, *changes)
    train_lm(TRAIN, DEV, GRAMMAR_WORDS, tmp_path / "whole", config, ALONE)
    steps, loss = 0, LmTask.loss

    def stopping(self, model, batch, generator):
        nonlocal steps
        steps += generator is not None
        if steps in (10, 25):
            steps += 1
            raise Stop
        return loss(self, model, batch, generator)

    monkeypatch.setattr(LmTask, "loss", stopping)
    for _ in range(2):
        with pytest.raises(Stop):
            train_lm(TRAIN, DEV, GRAMMAR_WORDS, tmp_path / "parts", config, ALONE)
    train_lm(TRAIN, DEV, GRAMMAR_WORDS, tmp_path / "parts", config, ALONE)
    for name in ("model.safetensors", "words.txt", "model.yaml", "train_log.jsonl"):
        parts, whole = ((tmp_path / run / name).read_bytes() for run in ("parts", "whole"))
        assert parts == whole, name


@pytest.mark.parametrize(
    ("change", "anew"),
    [({"avg": 1}, False), ({"lr": 0.01}, True), ({"max_words": 90}, True), ({}, True)],
)
def test_other_data_or_numbers_train_anew(
    change: dict, anew: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = settings("lstm", "full", False, *QUICK, "epochs=1")
    train_lm(TRAIN, DEV, GRAMMAR_WORDS, tmp_path, config, ALONE)
    text = TRAIN if change else [*TRAIN[1:], ["very"]]
    with caplog.at_level(logging.INFO):
        train_lm(text, DEV, GRAMMAR_WORDS, tmp_path, replace(config, **change), ALONE)
    assert ("training anew" in caplog.text) == anew


def test_unknown_words_are_counted_and_learned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = settings("lstm", "full", False, *QUICK, "epochs=2")
    words = [word for word in GRAMMAR_WORDS if word != "verb1"]
    with caplog.at_level(logging.INFO):
        train_lm(TRAIN, DEV, words, tmp_path, config, ALONE)
    unknown = sum(sentence.count("verb1") for sentence in TRAIN)
    shown = f"train: 300 sentences, {sum(map(len, TRAIN))} words, {unknown} of them unknown"
    assert shown in caplog.text
    model, vocabulary = load_lm(tmp_path)
    assert "verb1" not in vocabulary.ids
    result = perplexity(NeuralScorer(model, vocabulary), DEV, words)
    assert result.oov == sum(sentence.count("verb1") for sentence in DEV)
    assert np.exp(result.oov_nats / result.oov) < len(vocabulary)  # better than chance
    assert f"dev: perplexity {result.ppl:.2f}" in caplog.text


def test_processes_and_seed_reach_the_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict] = []

    class Spied(Batches):
        def __init__(self, text, **options):
            given.append(options)
            super().__init__(text, **options)

    monkeypatch.setattr("privasr_k2.lm.neural.train.Batches", Spied)
    config = settings("lstm", "full", False, *QUICK, "epochs=1", "seed=7")
    train_lm(TRAIN, DEV, GRAMMAR_WORDS, tmp_path, config, ALONE)
    assert given == [
        {"max_words": 100, "seed": 7, "rank": 0, "world_size": 1},
        {"max_words": 100, "seed": None},
    ]


def test_part_of_the_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = settings("lstm", "full", False, *QUICK, "epochs=1", "max_text_words=100")
    with caplog.at_level(logging.INFO):
        train_lm(TRAIN, DEV, GRAMMAR_WORDS, tmp_path, config, ALONE)
    assert any(f"sentences, {n} words, 0 of" in caplog.text for n in range(95, 101))


def test_symbols_of_a_lang_folder_are_no_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder made elsewhere numbers symbols among its words; recognized text has some."""
    words = ["<UNK>", "<s>", "</s>", "<eps>", "<unk>", *GRAMMAR_WORDS]
    quick = settings("lstm", "full", True, *QUICK, "epochs=1")
    train_lm(TRAIN, DEV, words, tmp_path / "first", quick, ALONE)
    with caplog.at_level(logging.INFO):
        train_lm(TRAIN, DEV, words, tmp_path / "further", quick, ALONE, init=tmp_path / "first")
    assert "dev: perplexity" in caplog.text
    model, vocabulary = load_lm(tmp_path / "further")
    assert set(vocabulary.words) == set(GRAMMAR_WORDS)
    result = perplexity(NeuralScorer(model, vocabulary), [["very", "<UNK>", "<eps>"]], words)
    assert (result.oov, result.words_lacking, result.words_beyond) == (2, 0, 0)


def test_references_without_words_do_not_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    quick = settings("lstm", "full", True, *QUICK, "epochs=1")
    shown = []
    for folder, dev in (("with", [[], *DEV, []]), ("without", DEV)):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            train_lm(TRAIN[:50], dev, GRAMMAR_WORDS, tmp_path / folder, quick, ALONE)
        shown.append([line for line in caplog.messages if line.startswith("dev: ")])
    assert len(shown[0]) == 2 and shown[0] == shown[1]
    assert f"{len(DEV)} sentence ends" in shown[0][1]


def test_no_text() -> None:
    config = settings("lstm")
    with pytest.raises(DataError, match="the training text: expected sentences, found none"):
        train_lm([], DEV, GRAMMAR_WORDS, Path("x"), config, ALONE)
    with pytest.raises(DataError, match="the dev text: expected sentences, found none"):
        train_lm(TRAIN, [[]], GRAMMAR_WORDS, Path("x"), config, ALONE)
