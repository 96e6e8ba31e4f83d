"""Line plots."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.scoring.curves import Line, Panel, Point, draw

pytest.importorskip("matplotlib")


def _panel(y: float) -> Panel:
    lines = [
        Line("with intervals", [Point(1, y, y - 1, y + 1), Point(2, 2 * y)]),
        Line("baseline", [Point(0, 3.0)], level=True),
        Line("nothing was measured", []),
    ]
    return Panel("rounds", "WER %", lines)


def test_the_same_results_give_the_same_file(tmp_path: Path) -> None:
    for name, y in (("a", 5.0), ("b", 5.0), ("c", 6.0)):
        draw([_panel(y), _panel(2.0)], tmp_path / f"{name}.svg")
    a, b, c = ((tmp_path / f"{name}.svg").read_text() for name in "abc")
    assert a == b != c


def test_legend_names_what_was_measured(tmp_path: Path) -> None:
    draw([_panel(5.0)], tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert ">baseline<" in text and ">with intervals<" in text and ">WER %<" in text
    assert "nothing was measured" not in text


def test_intervals_and_levels_are_drawn(tmp_path: Path) -> None:
    plain = Panel("x", "y", [Line("one", [Point(1, 2.0), Point(2, 3.0)])])
    with_interval = Panel("x", "y", [Line("one", [Point(1, 2.0, 1.0, 3.0), Point(2, 3.0)])])
    level = Panel("x", "y", [Line("one", [Point(1, 2.0), Point(2, 3.0)], level=True)])
    texts = []
    for place, panel in enumerate((plain, with_interval, level)):
        draw([panel], tmp_path / f"{place}.svg")
        texts.append((tmp_path / f"{place}.svg").read_text())
    assert "LineCollection" in texts[1] and "LineCollection" not in texts[0]
    assert texts[2].count("stroke-dasharray") > texts[0].count("stroke-dasharray")
