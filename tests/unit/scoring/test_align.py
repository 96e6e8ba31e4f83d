from __future__ import annotations

from privasr_k2.scoring.align import align, to_scored_units


def test_insertions_deletions_and_substitutions_have_their_places() -> None:
    assert align(["a", "b", "c"], ["a", "x"]) in (
        (("a", "a"), ("b", "x"), ("c", None)),
        (("a", "a"), ("b", None), ("c", "x")),
    )
    assert align([], ["a", "b"]) == ((None, "a"), (None, "b"))
    assert align([], []) == ()


def test_the_sign_for_no_word_in_result_files_is_an_ordinary_word() -> None:
    assert align(["*", "a"], ["a"]) == (("*", None), ("a", "a"))


def test_words_are_compared_whole_and_by_case() -> None:
    assert align(["Straße"], ["straße"]) == (("Straße", "straße"),)


def test_units_that_count_as_one_are_mapped_and_silent_ones_left_out() -> None:
    units = {"ix": "ih", "q": "", "cl": "sil"}
    assert to_scored_units(["cl", "t", "ix", "q", "n"], units) == ("sil", "t", "ih", "n")
    assert to_scored_units(["t", "n"], {}) == ("t", "n")
