"""Pieces of a tokenizer.json: those of lower-case words, and how words are spelled in them."""

from __future__ import annotations

import pytest

from privasr_k2.errors import DataError
from privasr_k2.graph.lang import load_lang
from privasr_k2.graph.spelled import spellings
from privasr_k2.graph.tokenizer import Tokenizer
from tests.support.tiny_decoders import write_lang, write_tokenizer


@pytest.fixture
def tokenizer(tmp_path):
    write_tokenizer(tmp_path)
    return Tokenizer(tmp_path / "tokenizer.json")


def test_pieces_are_those_of_lower_case_letters(tokenizer):
    pieces = tokenizer.pieces
    assert pieces.keys() >= {"a", "▁a", "▁the", "he", "ab", "'"}
    # A capital, a figure, a space alone, and special tokens spell no word of ours.
    assert not {"T", "1", "▁", "<|endoftext|>"} & pieces.keys()
    assert [*pieces.values()] == sorted(pieces.values())
    assert all(tokenizer.numbers[name.replace("▁", "\u0120")] == n for name, n in pieces.items())


def test_words_are_spelled_behind_a_space(tokenizer):
    spelled = tokenizer.spell(["the", "abe", "t'a", "The", "\u00e9"])
    assert spelled.variants == {
        "the": [("▁the",)],
        "abe": [("▁a", "b", "e")],
        "t'a": [("▁t", "'", "a")],
    }
    assert spelled.sources == {"spelled": 3, "left out": 2}


def test_a_word_that_begins_with_no_piece_of_its_own_is_left_out(tokenizer):
    # Its first piece is a space alone, and so a piece of no word.
    assert tokenizer.spell(["'ab"]).variants == {}


def test_words_that_a_lang_folder_lacks_are_spelled_as_well(tmp_path):
    write_tokenizer(tmp_path)
    lang = load_lang(write_lang(tmp_path / "lang", tmp_path))
    assert "att" not in lang.word_ids
    names = [lang.tokens[number] for number in spellings(lang, ["att"])["att"]]
    assert names == ["▁a", "t", "t"]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        Tokenizer(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match=r"tokenizer of Hugging Face"):
        Tokenizer(tmp_path / "tokenizer.json")
