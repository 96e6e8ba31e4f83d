from __future__ import annotations

import pytest

from privasr_k2.scoring import characters
from privasr_k2.scoring.characters import count_character_errors
from privasr_k2.scoring.counts import ErrorCounts


@pytest.mark.parametrize(
    ("ref", "hyp", "expected"),
    [
        ("", "", ErrorCounts()),
        ("ab c", "", ErrorCounts(deletions=4)),  # the blank between the words counts
        ("", "ab c", ErrorCounts(insertions=4)),
        ("ab c", "abc", ErrorCounts(hits=3, deletions=1)),
        ("ab c", "ab c", ErrorCounts(hits=4)),
        ("müd", "mud", ErrorCounts(hits=2, substitutions=1)),  # one character, though two bytes
        ("日本", "日木", ErrorCounts(hits=1, substitutions=1)),
    ],
)
def test_characters_of_words_joined_by_one_blank(ref: str, hyp: str, expected: ErrorCounts) -> None:
    assert count_character_errors(ref.split(), hyp.split()) == expected


def test_long_texts_have_as_many_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    both = ["he", "told", "ann", "lee", "to", "come"], ["he", "tolled", "anne", "to", "come", "on"]
    short = count_character_errors(*both)
    monkeypatch.setattr(characters, "_MOST_PAIRS", 0)
    long = count_character_errors(*both)
    assert (long.errors, long.ref_words) == (short.errors, short.ref_words)
    assert long.hyp_words == short.hyp_words
