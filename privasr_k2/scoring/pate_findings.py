"""What the report of recipes ``pate`` and ``dpsgd`` says in sentences: which of the paper's claims hold here.

[yang2022] C.-H. H. Yang, I-F. Chen, A. Stolcke, S. M. Siniscalchi, C.-H. Lee, An experimental study on
private aggregation of teacher ensemble learning for end-to-end speech recognition, SLT 2022.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from privasr_k2.privacy.accounting import Epsilon
from privasr_k2.privacy.spending import shown
from privasr_k2.scoring.pate_comparisons import (
    AGAINST_CLEAN,
    AGAINST_DPSGD,
    AGAINST_PUBLIC,
    ARCHITECTURE,
    MECHANISM,
    Compared,
)
from privasr_k2.scoring.pate_results import (
    CLEAN,
    ENSEMBLE,
    GNMAX,
    TEACHER,
    Name,
    System,
    model_label,
    parse_system,
)
from privasr_k2.scoring.results import Score

_SMALL, _LARGE = 10.0, 1000.0  # epsilons of the paper's statements


def teachers_wer(scores: Mapping[Name, Score], model: str, teachers: int, part: str) -> float | None:
    """The mean error rate of a model's teachers that were scored, in per cent; ``None``: none was."""
    rates = [
        rate
        for name, score in scores.items()
        if name.model == model and part in score.parts
        for system in [parse_system(name.system, score.place)]
        if (system.kind, system.teachers) == (TEACHER, teachers)
        and (rate := score.parts[part].counts.percent) is not None
    ]
    return fmean(rates) if rates else None


def too_weak(scores: Mapping[Name, Score], part: str, limit: float) -> dict[tuple[str, int], float]:
    """Models and numbers of teachers whose mean error rate is above ``limit`` per cent."""
    asked = {
        (name.model, system.teachers)
        for name in scores
        for system in [parse_system(name.system, Path(name.system))]
        if system.teachers is not None
    }
    rates = {one: teachers_wer(scores, *one, part) for one in sorted(asked)}
    return {one: rate for one, rate in rates.items() if rate is not None and rate > limit}


def findings(
    scores: Mapping[Name, Score],
    compared: Sequence[Compared],
    exact: Mapping[Name, Epsilon],
    weak: Collection[tuple[str, int]],
    part: str,
    *,
    level: float,
    target: tuple[float, float],
) -> Iterator[str]:
    """Which statements hold on one part; nothing is concluded from what is too weak.

    Args:
        compared: all comparisons.
        exact: epsilons of releases.
        weak: of :func:`too_weak`.
        level: of significance.
        target: epsilon and delta of a guarantee that means something.
    """
    of_part = [one for one in compared if one.part == part]
    here = [one for one in of_part if not any(_is_weak(name, weak) for name in (one.first, one.second))]
    yield from _meaningful(of_part, exact, weak, level, target)
    for why, claim, paper in (
        (MECHANISM, "GNMax has the lower error rate than LNMax", "so in all of Figure 3"),
        (AGAINST_DPSGD, "PATE has the lower error rate than DP-SGD at the same epsilon", "so at all budgets"),
        (
            ARCHITECTURE,
            "RNN-T has the lower error rate than another architecture under GNMax",
            "so up to 100",
        ),
    ):
        yield from _claim([one for one in here if one.why == why], claim, paper, level)
    yield from _towards_clean([one for one in here if one.why == AGAINST_CLEAN], level)
    yield from _best_number(scores, weak, part)


def _is_weak(name: Name, weak: Collection[tuple[str, int]]) -> bool:
    return (name.model, _system(name).teachers) in weak


def _system(name: Name) -> System:
    return parse_system(name.system, Path(name.system))


def _meaningful(
    compared: Sequence[Compared],
    exact: Mapping[Name, Epsilon],
    weak: Collection[tuple[str, int]],
    level: float,
    target: tuple[float, float],
) -> Iterator[str]:
    """Whether a private student within the target beats what public data alone give."""
    within = [
        one
        for one in compared
        if one.why == AGAINST_PUBLIC
        and one.first in exact
        and exact[one.first].value <= target[0]
        and exact[one.first].delta <= target[1]
    ]
    private = [one for one in within if not _is_weak(one.first, weak)]
    asked = f"exact epsilon at most {target[0]:g} at delta {target[1]:g} or less"
    if not private:
        but = " but of teachers that are too weak" if within else ""
        yield f"No system with {asked}{but} was compared with the public model."
        return
    won = [one for one in private if one.is_lower and _is_significant(one, level)]
    names = "; ".join(f"{one.first.label} (exact {shown(exact[one.first].value)})" for one in won)
    yield (
        f"A guarantee that means something: {len(won)} of {len(private)} systems with {asked} have a "
        f"significantly lower error rate than the public model{': ' + names if won else ''}."
    )


def _is_significant(one: Compared, level: float) -> bool:
    return one.p_value is not None and one.p_value < level


def _claim(pairs: Sequence[Compared], claim: str, paper: str, level: float) -> Iterator[str]:
    if not pairs:
        return
    lower = [one for one in pairs if one.is_lower]
    sure = sum(_is_significant(one, level) for one in lower)
    other = sum(_is_significant(one, level) for one in pairs if not one.is_lower)
    changes = [one.change for one in pairs if one.change is not None]
    span = f"; relative change {min(changes):+.1f} to {max(changes):+.1f} %" if changes else ""
    verdict = (
        "holds" if len(lower) == len(pairs) else "does not hold throughout" if lower else "does not hold"
    )
    yield (
        f"{claim}: {verdict}: in {len(lower)} of {len(pairs)} comparisons, significantly in {sure}, and "
        f"significantly the other way in {other}{span}. The paper: {paper}."
    )


def _towards_clean(pairs: Sequence[Compared], level: float) -> Iterator[str]:
    """The paper: major increases up to epsilon 10, the clean ensemble's error rate towards 1000."""
    for name, chosen, paper in (
        (f"epsilon up to {_SMALL:g}", [p for p in pairs if _asked(p) <= _SMALL], "a major increase"),
        (f"epsilon {_LARGE:g} and more", [p for p in pairs if _asked(p) >= _LARGE], "converging to it"),
    ):
        if chosen:
            worse = sum(not one.is_lower and _is_significant(one, level) for one in chosen)
            points = [one.rates[0] - one.rates[1] for one in chosen if None not in one.rates]  # type: ignore[operator]
            span = f", by {min(points):+.2f} to {max(points):+.2f} points" if points else ""
            yield (
                f"Against clean votes, {name}: a significantly higher error rate in {worse} of {len(chosen)} "
                f"systems{span}. The paper: {paper}."
            )


def _asked(one: Compared) -> float:
    epsilon = _system(one.first).epsilon
    return math.inf if epsilon is None else epsilon


def _best_number(scores: Mapping[Name, Score], weak: Collection[tuple[str, int]], part: str) -> Iterator[str]:
    """Where the error rate is lowest by number of teachers: clean votes, the ensemble, GNMax."""
    curves: dict[tuple[str, System], dict[int, float]] = {}
    for name, score in scores.items():
        system = _system(name)
        rate = score.parts[part].counts.percent if part in score.parts else None
        if system.kind in (CLEAN, ENSEMBLE, GNMAX) and rate is not None and not _is_weak(name, weak):
            alike = (name.model, system._replace(teachers=None))
            curves.setdefault(alike, {})[system.teachers or 0] = rate
    for (model, system), rates in curves.items():
        if len(rates) > 1:
            best = min(rates, key=lambda teachers: rates[teachers])
            told = ", ".join(f"{teachers}: {rate:.2f} %" for teachers, rate in sorted(rates.items()))
            what = system._replace(teachers=best).label
            who = model_label(model)
            yield f"{who}, by number of teachers, best is {what} ({told}). The paper: 10 to 20."
