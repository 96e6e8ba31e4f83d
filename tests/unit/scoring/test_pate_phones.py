"""Phone errors of words, by a lexicon."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.pate_phones import phone_rates, words_of
from privasr_k2.scoring.pate_report import pate_report
from privasr_k2.scoring.pate_results import Name
from tests.unit.scoring.test_pate_report import OPTIONS, inputs, row_of, scores_of
from tests.unit.scoring.test_report import _write

SPOKEN = {"a": ["ah"], "b": ["b", "iy"], "c": ["s", "iy"], "d": ["d", "iy"], "sea": ["s", "iy"]}


def test_phones_of_words_are_counted(tmp_path: Path) -> None:
    # One phone of c is wrong; d is deleted; a homophone; a word that nobody can say.
    score = _write(tmp_path / "x", ["a b b d", "a b c", "a b sea d", "a b c d zz"])
    found = phone_rates(score, SPOKEN)
    assert list(found) == ["test_x"]
    counts = found["test_x"].counts
    assert (counts.ref_words, counts.substitutions, counts.deletions, counts.insertions) == (28, 1, 2, 1)
    assert found["test_x"].unspoken == 1 and counts.percent == pytest.approx(100 * 4 / 28)
    interval = found["test_x"].interval
    # Speakers s0 (two utterances: 1 substitution, 1 insertion), s1 (2 deletions), s2 (none) are drawn.
    assert interval is not None and (interval.low, interval.high) == (0.0, pytest.approx(2 / 7))
    assert words_of([score]) == ({"a", "b", "c", "d"}, {"a", "b", "c", "d", "sea", "zz"})


def test_in_the_report(tmp_path: Path) -> None:
    scores = scores_of(tmp_path, ctc__public="many", ctc__nonprivate="few")
    spoken = {**SPOKEN, "x": ["x", "x"], "y": ["ah"]}
    phones = {name: phone_rates(score, spoken) for name, score in scores.items()}
    text = pate_report(inputs(scores, phones=phones), OPTIONS)
    row = row_of(text, "## CTC", "not private")
    rate = phones[Name("ctc", "nonprivate")]["test_x"].counts.percent
    assert row["PER of the words %"] == f"{rate:.2f}" and rate == pytest.approx(100 * 2 * 2 / (12 * 7))
    assert "PER 95 % interval" in row and "cannot be said" not in text
    assert "No model recognized phones" in text and "PER" not in pate_report(inputs(scores), OPTIONS)
    unspoken = {name: phone_rates(score, SPOKEN) for name, score in scores.items()}
    number = sum(one.unspoken for parts in unspoken.values() for one in parts.values())
    assert f"{number} words of hypotheses cannot be said" in pate_report(
        inputs(scores, phones=unspoken), OPTIONS
    )


def test_bad_input(tmp_path: Path) -> None:
    score = _write(tmp_path / "x", ["a b c d"])
    with pytest.raises(DataError, match="none of 'd'"):
        phone_rates(score, {word: phones for word, phones in SPOKEN.items() if word != "d"})
    write_jsonl(tmp_path / "x" / "utterances.jsonl", [{"id": "u0"}])
    with pytest.raises(DataError, match="what score writes"):
        phone_rates(score, SPOKEN)
