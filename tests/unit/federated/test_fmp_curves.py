"""Plots of recipe fmp."""

from __future__ import annotations

from privasr_k2.federated.fmp_curves import fmp_panels
from privasr_k2.federated.fmp_report import System
from privasr_k2.scoring.curves import Point


def _system(name: str, perplexity: float, rounds: int = 10, epsilon: float | None = None) -> System:
    release = None if epsilon is None else {"epsilon": epsilon, "mechanism": "discrete_gaussian"}
    return System(name, {"rounds": rounds}, {"total": perplexity}, release, None)


def test_one_panel_against_rounds_and_one_against_epsilon() -> None:
    systems = [
        _system("baseline", 9.0),
        _system("T10", 7.0),
        _system("T2", 8.0, rounds=2),
        _system("grid_beta_only", 7.5),
        _system("eps_none", 7.2),
        _system("eps_user_1", 8.4, epsilon=1.0),
        _system("eps_user_0.5", 8.6, epsilon=0.5),
        _system("eps_published_1", 7.3, epsilon=1.0),
    ]
    rounds, epsilon = fmp_panels(systems)
    assert [(line.label, line.level) for line in rounds.lines] == [
        ("exact averages", False),
        ("not adapted", True),
    ]
    assert rounds.lines[0].points == [Point(2.0, 8.0), Point(10.0, 7.0)]
    lines = {line.label: line for line in epsilon.lines}
    assert lines["each user"].points == [Point(0.5, 8.6), Point(1.0, 8.4)]
    assert lines["as published (no such guarantee)"].points == [Point(1.0, 7.3)]
    assert [(name, line.points[0].y) for name, line in lines.items() if line.level] == [
        ("without noise", 7.2),
        ("not adapted", 9.0),
    ]
    assert (rounds.ylabel, rounds.xscale, epsilon.xscale) == ("perplexity", "linear", "log")


def test_no_release_no_panel_against_epsilon() -> None:
    assert len(fmp_panels([_system("baseline", 9.0), _system("T1", 8.0, rounds=1)])) == 1
