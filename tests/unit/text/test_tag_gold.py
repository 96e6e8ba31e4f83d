from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_text
from privasr_k2.text.entities import Entity
from privasr_k2.text.tag_gold import read_conll, read_earnings21

HEADER = "idx\ttoken\tspeaker\tpunct\tentities\n"


def test_both_ways_of_marking_give_the_same_entities(tmp_path):
    iob2 = "Ann B-PER\nLee I-PER\nsaw O\nRome B-LOC\nParis B-LOC\n\n-DOCSTART- O\n\nHi O\n"
    iob1 = "Ann I-PER\nLee I-PER\nsaw O\nRome I-LOC\nParis B-LOC\n\nHi O"
    made = []
    for name, text in (("two", iob2), ("one", iob1)):
        write_text(tmp_path / name, text)
        made.append([(t.tokens, t.entities) for t in read_conll(tmp_path / name)])
    assert made[0] == made[1]
    spans = (Entity(0, 2, "PER"), Entity(3, 4, "LOC"), Entity(4, 5, "LOC"))
    assert made[0] == [(("Ann", "Lee", "saw", "Rome", "Paris"), spans), (("Hi",), ())]


def test_two_entities_of_one_label_are_not_joined_over_a_word(tmp_path):
    write_text(tmp_path / "c", "Rome I-LOC\nand O\nParis I-LOC\n")
    [text] = read_conll(tmp_path / "c")
    assert text.entities == (Entity(0, 1, "LOC"), Entity(2, 3, "LOC"))


@pytest.mark.parametrize("line", ["Ann", "Ann PER", "Ann\tX-PER"])
def test_bad_conll_lines_are_named(tmp_path, line):
    write_text(tmp_path / "c", f"Hi O\n{line}\n")
    with pytest.raises(DataError, match=r"c:2: expected a token and one of the tags"):
        list(read_conll(tmp_path / "c"))


def test_a_call_becomes_sentences_of_one_speaker_with_all_entities(tmp_path):
    rows = ["0\tthe\t0\t\t6:DATE", "1\tthird\t0\t\t2:ORDINAL 6:DATE", "2\tquarter\t0\t.\t6:DATE",
            "3\tof\t0\t\t6:DATE", "4\tHi\t0\t\t", "5\tYes\t1\t?\t", "6\tNo\t1\t\t"]  # fmt: skip
    write_text(tmp_path / "77.tsv.gz", HEADER + "\n".join(rows) + "\n")
    first, second, third = read_earnings21(tmp_path / "77.tsv.gz")
    # No sentence ends inside an entity.
    assert first.tokens == ("the", "third", "quarter.", "of", "Hi")
    assert first.entities == (Entity(0, 4, "DATE"), Entity(1, 2, "ORDINAL"))
    assert (first.id, first.user, first.document) == ("77-000000", "77_0", "77")
    expected = (("Yes?",), "77_1", ("No",), "77-000006")
    assert (second.tokens, second.user, third.tokens, third.id) == expected


@pytest.mark.parametrize("row", ["0\tthe\t0\t", "0\tthe\t0\t\tDATE", "0\tthe\t0\t\t6:date"])
def test_bad_rows_are_named(tmp_path, row):
    write_text(tmp_path / "77.tsv.gz", f"{HEADER}{row}\n")
    with pytest.raises(DataError, match=r"77\.tsv\.gz:2"):
        read_earnings21(tmp_path / "77.tsv.gz")


@pytest.mark.shared_data
def test_a_real_call_loses_no_token(shared_data: Path):
    import gzip

    path = shared_data / "earnings21/gold/4386541.tsv.gz"
    texts = read_earnings21(path)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        assert sum(len(text.tokens) for text in texts) == sum(1 for _ in file) - 1
    assert sum(entity.label == "PERSON" for text in texts for entity in text.entities) > 10
