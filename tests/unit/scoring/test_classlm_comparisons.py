from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, write_json
from privasr_k2.scoring.classlm_comparisons import (
    compare_rates,
    compare_recall,
    increase_difference,
    pairs_of,
)
from privasr_k2.scoring.classlm_results import System, read_systems
from privasr_k2.scoring.comparisons import holm
from privasr_k2.scoring.report import compare_scores
from tests.unit.scoring.classlm_folders import write_system


def _systems(*names: str) -> list[System]:
    return [System(*name.split("/")) for name in names]


def _shown(*names: str) -> set[str]:
    return {f"{a} {b}" for a, b in pairs_of(_systems(*names))}


def test_which_pairs_are_compared() -> None:
    assert _shown("original/M2", "sanitized/M2", "original/M1", "sanitized/M1") == {
        "sanitized/M2 sanitized/M1",
        "sanitized/M1 original/M1",
        "sanitized/M2 original/M2",
        "original/M2 sanitized/M1",
        "original/M2 original/M1",
    }
    assert _shown("adapt_12/M2_eq2", "adapt_12/M1_eq1", "direct_12/M2", "direct_15/M2", "sanitized/M2") == {
        "adapt_12/M2_eq2 sanitized/M2",
        "adapt_12/M2_eq2 direct_12/M2",
    }
    assert _shown("adapt_12/M2_eq2", "adapt_12/M1_eq2", "adapt_12/M1_eq1") == {
        "adapt_12/M2_eq2 adapt_12/M1_eq2"
    }


def test_the_mixture_of_all_is_compared_with_the_smallest_adaptation_only() -> None:
    others = ("mixed/M1_M2", "adapt_9/M4", "adapt_20/M4", "sanitized/M4", "original/M4", "direct_9/M4")
    found = {pair for pair in _shown("mixed/M1_M2_M4", *others) if pair.startswith("mixed/M1_M2_M4 ")}
    assert {pair.split()[1] for pair in found} == {"mixed/M1_M2", "adapt_9/M4", "sanitized/M4", "direct_9/M4"}


def test_an_exact_mixture_is_compared_with_its_static_one_and_with_the_mixture_of_all() -> None:
    names = ("mixed/M1_M2_M4", "mixed/M1_M2_exact", "mixed/M1_M2", "mixed/M1_M2_M3_exact", "mixed/M1_M2_M3")
    best = {f"mixed/M1_M2_M4 {name}" for name in names[1:]}
    exact = {f"{name} {name.removesuffix('_exact')}" for name in names if name.endswith("_exact")}
    assert _shown(*names) == best | exact and len(exact) == 2
    assert _shown("mixed/M1_M2_exact", "mixed/M1_M2_M3") == set()


def test_rates_are_tested_as_two_scores_are_and_corrected_together(tmp_path: Path) -> None:
    made = {"sanitized/M1": (40, 8), "sanitized/M2": (30, 2), "original/M1": (37, 2)}
    systems = read_systems(write_system(tmp_path, name, *counts) for name, counts in made.items())
    found = compare_rates(systems)
    assert len(found) == 2  # M2 of sanitized and M1 of original text, each with M1 of sanitized text
    for (first, second), tested in found.items():
        assert tested.test == compare_scores(systems[first].score, systems[second].score, "test")
    by_name = {f"{a} {b}": tested for (a, b), tested in found.items()}
    better = by_name["sanitized/M2 sanitized/M1"]
    assert better.difference == pytest.approx((32 - 48) / 300)
    assert better.interval is not None and better.interval.high < 0
    raw = [tested.test.p_value for tested in found.values()]
    assert [tested.adjusted_p for tested in found.values()] == holm(raw) != raw


def test_recall_of_the_class_model_is_tested_against_the_word_model(tmp_path: Path) -> None:
    made = {"sanitized/M1": (0, 30), "sanitized/M2": (0, 12), "original/M1": (0, 13), "original/M2": (0, 14)}
    systems = read_systems(write_system(tmp_path, *one[:1], *one[1]) for one in reversed(made.items()))
    found = {str(first): tested for (first, _), tested in compare_recall(systems).items()}
    assert list(found) == ["sanitized/M2", "original/M2"]
    better = found["sanitized/M2"]
    assert better.found.value == pytest.approx(18 / 60)
    assert better.found.interval.low > 0
    assert better.found.p_value == pytest.approx(2 / 1000) and better.adjusted_p == pytest.approx(4 / 1000)
    # One more lost name, of one speaker of six: 0 differences are drawn often.
    assert found["original/M2"].found.value == pytest.approx(-1 / 60)
    assert found["original/M2"].found.p_value > 0.5


def test_recall_on_other_entities_is_refused_and_passed_over_without_any(tmp_path: Path) -> None:
    word = write_system(tmp_path, "sanitized/M1", 0, 3)
    none = read_systems([word, write_system(tmp_path, "sanitized/M2", 0, 3, entities=False)])
    assert compare_recall(none) == {}
    changed = write_system(tmp_path, "sanitized/M2", 0, 3) / "wer.json"
    content = read_json(changed)
    content["parts"]["test"]["entities"]["speakers"]["s0"]["all"] = [9, 11, 9]
    write_json(changed, content)
    with pytest.raises(DataError, match="sanitized/M2/score_test: expected the entities of"):
        compare_recall(read_systems([word, changed.parent]))


def test_how_much_more_sanitizing_hurts_the_word_model(tmp_path: Path) -> None:
    made = {"sanitized/M1": 48, "original/M1": 24, "sanitized/M2": 33, "original/M2": 30}
    systems = read_systems(write_system(tmp_path, name, errors, 0) for name, errors in made.items())
    found = increase_difference(systems)
    assert found is not None
    assert found.value == pytest.approx(48 / 24 - 33 / 30)
    assert found.interval.low > 0 and found.p_value == pytest.approx(2 / 1000)
    del systems[System("original", "M2")]
    assert increase_difference(systems) is None
    assert increase_difference({}) is None
