"""Plots of recipe fmp: error rate and perplexity against the number of rounds, and against epsilon."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from privasr_k2.federated.fmp_report import BASELINE, System
from privasr_k2.scoring.classlm_results import pooled
from privasr_k2.scoring.curves import Line, Panel, Point

_Measure = Callable[[System, float], "Point | None"]


def fmp_panels(systems: Sequence[System]) -> list[Panel]:
    """A panel against rounds and, where there are releases, one against epsilon, for each measure there is.

    What is called epsilon as published is drawn at the number that the paper calls so, and labelled.

    Args:
        systems: of :func:`privasr_k2.federated.fmp_report.read_systems`.
    """
    found = []
    for name, measure in (("error rate %, 95 % over speakers", _errors), ("perplexity", _perplexity)):
        if measure(systems[0], 0.0) is not None:
            found += _panels(systems, name, measure)
    return found


def _panels(systems: Sequence[System], ylabel: str, measure: _Measure) -> list[Panel]:
    by_name = {system.name: system for system in systems}
    level = [_level("not adapted", by_name[BASELINE], measure)]
    rounds = [(system, float(system.config["rounds"])) for system in systems if _is_rounds(system.name)]
    panels = [Panel("rounds T", ylabel, [_line("exact averages", rounds, measure), *level])]
    released: dict[str, list[tuple[System, float]]] = {}
    for system in systems:
        if system.release is not None:
            unit = system.name.removeprefix("eps_").rpartition("_")[0]
            released.setdefault(unit, []).append((system, float(system.release["epsilon"])))
    if released:
        if "eps_none" in by_name:
            level.insert(0, _level("without noise", by_name["eps_none"], measure))
        lines = [_line(_label(unit), of_unit, measure) for unit, of_unit in released.items()]
        panels.append(Panel("epsilon", ylabel, [*lines, *level], xscale="log"))
    return panels


def _is_rounds(name: str) -> bool:
    return name.startswith("T") and name[1:].isdigit()


def _label(unit: str) -> str:
    if unit == "published":
        return "as published (no such guarantee)"
    return f"each {unit}"


def _line(label: str, of_line: Sequence[tuple[System, float]], measure: _Measure) -> Line:
    points = (measure(system, x) for system, x in sorted(of_line, key=lambda one: one[1]))
    return Line(label, [point for point in points if point is not None])


def _level(label: str, system: System, measure: _Measure) -> Line:
    point = measure(system, 0.0)
    return Line(label, [] if point is None else [point], level=True)


def _errors(system: System, x: float) -> Point | None:
    if system.score is None:
        return None
    result = pooled(system.score)
    if result.counts.percent is None:
        return None
    interval = result.interval
    ends = (None, None) if interval is None else (100 * interval.low, 100 * interval.high)
    return Point(x, result.counts.percent, *ends)


def _perplexity(system: System, x: float) -> Point | None:
    return None if system.perplexity is None else Point(x, float(system.perplexity["total"]))
