"""Phone errors of words, by a lexicon."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.counts import ErrorCounts
from privasr_k2.scoring.word_phones import Place, phone_rates, words_of
from tests.support.made_scores import write_hyps as _write

SPOKEN = {"a": ["ah"], "b": ["b", "iy"], "c": ["s", "iy"], "d": ["d", "iy"], "sea": ["s", "iy"]}


def test_phones_of_words_are_counted(tmp_path: Path) -> None:
    # One phone of c is wrong; d is deleted; a homophone; a word that nobody can say; two are right.
    hyps = ["a b b d", "a b c", "a b sea d", "a b c d zz", "a b c d", "a b c d"]
    score = _write(tmp_path / "x", [*hyps])
    [(place, found)] = phone_rates(score, SPOKEN).items()
    assert place == Place("test_x")
    assert found.counts == ErrorCounts(hits=39, substitutions=1, deletions=2, insertions=1)
    assert found.unspoken == 1 and found.counts.percent == pytest.approx(100 * 4 / 42)
    interval = found.interval
    # Errors of the speakers: s0 1 substitution, s1 2 deletions, s3 1 insertion, the others none.
    # None in all six draws: 1 of 64, which is below 2.5 %.
    assert interval is not None and interval.low == pytest.approx(1 / 42)
    assert 6 / 42 < interval.high < 9 / 42
    [few] = phone_rates(_write(tmp_path / "y", [*hyps[:5]]), SPOKEN).values()
    assert few.interval is None and few.counts.percent == pytest.approx(100 * 4 / 35)
    assert words_of([score]) == ({"a", "b", "c", "d"}, {"a", "b", "c", "d", "sea", "zz"})


def test_phones_of_groups_are_counted(tmp_path: Path) -> None:
    groups = {f"u{i}": {"age": "adult" if i == 1 else "child"} for i in range(4)}
    hyps = ["a b b d", "a b c", "a b sea d", "a b c d zz"]
    found = phone_rates(_write(tmp_path / "x", [*hyps], groups=groups), SPOKEN)
    assert set(found) == {Place("test_x"), *(Place("test_x", "age", v) for v in ("adult", "child"))}
    child, adult = found[Place("test_x", "age", "child")], found[Place("test_x", "age", "adult")]
    assert child.counts == ErrorCounts(hits=20, substitutions=1, insertions=1)
    assert adult.counts == ErrorCounts(hits=5, deletions=2)
    assert (child.unspoken, adult.unspoken) == (1, 0)
    assert child.interval is None and adult.interval is None  # three speakers, and one


def test_bad_input(tmp_path: Path) -> None:
    score = _write(tmp_path / "x", ["a b c d"])
    with pytest.raises(DataError, match="none of 'd'"):
        phone_rates(score, {word: phones for word, phones in SPOKEN.items() if word != "d"})
    write_jsonl(tmp_path / "x" / "utterances.jsonl", [{"id": "u0"}])
    with pytest.raises(DataError, match="what wer writes"):
        phone_rates(score, SPOKEN)
