"""Lists of hotwords and what is refused of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.text.hotwords import read_hotwords, read_speaker_lists
from tests.support.hotwords import write_list


def test_words_and_bonuses_of_lines(tmp_path: Path) -> None:
    lines = ("\ufeffAnn  O’Neill\t2.5", "", "New York", "new york", "bob [mobile]\t0\r", "3M")
    listed = read_hotwords(write_list(tmp_path / "my list.txt", *lines))
    assert listed.name == "my list"
    found = [(entry.words, entry.bonus) for entry in listed.entries]
    named = [(("ann", "o'neill"), 2.5), (("new", "york"), None), (("bob",), 0.0), (("3m",), None)]
    assert found == named
    assert listed.entries[1].place.endswith("my list.txt:3")


@pytest.mark.parametrize(
    ("lines", "place", "found"),
    [
        ((), "names.txt:", "none"),
        (("", "  "), "names.txt:", "none"),
        (("ann", "?!"), "names.txt:2", "'?!'"),
        (("ann", "\t3"), "names.txt:2", "''"),
        (("ann\tmuch",), "names.txt:1", "'much'"),
        (("ann\t",), "names.txt:1", "''"),
        (("ann\tnan",), "names.txt:1", "'nan'"),
        (("ann\t-1",), "names.txt:1", "'-1'"),
        (("ann\t101",), "names.txt:1", "'101'"),
        (("ann\t1\t2",), "names.txt:1", r"'\t'"),
        (("ann", "bo\x07b"), "names.txt:2", r"'\x07'"),
        (("jo\u200bhn",), "names.txt:1", r"'\u200b'"),
        (("ann", "\ufeffbob"), "names.txt:2", r"'\ufeff'"),
        (("ann\t1", "Ann"), "names.txt:2", "'Ann'"),
    ],
)
def test_bad_lists(tmp_path: Path, lines: tuple[str, ...], place: str, found: str) -> None:
    path = write_list(tmp_path / "names.txt", *lines)
    with pytest.raises(DataError) as error:
        read_hotwords(path)
    assert f"{error.value.place}:".endswith(f"{place.rstrip(':')}:")
    assert error.value.found.removeprefix("the character ") == found


def test_no_file_and_other_encodings(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_hotwords(tmp_path / "none.txt")
    (tmp_path / "latin.txt").write_bytes(b"ann\njos\xe9\n")
    with pytest.raises(DataError, match=r"latin.txt:2: expected UTF-8"):
        read_hotwords(tmp_path / "latin.txt")


def test_lists_of_speakers(tmp_path: Path) -> None:
    lines = ("\ufeffs2\tAnn Lee\t1.5", "s1\tBob", "", "s2\tBob", "s1\tbob")
    lists = read_speaker_lists(write_list(tmp_path / "contacts.tsv", *lines))
    found = {who: [(e.words, e.bonus) for e in listed.entries] for who, listed in lists.items()}
    both = [(("ann", "lee"), 1.5), (("bob",), None)]
    assert found == {"s2": both, "s1": [(("bob",), None)]}
    assert lists["s1"].entries[0].place.endswith("contacts.tsv:2")


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ((), ""),
        (("ann",), ":1"),
        (("s1\tann", "\tbob"), ":2"),
        (("s1\t",), ":1"),
        (("s1\tann\t1", "s2\tann\t2", "s1\tann\t3"), ":3"),
    ],
)
def test_bad_lists_of_speakers(tmp_path: Path, lines: tuple[str, ...], place: str) -> None:
    path = write_list(tmp_path / "contacts.tsv", *lines)
    with pytest.raises(DataError) as error:
        read_speaker_lists(path)
    assert str(error.value.place) == f"{path}{place}"
