"""The numbering of words, and sentences as numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import DataError
from privasr_k2.lm.neural.vocabulary import (
    Vocabulary,
    order_by_count,
    read_vocabulary,
    vocabulary_text,
)


def test_order_is_by_count_then_by_the_words_own() -> None:
    found = order_by_count(["a", "b", "c", "d"], [["d", "d", "c"], ["b", "z", "z", "z"]])
    assert found.symbols == ("</s>", "<unk>", "d", "b", "c", "a")
    assert found.words == ("d", "b", "c", "a")


def test_symbols_are_no_words() -> None:
    words = ["<unk>", "a", "<s>", "a", "#0", "<UNK>", "<eps>"]
    found = order_by_count(words, [["<unk>", "</s>", "a"]])
    assert found.symbols == ("</s>", "<unk>", "a")
    assert found.encode([["</s>", "<s>", "<unk>", "a"]]).words.tolist() == [1, 1, 1, 2]


def test_sentences_as_numbers() -> None:
    text = Vocabulary(("</s>", "<unk>", "a", "b")).encode([["a"], [], ["b", "x", "a"]])
    assert len(text) == 3
    assert text.lengths.tolist() == [2, 1, 4]
    assert text.padded(np.array([2, 1])).tolist() == [[0, 3, 1, 2, 0], [0, 0, 0, 0, 0]]
    assert text.padded(np.array([], dtype=np.int64)).shape == (0, 2)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    known = order_by_count(["b", "a"], [["a"]])
    (tmp_path / "words.txt").write_text(vocabulary_text(known))
    read = read_vocabulary(tmp_path / "words.txt")
    assert read.symbols == known.symbols
    assert read.digest == known.digest != order_by_count(["b", "a"], []).digest


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (None, r"words.txt: expected a language model's words, found no such file"),
        ("<eps> 0\n", r"words.txt:1: expected </s> and the number 0, found '<eps> 0'"),
        ("</s> 0\n<unk> 1\na 3\n", r"words.txt:3: expected a word and the number 2"),
        ("</s> 0\n<unk> 1\na 2\na 3\n", "every word once"),
        ("</s> 0\n", "every word once"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str | None, named: str) -> None:
    if text is not None:
        (tmp_path / "words.txt").write_text(text)
    with pytest.raises(DataError, match=named):
        read_vocabulary(tmp_path / "words.txt")
