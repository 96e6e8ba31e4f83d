"""The hint where no word is right."""

from privasr_k2.scoring.counts import ErrorCounts
from privasr_k2.scoring.hints import hint


def test_all_deleted_and_all_wrong_are_told_apart() -> None:
    deleted = hint(ErrorCounts(deletions=4), no_path=1, utterances=2)
    assert "all 4 words are deleted, 1 of 2" in deleted and "dev.json" in deleted
    wrong = hint(ErrorCounts(substitutions=3, deletions=1), no_path=0, utterances=2)
    assert wrong.startswith("none of 4 words is right") and "case" in wrong


def test_no_hint_where_a_word_is_right_or_none_was_said() -> None:
    assert hint(ErrorCounts(hits=1, deletions=99), no_path=9, utterances=9) == ""
    assert hint(ErrorCounts(insertions=5), no_path=0, utterances=1) == ""
