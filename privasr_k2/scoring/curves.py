"""Line plots of results, with their intervals, as SVG: the same results give the same file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from privasr_k2.fileio import atomic_path

_STYLE: Any = {"svg.hashsalt": "curves", "svg.fonttype": "none", "font.size": 9.0}
_PANEL_INCHES = (5.0, 4.0)


class Point(NamedTuple):
    """A result: ``y`` at ``x``, with the ends of its interval where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Line:
    """Results that belong together.

    Attributes:
        label: in the legend.
        points: by rising x. One point with ``level`` gives a horizontal line.
        level: what has no x: drawn dashed from edge to edge at the first point's y.
    """

    label: str
    points: Sequence[Point]
    level: bool = False


@dataclass(frozen=True)
class Panel:
    """One plot of a picture; scales are matplotlib's ``linear`` and ``log``."""

    xlabel: str
    ylabel: str
    lines: Sequence[Line]
    xscale: str = "linear"
    yscale: str = "linear"


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Draw the panels side by side.

    Args:
        panels: at least one; lines without points are left out.
        path: ``*.svg``.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    width, height = _PANEL_INCHES
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width * len(panels), height), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
            drawn = [line for line in panel.lines if line.points]
            for place, line in enumerate(drawn):
                _draw_line(axes, line, f"C{place % 10}")
            axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, xscale=panel.xscale, yscale=panel.yscale)
            if drawn:
                axes.legend(frameon=False, fontsize=7)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})


def _draw_line(axes: Any, line: Line, color: str) -> None:
    if line.level:
        axes.axhline(line.points[0].y, linewidth=1, linestyle="--", color=color, label=line.label)
        return
    x, y = [point.x for point in line.points], [point.y for point in line.points]
    axes.plot(x, y, linewidth=1, marker="o", markersize=2, color=color, label=line.label)
    known = [point for point in line.points if point.low is not None and point.high is not None]
    if known:
        axes.vlines(
            [point.x for point in known],
            [point.low for point in known],
            [point.high for point in known],
            color=color,
            linewidth=0.6,
        )
