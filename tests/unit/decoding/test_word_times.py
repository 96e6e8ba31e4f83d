"""Which frames belong to which word."""

from __future__ import annotations

import pytest

from privasr_k2.decoding.word_times import word_spans


@pytest.mark.parametrize(
    ("labels", "pronunciations", "spans"),
    [
        ([0, 0, 0], [], []),
        ([1, 2, 3], [[[1, 2]], [[3]]], [(0, 2), (2, 3)]),
        ([0, 1, 1, 0, 0, 2, 0, 3, 3, 0], [[[1, 2]], [[3]]], [(1, 6), (7, 9)]),
        # A blank between two equal tokens, inside a word and between words.
        ([1, 0, 1, 0, 1], [[[1, 1]], [[1]]], [(0, 3), (4, 5)]),
        # The second variant, which only the rest of the path shows to be the right one.
        ([1, 2, 3, 2], [[[1], [1, 2]], [[3, 2]]], [(0, 2), (2, 4)]),
        # Both words could have the middle token: the first variant of the later word wins.
        ([1, 2, 3], [[[1, 2], [1]], [[2, 3], [3]]], [(0, 1), (1, 3)]),
        ([1, 2, 3], [[[1], [1, 2]], [[3], [2, 3]]], [(0, 2), (2, 3)]),
        # Words that do not spell the path.
        ([1, 2], [[[1]]], None),
        ([1], [[[1]], [[2]]], None),
        ([1, 1], [[[1, 1]]], None),
        ([1, 2], [[[2, 1]]], None),
        ([], [[[1]]], None),
        ([1], [], None),
        ([0], [[]], None),
    ],
)
def test_spans(
    labels: list[int],
    pronunciations: list[list[list[int]]],
    spans: list[tuple[int, int]] | None,
) -> None:
    assert word_spans(labels, pronunciations, repeats=False) == spans


def test_runs_of_several_equal_tokens() -> None:
    """In the modified topology equal tokens follow each other without a blank, or with one."""
    assert word_spans([1, 1, 1], [[[1]], [[1]]], repeats=True) == [(0, 1), (1, 3)]
    assert word_spans([1, 1, 1, 0, 1], [[[1, 1]], [[1, 1]]], repeats=True) == [(0, 2), (2, 5)]
    assert word_spans([1, 0, 1], [[[1]], [[1]]], repeats=True) == [(0, 1), (2, 3)]
    assert word_spans([1, 1, 2], [[[1, 2]]], repeats=True) == [(0, 3)]
    assert word_spans([1, 1], [[[1]], [[1]], [[1]]], repeats=True) is None


@pytest.mark.parametrize(
    ("labels", "pronunciations", "spans"),
    [
        ([0, 1, 2, 2, 0, 3], [None], [(1, 6)]),
        ([1, 2, 0, 3, 4], [[[1]], None, [[4]]], [(0, 1), (1, 4), (4, 5)]),
        ([1, 2, 3], [None, None], [(0, 1), (1, 3)]),  # the shortest first
        ([1, 2, 3, 2], [None, [[2]]], [(0, 3), (3, 4)]),
        ([1, 2], [None, None, None], None),
        ([0, 0], [None], None),
    ],
)
def test_words_of_any_tokens(
    labels: list[int],
    pronunciations: list[list[list[int]] | None],
    spans: list[tuple[int, int]] | None,
) -> None:
    assert word_spans(labels, pronunciations, repeats=False) == spans


def test_runs_that_words_of_any_tokens_share() -> None:
    assert word_spans([1, 1, 2, 2], [None, [[2]]], repeats=True) == [(0, 2), (2, 4)]
    assert word_spans([1, 1, 1], [[[1]], None], repeats=True) == [(0, 1), (1, 3)]
    assert word_spans([2, 2], [None, [[2]]], repeats=True) == [(0, 1), (1, 2)]
    assert word_spans([2], [None, [[2]]], repeats=True) is None


def test_long_paths_are_no_problem() -> None:
    labels = [1, 0] * 1200
    spans = word_spans(labels, [[[1]]] * 1200, repeats=False)
    assert spans == [(2 * n, 2 * n + 1) for n in range(1200)]
