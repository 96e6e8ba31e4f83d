"""Language models over Kaldi's words.txt, without a language folder of this project."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.fileio import write_text
from privasr_k2.graph.kaldi_lang import lang_of_words
from privasr_k2.lm.arpa import read_arpa
from privasr_k2.lm.class_files import load_class_lm
from tests.support.conf import section
from tests.support.verbs import call, refused

SYMBOLS = (
    "<eps>", "!SIL", "<SPOKEN_NOISE>", "<unk>", "ANN", "CALL", "MARK", "NOW", "#0", "<s>", "</s>",
    "#nonterm:PER",
)  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """With a gap before the last symbol, as tables with nonterminals have."""
    numbers = [*range(len(SYMBOLS) - 1), 30]
    lines = (f"{symbol} {number}\n" for symbol, number in zip(SYMBOLS, numbers))
    write_text(tmp_path / "words.txt", "".join(lines))
    write_text(tmp_path / "text.txt", "CALL ANN NOW\nCALL MARK\nCALL BOB\n" * 4)
    return tmp_path / "words.txt"


def test_words_are_what_can_be_said(table: Path) -> None:
    lang = lang_of_words(table)
    assert list(lang.word_ids) == ["!SIL", "<SPOKEN_NOISE>", "ANN", "CALL", "MARK", "NOW"]
    assert lang.normalize("ann now") == "ANN NOW"


def test_an_ngram_model(table: Path) -> None:
    folder = table.parent
    call(f"train_ngram --in-text {folder}/text.txt --raw-words {table} --out-lm {folder}/lm.arpa"
         f" --config {section('lm_ngram')}")  # fmt: skip
    words = set(read_arpa(folder / "lm.arpa").words)
    assert words == {"<s>", "</s>", "<unk>", *lang_of_words(table).word_ids}


def test_a_class_lm_reads_lists_in_the_case_of_the_words(table: Path) -> None:
    folder = table.parent
    write_text(folder / "tagged.txt", "CALL <PER> NOW\nCALL <PER>\n")
    write_text(folder / "lists/per.txt", "Ann\nMark\n")
    call(f"train_ngram --in-text {folder}/tagged.txt --in-public-lists {folder}/lists --raw-words"
         f" {table} --out-class-lm {folder}/lm --config {section('class_lm')}"
         " --set classes=[PER]")  # fmt: skip
    assert set(load_class_lm(folder / "lm").sub_lms["PER"].words) == {"ANN", "MARK"}


def test_a_neural_model(table: Path) -> None:
    folder = table.parent
    call(f"train_lm --in-text {folder}/text.txt --in-dev {folder}/text.txt --raw-words {table}"
         f" --out-dir {folder}/lm --device cpu --config {section('lm_lstm')}"
         f" {section('lm_lstm', 'tiny')} --set epochs=1")  # fmt: skip
    lines = (folder / "lm" / "words.txt").read_text().splitlines()
    assert {line.split()[0] for line in lines} >= {"CALL", "ANN", "MARK", "NOW"}


def test_wrong_tables(table: Path) -> None:
    flags = f"--in-text {table.parent}/text.txt --out-lm x --config {section('lm_ngram')}"
    with refused("one of the arguments --in-lang --raw-words is required"):
        call(f"train_ngram {flags}")
    with refused("expected Kaldi's words.txt, found no such file"):
        call(f"train_ngram {flags} --raw-words {table.parent}/words")
    write_text(table, "<eps> 0\n#0 1\n")
    with refused("words.txt: expected words, found none"):
        call(f"train_ngram {flags} --raw-words {table}")
