from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.scoring import align as alignment
from privasr_k2.scoring.align import align, to_scored_units
from privasr_k2.scoring.counts import count_pairs


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


@pytest.mark.parametrize("seed", range(5))
def test_long_texts_have_an_alignment_of_the_same_distance(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(seed)
    ref, hyp = (generator.choice(list("abc"), 30).tolist() for _ in range(2))
    short = align(ref, hyp)
    monkeypatch.setattr(alignment, "_LARGEST_TABLE", 0)
    long = align(tuple(ref), hyp)
    assert [r for r, _ in long if r is not None] == ref
    assert [h for _, h in long if h is not None] == hyp
    assert count_pairs(long).errors == count_pairs(short).errors
