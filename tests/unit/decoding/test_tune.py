from __future__ import annotations

import logging
from pathlib import Path

import pytest

from privasr_k2.decoding.tune import choose_point, edges_of, grid_counts, read_weights, tune
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json
from privasr_k2.scoring.counts import ErrorCounts
from privasr_k2.scoring.hypotheses import Decoded, Utterance, Weights


def _decoded(texts: list[tuple[str, dict[tuple[float, float], str]]], role: str = "dev") -> Decoded:
    utterances = []
    for i, (ref, hyps) in enumerate(texts):
        words = {Weights(*point): tuple(hyp.split()) for point, hyp in hyps.items()}
        utterances.append(Utterance(f"u{i}", "p", "s", tuple(ref.split()), not hyps, words))
    grid = tuple(sorted({w for u in utterances for w in u.hyps}))
    return Decoded(Path("exp/ctc/decode_dev"), role, tuple(utterances), grid)


def _one(errors: dict[tuple[float, float], int]) -> Decoded:
    """One utterance of three words with so many of them wrong at each point."""
    hyps = {point: " ".join(["x"] * n + ["a"] * (3 - n)) for point, n in errors.items()}
    return _decoded([("a a a", hyps)])


def test_the_fewest_errors_over_all_utterances_win() -> None:
    decoded = _decoded(
        [
            ("a b c", {(0.5, 0.0): "a b c", (1.0, 0.0): "a x c", (2.0, 0.0): "x"}),
            ("d e", {(0.5, 0.0): "x y", (1.0, 0.0): "d e", (2.0, 0.0): "d e"}),
        ]
    )
    choice = tune(decoded, {})
    assert choice.weights == Weights(1.0, 0.0)
    assert [c.errors for c in choice.grid.values()] == [2, 1, 3]
    assert choice.edges == ()
    written = choice.to_dict()
    assert written["role"] == "dev"
    assert (written["lm_weight"], written["insertion_penalty"]) == (1.0, 0.0)
    assert written["wer_percent"] == pytest.approx(20.0)
    counts = ErrorCounts(hits=3, substitutions=2).to_dict()
    assert written["grid"][0] == {"lm_weight": 0.5, "insertion_penalty": 0.0, **counts}


def test_ties_go_to_the_smallest_weight_then_to_the_penalty_nearest_to_zero() -> None:
    tied = {(2.0, 0.0): 1, (1.0, 0.0): 1, (0.5, 0.0): 2}
    assert tune(_one(tied), {}).weights == Weights(1.0, 0.0)
    tied = {(1.0, -2.0): 1, (1.0, -1.0): 1, (1.0, 1.0): 1, (1.0, 2.0): 1, (1.0, 0.0): 2}
    assert tune(_one(tied), {}).weights == Weights(1.0, -1.0)


def test_the_edge_of_the_grid_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        choice = tune(_one({(0.5, 0.0): 2, (1.0, 0.0): 1, (2.0, 0.0): 0}), {})
    assert choice.edges == ("lm_weight",)
    assert (
        "the best lm_weight on dev, 2.0, is at the edge of its grid: widen lm_weights"
        in caplog.text
    )


def test_no_language_model_at_all_is_no_edge() -> None:
    grid = (Weights(0.0, 0.0), Weights(1.0, 0.0))
    assert edges_of(grid[0], grid) == ()
    assert edges_of(grid[1], grid) == ("lm_weight",)
    assert edges_of(grid[1], grid[1:]) == ()


def test_utterances_without_a_path_count_at_every_point() -> None:
    decoded = _decoded([("a b", {}), ("c", {(0.5, 0.0): "c", (1.0, 0.0): "x"})])
    assert [c.errors for c in grid_counts(decoded, {}).values()] == [2, 3]
    assert tune(decoded, {}).no_path == 1


def test_scored_units_decide() -> None:
    decoded = _decoded([("ix t", {(0.5, 0.0): "ix d", (1.0, 0.0): "ih t"})])
    assert tune(decoded, {}).weights == Weights(0.5, 0.0)
    assert tune(decoded, {"ix": "ih"}).weights == Weights(1.0, 0.0)


@pytest.mark.parametrize("role", ["test", "train", "adapt"])
def test_only_dev_is_for_tuning(role: str) -> None:
    with pytest.raises(DataError, match=f"of the role dev, found the role {role}"):
        tune(_decoded([("a", {(1.0, 0.0): "a"})], role), {})


def test_references_without_words_are_refused() -> None:
    with pytest.raises(DataError, match="only empty ones"):
        tune(_decoded([("", {(1.0, 0.0): "a"})]), {})


def test_the_chosen_point_is_scored() -> None:
    many, one = _one({(0.5, 0.0): 0, (1.0, 0.0): 0}), _one({(1.0, 0.0): 0})
    assert choose_point(many, Weights(1.0, 0.0)) == Weights(1.0, 0.0)
    assert choose_point(one, None) == Weights(1.0, 0.0)
    with pytest.raises(DataError, match="add --in-weights"):
        choose_point(many, None)
    with pytest.raises(DataError, match=r"\(0.5, 0.0\), found only \(1.0, 0.0\)"):
        choose_point(one, Weights(0.5, 0.0))


def test_weights_travel_as_a_file(tmp_path: Path) -> None:
    choice = tune(_one({(0.5, -1.5): 0}), {})
    write_json(tmp_path / "weights.json", choice.to_dict())
    assert read_weights(tmp_path / "weights.json") == Weights(0.5, -1.5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"role": "test", "lm_weight": 1, "insertion_penalty": 0}, "the role test"),
        ([1.0, 0.0], "the role None"),
        ({"role": "dev", "lm_weight": 1}, "insertion_penalty"),
        ({"role": "dev", "lm_weight": float("inf"), "insertion_penalty": 0}, "finite"),
    ],
)
def test_other_weights_are_refused(tmp_path: Path, content: object, message: str) -> None:
    write_json(tmp_path / "weights.json", content)
    with pytest.raises(DataError, match=message):
        read_weights(tmp_path / "weights.json")
