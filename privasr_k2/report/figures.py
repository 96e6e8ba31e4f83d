"""Plots of results with their intervals, as SVG: the same results give the same file."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from privasr_k2.fileio import atomic_path, write_text
from privasr_k2.recipe.systems import Fact
from privasr_k2.report.layout import FACTS, FigureLayout, Layout, Where, fits, with_units
from privasr_k2.report.measures import title_of
from privasr_k2.report.projection import METRIC
from privasr_k2.report.results import UNIT, Row
from privasr_k2.report.tables import Index

_STYLE: Any = {"svg.hashsalt": "curves", "svg.fonttype": "none", "font.size": 9.0}
_INCHES = (5.0, 3.6)
#: Title of an axis of epsilons.
EPSILON = f"epsilon for each {UNIT}"
_LOG_FROM = 20.0  # the largest value of an axis by the smallest


class Point(NamedTuple):
    """A result: ``y`` at ``x``, with the ends of its interval where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass
class Plot:
    """Lines by label, each by rising x, dashed ones that go on from them, and horizontal lines."""

    title: str
    xlabel: str
    ylabel: str
    lines: dict[str, list[Point]] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    dashed: dict[str, list[Point]] = field(default_factory=dict)

    @property
    def num_points(self) -> int:
        """Points of all lines."""
        return sum(map(len, self.lines.values()))


def plots_of(layout: Layout, rows: Sequence[Row]) -> list[tuple[str, Plot]]:
    """File name and plot; a plot of fewer than two points is left out."""
    index = Index(rows)
    found = []
    for spec in layout.all_figures:
        plots = _plots(spec, layout, index)
        for part, plot in plots.items():
            if plot.num_points >= 2:
                part_of_name = f"_{part}" if len(plots) > 1 else ""
                found.append((f"{spec.name}{part_of_name}.svg", plot))
    return found


def _plots(spec: FigureLayout, layout: Layout, index: Index) -> dict[str, Plot]:
    plots: dict[str, Plot] = {}
    shown: dict[str, list[Row]] = {}
    metrics = (spec.y, "per") if spec.y == "wer" else (spec.y,)
    for rows in index.of_system.values():
        row = rows[0]
        if not fits(row, spec.where):
            continue
        for y in rows:
            if y.kind not in spec.kinds or y.metric not in metrics:
                continue
            x = _x(spec, y, index)
            if x is None or not isinstance(y.value, (int, float)) or not math.isfinite(x):
                continue
            title = f"{spec.title}{', ' if y.part else ''}{y.part}"
            xlabel = "round" if spec.x == "item" else _axis(spec.x, layout)
            plot = plots.setdefault(y.part, Plot(title, xlabel, title_of(y.metric)))
            points = plot.lines.setdefault(_line(spec, layout, row), [])
            points.append(Point(x, y.value, y.low, y.high))
            shown.setdefault(y.part, []).append(row)
            if spec.levels:
                add_levels(plot, index, row, y, spec.where)
            if spec.projected:
                further = _further(rows, y, x)
                if further:
                    plot.dashed[_line(spec, layout, row)] = [points[-1], *further]
    for part, plot in plots.items():
        plot.title, plot.xlabel = (with_units(t, shown[part]) for t in (plot.title, plot.xlabel))
        for points in plot.lines.values():
            points.sort()
    return plots


def _further(rows: Iterable[Row], y: Row, x: float) -> list[Point]:
    """What the law of people says of more people than ``x``."""
    found = [row for row in rows if (row.metric, row.part) == (METRIC, y.part)]
    points = [Point(float(row.item), float(row.value)) for row in found if row.value is not None]
    return sorted(point for point in points if point.x > x)


def add_levels(plot: Plot, index: Index, row: Row, y: Row, where: Where | None = None) -> None:
    """The public and the not private system of a row as horizontal lines, if they have no other.

    Args:
        where: which systems have lines of their own.
    """
    for name in dict.fromkeys(filter(None, (row.public, row.not_private))):
        level = index.find(name, y.metric, y.part, y.item, (y.kind,))
        if level is None or (where is not None and fits(level, where)):
            continue
        if isinstance(level.value, (int, float)):
            plot.levels[level.label] = float(level.value)


def _x(spec: FigureLayout, y: Row, index: Index) -> float | None:
    value: Any
    if spec.x == "item":
        value = y.item
    elif spec.x.startswith(FACTS):
        value = y.facts.get(spec.x.removeprefix(FACTS))
    elif spec.x == "epsilon":
        value = y.epsilon
    else:
        row = index.find(y.system, spec.x, y.part, y.item)
        value = None if row is None else row.value
    return None if value in (None, "") else float(value)


def _axis(name: str, layout: Layout) -> str:
    if name == "epsilon":
        return EPSILON
    return layout.fact_title(name.removeprefix(FACTS)) if name.startswith(FACTS) else title_of(name)


def _line(spec: FigureLayout, layout: Layout, row: Row) -> str:
    values = ((name, row.facts.get(name)) for name in spec.by)
    texts = [_shown(layout, name, value) for name, value in values if value is not None]
    if spec.x == "item":
        return row.label
    return ", ".join([row.method.replace("_", " "), *texts])


def _shown(layout: Layout, name: str, value: Fact) -> str:
    """A fact in a legend; numbers with their title."""
    text = layout.fact_text(name, value)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{layout.fact_title(name)} {text}" if number else text


def write_figures(layout: Layout, rows: Sequence[Row], folder: Path) -> dict[str, str]:
    """Write all plots of a report into a folder; returns title -> file name."""
    return write_plots(plots_of(layout, rows), folder)


def write_plots(plots: Sequence[tuple[str, Plot]], folder: Path) -> dict[str, str]:
    """Write plots under their file names into a folder; returns title -> file name."""
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        for name, plot in plots:
            write_text(temporary / name, svg_of(plot))
    return {plot.title: name for name, plot in plots}


def svg_of(plot: Plot) -> str:
    """The plot as SVG. Axes over more than a factor of 20 are logarithmic."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_INCHES, layout="constrained")
        axes: Any = figure.subplots()
        for place, (label, points) in enumerate(sorted(plot.lines.items())):
            color = f"C{place % 10}"
            _draw(axes, label, _beside(points, place, plot), color)
            further = plot.dashed.get(label, [])
            axes.plot(*zip(*((p.x, p.y) for p in further)), color=color, linewidth=1, linestyle=":")
        for place, (label, level) in enumerate(plot.levels.items()):
            style = (0, (5, 2 + 2 * place))
            axes.axhline(level, linewidth=1, linestyle=style, color="0.35", label=label)
        lines = (*plot.lines.values(), *plot.dashed.values())
        every = [point for points in lines for point in points]
        scales = scale_of(point.x for point in every), scale_of(_heights(every, plot.levels))
        axes.set(xlabel=plot.xlabel, ylabel=plot.ylabel, xscale=scales[0], yscale=scales[1])
        _ticks(axes, every)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=7)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _beside(points: Sequence[Point], place: int, plot: Plot) -> list[Point]:
    """Points of several lines at one x a little apart, so that each interval can be seen."""
    xs = [x for line in plot.lines.values() for x in {point.x for point in line}]
    apart = 0.025 * place if len(set(xs)) < len(xs) and len(points) < 20 else 0.0
    return [point._replace(x=point.x * (1 + apart)) for point in points]


def scale_of(values: Iterable[float]) -> str:
    """``log`` or ``linear`` for an axis with these values.

    >>> scale_of([1.0, 30.0]), scale_of([5.0, 6.0]), scale_of([0.0, 100.0])
    ('log', 'linear', 'linear')
    """
    known = list(values)
    return "log" if min(known) > 0 and max(known) / min(known) > _LOG_FROM else "linear"


def _heights(points: Iterable[Point], levels: Mapping[str, float]) -> list[float]:
    return [*(point.y for point in points), *levels.values()]


def _ticks(axes: Any, points: Sequence[Point]) -> None:
    """Numbers as people write them, and no axis that is all rounding: 7.99984 to 7.99992."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = min(point.x for point in points), max(point.x for point in points)
    if high - low < 0.01 * abs(high):
        axes.set_xscale("linear")
        axes.set_xlim(high - max(0.5 * abs(high), 0.5), high + max(0.5 * abs(high), 0.5))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if axes.get_xscale() == "log":
        ticks = sorted({point.x for point in points})
        if len(ticks) <= 6:
            axes.set_xticks(ticks)
            axes.set_xticklabels([f"{tick:.3g}" for tick in ticks])
            axes.minorticks_off()
    elif all(point.x == int(point.x) for point in points):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw(axes: Any, label: str, points: Sequence[Point], color: str) -> None:
    x, y = [point.x for point in points], [point.y for point in points]
    size = 4 if len(points) < 20 else 0
    axes.plot(x, y, linewidth=1, marker="o", markersize=size, color=color, label=label)
    known = [point for point in points if point.low is not None and point.high is not None]
    if known:
        ends = ([point.low for point in known], [point.high for point in known])
        axes.vlines([point.x for point in known], *ends, color=color, linewidth=0.8)
