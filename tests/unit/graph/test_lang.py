"""Language folders: reading, checking, encoding."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.graph.lang import (
    check_same_tokens,
    load_lang,
    parse_units,
    read_lexicon,
    symbols_text,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tokens.txt").write_text(symbols_text(["<blk>", "AH", "B"]))
    (tmp_path / "words.txt").write_text(symbols_text(["<eps>", "a", "bub", "#0"]))
    (tmp_path / "lexicon.txt").write_text("a AH\nbub B AH B\nbub B B\n")
    return tmp_path


def test_encode_takes_the_first_variant(folder: Path) -> None:
    lang = load_lang(folder)
    assert lang.encode("bub a") == [2, 1, 2, 1]
    assert (lang.num_tokens, lang.word_ids) == (3, {"a": 1, "bub": 2})
    with pytest.raises(DataError, match="'dog'"):
        lang.encode("dog")


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("lexicon.txt", "a AH\nbub\n", "lexicon.txt:2: .* a word and its tokens, found 'bub'"),
        ("lexicon.txt", "a AH\nbub B X\n", "lexicon.txt:2: .*'X'"),
        ("lexicon.txt", "dog B\n", "lexicon.txt:1: .*'dog'"),
        ("lexicon.txt", "a <blk>\n", "lexicon.txt:1: .*'<blk>'"),
        ("tokens.txt", "AH 0\nB 1\n", "<blk> as number 0"),
        ("tokens.txt", "<blk> 0\nAH 2\n", "tokens.txt:2: expected 'SYMBOL 1'"),
        ("words.txt", "<eps> 0\na 1\nbub 2\n", "#0 last"),
        ("words.txt", "<eps> 0\na 1\na 2\n#0 3\n", "different symbols"),
        ("words.txt", "", "different symbols, found none"),
    ],
)
def test_broken_folders(folder: Path, name: str, text: str, match: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises((DataError, GraphError), match=match):
        load_lang(folder)


def test_variants_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.txt"
    path.write_text(";;; a comment\n\nREAD R EH D\nREAD(2) R IY D\n:-) S M\n(2) T\n")
    found = [(number, word) for number, word, _ in read_lexicon(path)]
    assert found == [(3, "READ"), (4, "READ"), (5, ":-)"), (6, "(2)")]


@pytest.mark.parametrize("model", [["<blk>", "B"], ["<blk>"], ["<blk>", "A", "C"]])
def test_other_tokens_are_refused(model: list[str]) -> None:
    with pytest.raises(GraphError, match=r"in the model too|no such token"):
        check_same_tokens(model, ["<blk>", "A"], model=Path("am"), graph=Path("graph"))


def test_the_same_or_unknown_tokens_pass() -> None:
    check_same_tokens(["<blk>", "A"], ("<blk>", "A"), model=Path("am"), graph=Path("graph"))
    check_same_tokens(None, ("<blk>", "A"), model=Path("am"), graph=Path("graph"))


@pytest.mark.parametrize("units", ["bpe", "bpe_x", "bpe_1", "phones", "char_5", ""])
def test_unknown_units(units: str) -> None:
    with pytest.raises(ConfigError, match="phone, char, tokenizer or bpe_N"):
        parse_units(units)


def test_names_take_the_case_of_the_words(folder: Path) -> None:
    assert load_lang(folder).normalize("Bub  A.") == "bub a"
    (folder / "words.txt").write_text(symbols_text(["<eps>", "A", "BUB", "<UNK>", "#0"]))
    (folder / "lexicon.txt").write_text("A AH\nBUB B AH B\n")
    assert load_lang(folder).normalize("Bub  A.") == "BUB A"


@pytest.mark.parametrize("text", ["silence: SIL\n", "silence: {token: AH, prob: 1.5}\n"])
def test_silence_that_is_none(folder: Path, text: str) -> None:
    (folder / "lang.yaml").write_text("silence: {token: AH, prob: 0.5}\n")
    assert load_lang(folder).silence is not None
    (folder / "lang.yaml").write_text(text)
    with pytest.raises(GraphError, match=r"lang\.yaml: expected silence: \{token"):
        load_lang(folder)


def test_a_lang_folder_of_icefall_is_named(folder: Path) -> None:
    (folder / "words.txt").write_text(symbols_text(["<eps>", "a", "bub", "#0", "<s>", "</s>"]))
    with pytest.raises(GraphError, match="privasr import --raw-icefall-lang"):
        load_lang(folder)
