"""Weights on N-best lists, against one hypothesis at a time."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.decoding.rescoring import (
    Candidates,
    GridConfig,
    Point,
    choose,
    grid_errors,
    read_rescoring,
    simplex,
)
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json


def candidates(seed: int, *, num_utterances: int = 7, most: int = 6) -> Candidates:
    """Random lists without ties."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, num_utterances)
    total = int(sizes.sum())
    num_words = rng.integers(0, 5, total)
    words = int(num_words.sum()) + total
    return Candidates(
        utterance=np.repeat(np.arange(num_utterances), sizes),
        am=-rng.exponential(4.0, total),
        num_words=num_words,
        errors=rng.integers(0, 6, total),
        log_probs={name: np.log(rng.uniform(0.01, 1.0, words)) for name in ("a", "b", "c")},
    )


def slow_lm_total(
    lists: Candidates, at: int, weights: dict[str, float], interpolation: str
) -> float:
    """L of one hypothesis, word by word, in probabilities."""
    start = sum(int(n) + 1 for n in lists.num_words[:at])
    words = range(start, start + int(lists.num_words[at]) + 1)
    if interpolation == "linear":
        probs = {name: np.exp(lists.log_probs[name]) for name in weights}
        return sum(math.log(sum(w * probs[n][i] for n, w in weights.items())) for i in words)
    return sum(w * sum(lists.log_probs[n][i] for i in words) for n, w in weights.items())


@pytest.mark.parametrize("interpolation", ["linear", "log_linear"])
@pytest.mark.parametrize("weights", [(1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.2, 0.3, 0.5)])
def test_totals_against_the_slow_twin(interpolation: str, weights: tuple[float, ...]) -> None:
    lists = candidates(1)
    named = dict(zip("abc", weights))
    found = lists.lm_totals(named, interpolation=interpolation)
    expected = [slow_lm_total(lists, h, named, interpolation) for h in range(len(lists.am))]
    assert found == pytest.approx(expected, rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["linear", "log_linear"]))
def test_grid_against_one_hypothesis_at_a_time(seed: int, interpolation: str) -> None:
    lists = candidates(seed)
    config = GridConfig(interpolation, [0.0, 0.5, 1.0], [-1.0, 0.0, 1.0], 2)
    found = grid_errors(lists, ["a", "b"], config)
    assert len(found) == 3 * 3 * 3
    for point, errors in found.items():
        expected = 0
        for n in range(int(lists.utterance[-1]) + 1):
            best, best_score = -1, -math.inf
            for h in np.flatnonzero(lists.utterance == n):
                lm = slow_lm_total(lists, h, dict(zip("ab", point.lambdas)), interpolation)
                score = lists.am[h] + point.lm_weight * lm
                score -= point.insertion_penalty * lists.num_words[h]
                if score > best_score:
                    best, best_score = h, score
            expected += int(lists.errors[best])
        assert errors == expected


def test_ties_go_to_the_lowest_rank() -> None:
    lists = Candidates(
        *(np.array([0, 0, 1, 1]), np.zeros(4), np.zeros(4, dtype=int)),
        *(np.array([1, 0, 0, 1]), {"a": np.zeros(4)}),
    )
    found = lists.best(lists.lm_totals({"a": 1.0}, interpolation="linear"), np.ones(2), np.zeros(2))
    assert found.tolist() == [[0, 2], [0, 2]]
    assert lists.oracle().tolist() == [1, 2]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = candidates(5)
    config = GridConfig("linear", [0.1 * i for i in range(9)], [0.0, 0.5], 3)
    whole = grid_errors(lists, ["a", "b", "c"], config)
    monkeypatch.setattr("privasr_k2.decoding.rescoring._BLOCK", 3 * len(lists.am))
    assert grid_errors(lists, ["a", "b", "c"], config) == whole


@pytest.mark.parametrize(
    ("num", "steps", "expected"), [(1, 4, 1), (2, 10, 11), (3, 4, 15), (4, 2, 10)]
)
def test_simplex(num: int, steps: int, expected: int) -> None:
    points = simplex(num, steps)
    assert len(set(points)) == len(points) == expected == math.comb(steps + num - 1, num - 1)
    assert all(abs(sum(point) - 1) < 1e-12 for point in points)


def test_the_choice_among_equals() -> None:
    grid = itertools.product((0.5, 1.0), (-1.0, 0.0, 1.0), (0.0, 0.5, 1.0))
    points = [Point(weight, penalty, (a, 1 - a)) for weight, penalty, a in grid]
    assert choose(dict.fromkeys(points, 3)) == Point(0.5, 0.0, (0.5, 0.5))
    assert choose({point: 3 + (point != points[-1]) for point in points}) == points[-1]


@pytest.mark.parametrize("weights", [{"a": 0.5}, {"a": 1.5, "b": -0.5}, {"a": 0.7, "b": 0.7}])
def test_weights_that_cannot_be(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="add up to 1"):
        candidates(1).lm_totals(weights, interpolation="linear")


def test_scores_that_cannot_be() -> None:
    lists = candidates(1)
    bad = lists.log_probs["b"].copy()
    bad[-1] = -np.inf
    with pytest.raises(DataError, match=rf"LM b, hypothesis {len(lists.am) - 1} \(utterance 6\)"):
        Candidates(lists.utterance, lists.am, lists.num_words, lists.errors, {"b": bad})
    with pytest.raises(ValueError, match="log-probabilities expected"):
        Candidates(lists.utterance, lists.am, lists.num_words, lists.errors, {"b": bad[:-1]})
    with pytest.raises(ValueError, match="numbered"):
        Candidates(lists.utterance + 1, lists.am, lists.num_words, lists.errors, {})


CHOSEN = {
    **{"role": "dev", "lms": ["a", "b"], "interpolation": "linear"},
    **{"lm_weight": 0.5, "insertion_penalty": -1, "lambdas": [0.3, 0.7]},
}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"role": "test"}, "found test"),
        ({"lambdas": [0.3, 0.6]}, "add up to 1"),
        ({"lambdas": [1.5, -0.5]}, "add up to 1"),
        ({"lambdas": [1.0, math.nan]}, "add up to 1"),
        ({"lambdas": [math.nan, 1.0]}, "add up to 1"),
        ({"lambdas": [1.0]}, "different names, one for each of 1 lambdas"),
        ({"lambdas": 1.0}, "TypeError"),
        ({"lambdas": [], "lms": []}, "ValueError"),
        ({"lms": ["a", "a"]}, "different names, one for each of 2 lambdas"),
        ({"lms": "ab"}, "different names"),
        ({"lms": ["a", ["b"]]}, "different names"),
        ({"interpolation": "mean"}, "interpolation must be one of linear log_linear, got 'mean'"),
        ({"lm_weight": math.nan}, "must be finite"),
        ({"lm_weight": -0.5}, "must be finite"),
        ({"lm_weight": 10**400}, "OverflowError"),
        ({"insertion_penalty": math.inf}, "must be finite"),
        ({"insertion_penalty": "x"}, "ValueError"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, changes: dict[str, Any], found: str) -> None:
    write_json(tmp_path / "rescoring.json", CHOSEN)
    assert read_rescoring(tmp_path / "rescoring.json") == (
        ("a", "b"), "linear", Point(0.5, -1.0, (0.3, 0.7)),
    )  # fmt: skip
    write_json(tmp_path / "rescoring.json", {**CHOSEN, **changes})
    with pytest.raises(DataError, match=f"^{tmp_path}/rescoring.json: .*{found}"):
        read_rescoring(tmp_path / "rescoring.json")


def test_even_weights_are_those_points_of_a_grid() -> None:
    lists = candidates(5)
    usual = ("linear", [0.0, 0.5, 1.0], [-1.0, 1.0])
    even = grid_errors(lists, ["a", "b"], GridConfig(*usual, 0))
    assert len(even) == 6 and {point.lambdas for point in even} == {(0.5, 0.5)}
    assert even.items() <= grid_errors(lists, ["a", "b"], GridConfig(*usual, 2)).items()


@pytest.mark.parametrize(
    "changes",
    [{"interpolation": "mean"}, {"lm_weights": []}, {"lm_weights": [-1.0]}, {"steps": -1}],
)
def test_grids_that_cannot_be(changes: dict) -> None:
    usual = {"interpolation": "linear", "lm_weights": [1.0], "insertion_penalties": [0.0]}
    with pytest.raises(ValueError):
        GridConfig(**{"steps": 2, **usual, **changes})
