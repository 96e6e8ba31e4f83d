"""Choosing text, estimating, importing."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.train import NgramConfig, choose_text, import_arpa, train_ngram

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
def test_text(text: str, repeat: int, further: list[list[str]] | None, expected: list[list[str]]) -> None:
    chosen = choose_text(
        dataclasses.replace(CONFIG, text=text, train_repeat=repeat), TRAIN, further, Path("x.gz")
    )
    assert list(chosen) == expected


def test_text_that_is_not_there() -> None:
    with pytest.raises(DataError, match=r"x.gz: expected text for text=both, found no such file"):
        choose_text(dataclasses.replace(CONFIG, text="both"), TRAIN, None, Path("x.gz"))


def test_figures_are_logged_before_and_after_pruning(caplog: pytest.LogCaptureFixture) -> None:
    text = [list("abab"), list("abba"), list("cab")] * 3
    with caplog.at_level(logging.INFO):
        model = train_ngram(
            text, list("abc"), dataclasses.replace(CONFIG, max_ngrams=9), held_out=[list("ab")]
        )
    assert len(model.keys) <= 9
    assert caplog.text.count("perplexity of dev") == 2


def test_an_imported_model_is_checked_and_pruned(tmp_path: Path) -> None:
    model = train_ngram([list("abab"), list("cab")], list("abc"), CONFIG, held_out=[])
    write_arpa(model, tmp_path / "a.arpa")
    small = dataclasses.replace(CONFIG, max_ngrams=8)
    assert len(import_arpa(tmp_path / "a.arpa", ["a"], small, held_out=[]).keys) <= 8
    with pytest.raises(GraphError, match="none of its 6 words"):
        import_arpa(tmp_path / "a.arpa", ["A"], small, held_out=[])


def test_defaults(repo_root: Path) -> None:
    found = config.load(NgramConfig, [repo_root / "conf" / "lm_ngram.yaml"])
    assert found.max_ngrams == 1_000_000
    with pytest.raises(ConfigError, match="discounting must be one of"):
        config.load(NgramConfig, [repo_root / "conf" / "lm_ngram.yaml"], ["discounting=katz"])
