"""Choosing text, estimating, importing."""

from __future__ import annotations

import dataclasses
import gzip
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.fileio import write_jsonl
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.ngram import perplexity
from privasr_k2.lm.train import (
    NgramConfig,
    choose_text,
    dev_text,
    import_arpa,
    train_ngram,
    training_text,
)
from tests.support.conf import section

CONFIG = NgramConfig(order=3, discounting="witten_bell", max_ngrams=0, text="auto", train_repeat=1)
TRAIN, OTHER = [["a", "b"]], [["b", "c"], ["c"]]


@pytest.mark.parametrize(
    ("text", "repeat", "further", "expected"),
    [
        ("auto", 1, None, TRAIN),
        ("auto", 2, OTHER, OTHER),
        ("train", 2, OTHER, TRAIN * 2),
        ("both", 2, OTHER, OTHER + TRAIN * 2),
        ("lm_text", 1, OTHER, OTHER),
    ],
)
def test_text(
    text: str, repeat: int, further: list[list[str]] | None, expected: list[list[str]]
) -> None:
    config = dataclasses.replace(CONFIG, text=text, train_repeat=repeat)
    assert list(choose_text(config, TRAIN, further, Path("x.gz"))) == expected


def test_text_that_is_not_there() -> None:
    with pytest.raises(DataError, match=r"x.gz: expected text for text=both, found no such file"):
        choose_text(dataclasses.replace(CONFIG, text="both"), TRAIN, None, Path("x.gz"))


def _cut_of_train(folder: Path, text: str) -> None:
    times = {"id": "1", "start": 0.0, "duration": 1.0, "channel": 0}
    said = {**times, "recording_id": "1", "text": text}
    cut = {**times, "supervisions": [said], "type": "MonoCut"}
    write_jsonl(folder / "cuts_train.jsonl.gz", [cut])


def test_text_of_files(tmp_path: Path) -> None:
    """Files replace the corpus's text and dev cuts; a file named twice counts twice."""
    (tmp_path / "a.txt").write_text("b c\n\nc\n")
    (tmp_path / "b.jsonl").write_text('{"id": "1", "text": "a b"}\n')
    a, b = tmp_path / "a.txt", tmp_path / "b.jsonl"
    assert training_text(CONFIG, None, [b, a, b]) == [["a", "b"], ["b", "c"], ["c"], ["a", "b"]]
    assert training_text(CONFIG, tmp_path / "nowhere", [a]) == OTHER
    assert training_text(CONFIG, tmp_path / "nowhere", None, a) == [["b", "c"], [], ["c"]]
    (tmp_path / "lm_text.txt.gz").write_bytes(gzip.compress(b"c c\n"))
    assert training_text(CONFIG, tmp_path, None) == [["c", "c"]]
    _cut_of_train(tmp_path, "a b")
    beside = dataclasses.replace(CONFIG, text="beside", train_repeat=2)
    assert training_text(beside, tmp_path, None) == [["c", "c"]] * 2
    assert training_text(beside, tmp_path, None, a) == [["b", "c"], [], ["c"], *[["c", "c"]] * 2]
    (tmp_path / "lm_text.txt.gz").unlink()
    assert training_text(beside, tmp_path, None, a) == [["b", "c"], [], ["c"], *[["a", "b"]] * 2]
    assert dev_text(tmp_path, a) == OTHER
    assert dev_text(tmp_path, None) == dev_text(None, None) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "both"}, "expected text=auto with --in-text, found text=both"),
        ({"train_repeat": 2}, "expected train_repeat=1 with --in-text, found train_repeat=2"),
    ],
)
def test_values_that_choose_from_a_corpus_do_not_go_with_files(change: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        training_text(dataclasses.replace(CONFIG, **change), None, [Path("a.txt")])


def test_neither_files_nor_a_corpus() -> None:
    with pytest.raises(ConfigError, match="--in-manifests: expected a corpus, or files of text"):
        training_text(CONFIG, None, None)


def test_figures_are_logged_before_and_after_pruning(caplog: pytest.LogCaptureFixture) -> None:
    text = [list("abab"), list("abba"), list("cab")] * 3
    small = dataclasses.replace(CONFIG, max_ngrams=9)
    with caplog.at_level(logging.INFO):
        model = train_ngram(text, list("abc"), small, held_out=[list("ab")])
    assert len(model.keys) <= 9
    assert caplog.text.count("perplexity of dev") == 2


@pytest.mark.parametrize("tags", [[], ["<PER>"]])
def test_text_of_other_words_is_refused(tags: list[str], caplog: pytest.LogCaptureFixture) -> None:
    words = [*"abc", *tags]
    with pytest.raises(DataError, match="none of 6: A B B"):
        train_ngram([[*"AB", *tags], list("BCAB")], words, CONFIG, held_out=[])
    for upper, warned in (("ABC", False), ("ABCD", True)):
        caplog.clear()
        train_ngram([[*"abc", *upper, *tags]], words, CONFIG, held_out=[])
        assert ("57 % of the text's words" in caplog.text) == warned
    train_ngram([tags or ["a"]], words, CONFIG, held_out=[])  # a class alone is no other word


def test_an_imported_model_is_checked_and_pruned(tmp_path: Path) -> None:
    model = train_ngram([list("abab"), list("cab")], list("abc"), CONFIG, held_out=[])
    write_arpa(model, tmp_path / "a.arpa")
    small = dataclasses.replace(CONFIG, max_ngrams=8)
    assert len(import_arpa(tmp_path / "a.arpa", ["a"], small, held_out=[]).keys) <= 8
    with pytest.raises(GraphError, match="none of its 6 words"):
        import_arpa(tmp_path / "a.arpa", ["x"], small, held_out=[])


@pytest.mark.parametrize("change", [str.lower, str.upper])
def test_an_imported_model_takes_the_case_of_the_words(tmp_path: Path, change: Callable) -> None:
    model = train_ngram([list("aBab"), list("cab")], list("aBbc"), CONFIG, held_out=[])
    write_arpa(model, tmp_path / "a.arpa")
    small = dataclasses.replace(CONFIG, max_ngrams=0)
    with pytest.raises(GraphError, match=r"'B' in several\n.*--text-case keep"):
        import_arpa(tmp_path / "a.arpa", list("ABC"), small, held_out=[])
    assert "B" in import_arpa(tmp_path / "a.arpa", list("aBbc"), small, held_out=[]).words
    plain = train_ngram([list("abab"), list("cab")], list("abc"), CONFIG, held_out=[])
    other = replace(plain, words=tuple(w if w[0] == "<" else w.swapcase() for w in plain.words))
    for written in (plain, other):
        write_arpa(written, tmp_path / "b.arpa")
        taken = import_arpa(tmp_path / "b.arpa", list(map(change, "abc")), small, held_out=[])
        expected = [word if word[0] == "<" else change(word) for word in plain.words]
        assert sorted(taken.words) == sorted(expected)
        sentences = [list(map(change, "abc"))]
        like = replace(plain, words=tuple(expected))
        assert perplexity(taken, sentences) == pytest.approx(perplexity(like, sentences))


def test_defaults() -> None:
    assert config.load(NgramConfig, [section("lm_ngram")]).max_ngrams == 1_000_000
    for wrong, message in (
        ("discounting=katz", "discounting must be one of"),
        ("text=some", "text must be one of auto"),
        ("train_repeat=0", "train_repeat must be at least 1"),
    ):
        with pytest.raises(ConfigError, match=message):
            config.load(NgramConfig, [section("lm_ngram")], [wrong])
