from __future__ import annotations

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_text
from privasr_k2.text.name_lists import (
    NameList,
    choose_names,
    date_words,
    read_name_lists,
    split_suffix,
    words_of,
)
from privasr_k2.text.normalize import normalize_english


def read(folder):
    return read_name_lists(folder, normalize_english)


def test_lists_are_read_by_class(tmp_path):
    write_text(tmp_path / "per.txt", "Ann  Lee\n\nBob\n")
    write_text(tmp_path / "org.txt", "Acme\t0.25\nO'Neill's Pub\t0.75\n")
    lists = read(tmp_path)
    assert lists == {
        "ORG": NameList(
            ("Acme", "O'Neill's Pub"),
            (0.25, 0.75),
            (f"{tmp_path}/org.txt:1", f"{tmp_path}/org.txt:2"),
        ),
        "PER": NameList(
            ("Ann Lee", "Bob"), None, (f"{tmp_path}/per.txt:1", f"{tmp_path}/per.txt:3")
        ),
    }
    expected = {"ORG": ["acme", "o'neill", "pub"], "PER": ["ann", "bob", "lee"]}
    assert words_of(lists, normalize_english) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "per.txt: expected a name in each line, found an empty class"),
        ("Ann\n...\n", r"per.txt:2: expected a name"),
        ("Ann-Lee\nBob\nANN LEE\n", r"per.txt:3: expected each name once, found 'ANN LEE'.*line 1"),
        ("Ann\t0.5\nBob\t0.6\n", r"per.txt: expected weights that sum to 1, found 1.1"),
        ("Ann\t0.5\nBob\n", r"per.txt:2: expected a weight in all lines or in none"),
        ("Ann\nBob\t1\n", r"per.txt:2: expected a weight in all lines or in none"),
        ("Ann\tmuch\n", r"per.txt:1: expected a weight above 0"),
        ("Ann\n<ORG> Lee\n", r"per.txt:2: expected a name of words: no class or marker inside"),
        ("Ann\n{x} Lee\n", r"per.txt:2: expected a name of words: no class or marker inside"),
        ("Ann\n[PER] Lee\n", r"per.txt:2: expected a name of words: no class or marker inside"),
        ("Ann\t0\nBob\t1\n", r"per.txt:1: expected a weight above 0"),
    ],
)
def test_bad_lists_are_named_with_their_line(tmp_path, text, message):
    write_text(tmp_path / "per.txt", text)
    with pytest.raises(DataError, match=message):
        read(tmp_path)


def test_no_list_and_a_list_of_one_word(tmp_path):
    with pytest.raises(DataError, match=r"per.txt org.txt"):
        read(tmp_path)
    with pytest.raises(DataError, match=r"per.txt: expected two different words of PER"):
        words_of({"PER": NameList(("Ann", "ANN's"), None, ("", ""))}, normalize_english)


def test_suffixes_and_dates():
    assert split_suffix("'s") == ("'s", "") and split_suffix("ann's") == ("ann", "'s")
    assert {"monday", "december", "twenty"} <= set(date_words())
    assert date_words() == sorted(set(date_words()))


def test_names_that_nobody_knows_how_to_say_are_left_out():
    counts = {"renée o'neill": 2, "ann": 2, "s60": 9, "ервеник": 9, "張": 9, "bob": 1}
    assert choose_names(counts, at_least=2, most_words=3) == ["ann", "renée o'neill"]
