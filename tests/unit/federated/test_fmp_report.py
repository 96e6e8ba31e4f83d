"""The tests of a report of recipe fmp: one question by itself, all others corrected together."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.federated.fmp_report import read_systems
from privasr_k2.fileio import write_json
from privasr_k2.scoring.comparisons import holm
from privasr_k2.scoring.matched_pairs import compare
from tests.unit.scoring.made_scores import write_score

REFS = {f"u{i:02d}": "a b c d" for i in range(40)}
WRONG = {"baseline": range(30), "T2": range(21), "T10": range(20), "grid_beta_only": range(22)}


def hyps(name: str) -> dict[str, str]:
    return {id_: "x b c d" if i in WRONG[name] else ref for i, (id_, ref) in enumerate(REFS.items())}


def p(one: str, other: str) -> float:
    refs, *words = ([text.split() for text in texts.values()] for texts in (REFS, hyps(one), hyps(other)))
    value = compare(refs, *words).p_value
    assert value is not None
    return value


def test_only_the_full_method_against_the_baseline_is_not_corrected(tmp_path: Path) -> None:
    for name in WRONG:
        config = {"rounds": 2 if name == "T2" else 10}
        write_json(tmp_path / name / "run_test.json", {"config": config, "release": None, "perplexity": None})
        write_score(tmp_path / name / "score_test", {"test_x": (REFS, hyps(name))})
    runs = [tmp_path / name / "run_test.json" for name in WRONG]
    found = {one.name: one for one in read_systems(runs, [run.parent / "score_test" for run in runs], [])}
    others = [("T2", "baseline"), ("grid_beta_only", "baseline"), ("T10", "grid_beta_only")]
    corrected = holm([p(*pair) for pair in others])
    assert found["T10"].p == pytest.approx(p("T10", "baseline"))
    assert [found["T2"].p, found["grid_beta_only"].p] == pytest.approx(corrected[:2])
    assert found["grid_beta_only"].p_full == pytest.approx(corrected[2])
    assert found["T2"].p > p("T2", "baseline") and found["baseline"].p is None
