"""Pictures in the shape of Figures 2 to 6 of [yang2022]: error rate against teachers and against epsilon.

Epsilons on the axis are exact ones, from the ledger; those that were asked for stand in the tables.

[yang2022] C.-H. H. Yang, I-F. Chen, A. Stolcke, S. M. Siniscalchi, C.-H. Lee, An experimental study on
private aggregation of teacher ensemble learning for end-to-end speech recognition, SLT 2022.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from privasr_k2.privacy.accounting import Epsilon
from privasr_k2.scoring.curves import Line, Panel, Point
from privasr_k2.scoring.pate_results import (
    CLEAN,
    DPSGD,
    ENSEMBLE,
    FREE,
    MECHANISMS,
    NONPRIVATE,
    Name,
    model_label,
    parse_system,
    parts_of,
)
from privasr_k2.scoring.results import Score


def teacher_panels(scores: Mapping[Name, Score]) -> list[Panel]:
    """Error rate against the number of teachers, a panel a part [yang2022, Figure 2]."""
    panels = []
    for part in parts_of(scores):
        lines: dict[str, list[Point]] = {}
        for name, score in scores.items():
            system = parse_system(name.system, score.place)
            point = _point(score, part, float(system.teachers or 0))
            if system.kind in (CLEAN, ENSEMBLE) and point is not None:
                what = "ensemble" if system.kind == ENSEMBLE else "student of clean votes"
                lines.setdefault(f"{model_label(name.model)}, {what}", []).append(point)
        panels.append(Panel("teachers", _rate(scores, part), _by_x(lines)))
    return panels


def epsilon_panels(scores: Mapping[Name, Score], exact: Mapping[Name, Epsilon]) -> list[Panel]:
    """Error rate against exact epsilon, a panel a model and part [yang2022, Figures 4 to 6].

    Systems without a finite epsilon are drawn from edge to edge.
    """
    panels = []
    for part in parts_of(scores):
        for model in dict.fromkeys(name.model for name in scores):
            lines: dict[str, list[Point]] = {}
            levels = []
            for name, score in scores.items():
                system = parse_system(name.system, score.place)
                cost = exact.get(name)
                x = math.nan if cost is None else cost.value
                point = _point(score, part, x) if name.model == model else None
                if point is None:
                    continue
                if system.kind in (*FREE, NONPRIVATE, CLEAN):
                    levels.append(Line(system.label, [point], level=True))
                elif (system.is_pate or system.kind == DPSGD) and 0 < x < math.inf:
                    several = "" if system.teachers is None else f", {system.teachers} teachers"
                    lines.setdefault(f"{MECHANISMS.get(system.kind, 'DP-SGD')}{several}", []).append(point)
            label = f"{model_label(model)}: exact epsilon (smaller is stronger)"
            panels.append(Panel(label, _rate(scores, part), [*_by_x(lines), *levels], xscale="log"))
    return panels


def _rate(scores: Mapping[Name, Score], part: str) -> str:
    name = next(score.rate_name for score in scores.values())
    return f"{name} %, {part}" if part else f"{name} %"


def _by_x(lines: Mapping[str, list[Point]]) -> list[Line]:
    return [Line(label, sorted(points, key=lambda point: point.x)) for label, points in lines.items()]


def _point(score: Score, part: str, x: float) -> Point | None:
    result = score.parts.get(part)
    rate = None if result is None else result.counts.percent
    if result is None or rate is None:
        return None
    if result.interval is None:
        return Point(x, rate)
    return Point(x, rate, 100 * result.interval.low, 100 * result.interval.high)
