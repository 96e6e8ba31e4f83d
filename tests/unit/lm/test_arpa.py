"""Reading, writing and asking ARPA models."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import DataError, GraphError
from privasr_k2.lm.arpa import read_arpa, write_arpa
from tests.support.arpa import TEXT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.arpa").write_text(TEXT)
    return tmp_path / "a.arpa"


def test_scores_by_hand(path: Path) -> None:
    scores, unknown = read_arpa(path).sentence_scores([["a", "b"], ["b", "a"], []])
    # <s> a, <s> a b, then "a b </s>" backs off once to "b </s>"
    first = -0.2 - 0.05 + (-0.4 - 0.4)
    # "<s> b" backs off to b; "b a" is there (no back-off weight as a history); "a </s>" backs off
    # to </s>
    second = (-0.3 - 0.6) - 0.8 + (-0.2 - 0.7)
    assert scores == pytest.approx([first, second, -0.3 - 0.7])
    assert unknown == 0


def test_unknown_words_are_counted_and_left_out(path: Path) -> None:
    scores, unknown = read_arpa(path).sentence_scores([["a", "x"]])
    assert unknown == 1
    assert scores == pytest.approx([-0.2 - 0.7])


@pytest.mark.parametrize("name", ["b.arpa", "b.arpa.gz"])
def test_written_is_read_again(path: Path, tmp_path: Path, name: str) -> None:
    model = read_arpa(path)
    write_arpa(model, tmp_path / name)
    again = read_arpa(tmp_path / name)
    assert (again.words, again.counts) == (model.words, model.counts)
    np.testing.assert_array_equal(again.keys, model.keys)
    np.testing.assert_allclose(again.log10_probs, model.log10_probs, atol=1e-7)
    np.testing.assert_allclose(again.log10_backoffs, model.log10_backoffs, atol=1e-7)


def test_written_twice_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    for name in ("b.gz", "c.gz"):
        write_arpa(read_arpa(path), tmp_path / name)
    assert (tmp_path / "b.gz").read_bytes() == (tmp_path / "c.gz").read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("-0.5\ta\t-0.2", "-0.5x\ta\t-0.2", 9, "'-0.5x'"),
        ("-0.5\ta\t-0.2", "-0.5", 9, "log10 P and 1 word"),
        ("-0.5\ta\t-0.2", "0.5\ta\t-0.2", 9, "at most 0"),
        ("-0.5\ta\t-0.2", "nan\ta\t-0.2", 9, "at most 0"),
        ("-0.5\ta\t-0.2", "-0.5\ta\tinf", 9, "finite"),
        ("<s>\t-0.3", "<s>", 7, "a back-off weight"),
        ("a\t-0.2", "a", 9, "a back-off weight"),
        ("<s> a\t-0.25", "<s> a", 14, "a back-off weight"),
        ("-0.6\tb", "-0.6\ta", 10, "each word once"),
        ("-0.3\ta b", "-0.3\ta x", 15, "'x'"),
        ("-0.8\tb a", "-0.8\ta b", 16, "each n-gram once"),
        ("<s> a b", "c a b", 20, "history 'c a'"),
        ("ngram 2=4", "ngram 2=5", 19, "5 2-grams"),
        ("ngram 2=4", "ngram 2=many", 3, "ngram 2=COUNT"),
        ("ngram 2=4", "ngram 3=4", 3, "ngram 2=COUNT"),
        ("\\end\\", "", 22, "end of the file"),
        ("\\2-grams:", "\\two-grams:", 13, "2-grams"),
        ("\\data\\", "data", 22, "\\data\\"),
    ],
)
def test_a_broken_line_is_named(path: Path, old: str, new: str, line: int, words: str) -> None:
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(GraphError) as caught:
        read_arpa(path)
    assert caught.value.place == f"{path}:{line}"
    assert words in str(caught.value)


def test_a_back_off_weight_that_is_never_used_may_be_left_out(path: Path) -> None:
    path.write_text(TEXT.replace("a b\t-0.4", "a b"))  # no trigram begins with it
    model = read_arpa(path)
    assert model.log10_backoffs[model.rows_of_orders()[1]].tolist() == [-0.25, 0.0, 0.0, 0.0]


def test_a_back_off_weight_of_1_may_be_left_out_and_so_may_that_of_a_history_of_all_words(
    path: Path,
) -> None:
    unigrams = "-99\t<s>{bow}\n-0.301029996\t</s>\n-0.602059991\ta\n-0.602059991\tb\n"
    text = "\\data\\\nngram 1=4\nngram 2={count}\n\n\\1-grams:\n" + unigrams
    text += "\n\\2-grams:\n{bigrams}\n\\end\\\n"

    def write(bow: str, *bigrams: str) -> Path:
        path.write_text(text.format(bow=bow, count=len(bigrams), bigrams="\n".join(bigrams)))
        return path

    as_probable = "-0.602059991\t<s> a"
    assert read_arpa(write("", as_probable)).log10_backoffs[0] == 0
    with pytest.raises(GraphError, match="a back-off weight"):
        read_arpa(write("", "-0.4\t<s> a"))
    all_words = ("-0.2\t<s> a", "-0.8\t<s> b", "-1\t<s> </s>")
    assert read_arpa(write("", *all_words)).counts == (4, 3)


def test_lines_without_a_back_off_weight_may_stand_in_any_order(path: Path) -> None:
    model = read_arpa(path)
    first = "-0.2\t<s> a"
    path.write_text(TEXT.replace("-0.8\tb a\n", "").replace(first, f"-0.8\tb a\n{first}"))
    again = read_arpa(path)
    assert again.keys.tolist() == model.keys.tolist()
    assert again.log10_backoffs.tolist() == model.log10_backoffs.tolist()


def test_of_several_histories_without_a_back_off_weight_the_first_is_named(path: Path) -> None:
    lines = TEXT.replace("a\t-0.2\n", "a\n").replace("b\t-0.1\n", "b\n")
    path.write_text(lines.replace("-0.5\ta\n-0.6\tb", "-0.6\tb\n-0.5\ta"))  # not in order of keys
    with pytest.raises(GraphError, match=r"a.arpa:9: expected a back-off weight"):
        read_arpa(path)


def test_no_sentence_end(path: Path) -> None:
    path.write_text("\\data\\\nngram 1=1\n\\1-grams:\n-1 a\n\\end\\\n")
    with pytest.raises(GraphError, match="</s>"):
        read_arpa(path)


def test_not_utf8(path: Path) -> None:
    path.write_bytes(TEXT.replace("-0.9\tc", "-0.9\tcafé").encode("latin-1"))
    with pytest.raises(DataError, match=r"a.arpa:11: expected UTF-8"):
        read_arpa(path)


def test_truncated_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(TEXT.encode())
    (tmp_path / "a.arpa.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="whole gzip"):
        read_arpa(tmp_path / "a.arpa.gz")
