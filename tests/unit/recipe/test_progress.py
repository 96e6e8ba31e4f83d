"""Progress from a command's loop to the stage runner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.recipe import progress
from privasr_k2.recipe.progress import read_progress, report_progress


class Clock:
    """Time that the test sets."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "_loop", progress._Loop())
    return clock


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "report.json"
    monkeypatch.setenv(progress.VARIABLE, str(file))
    return file


def test_the_time_left_is_that_at_the_speed_so_far(clock: Clock, file: Path) -> None:
    report_progress(2.0, 12, "epoch", loss=3.0)  # continued from the third epoch
    report = read_progress(file)
    assert report is not None and report.seconds_left is None and report.fraction == 2 / 12
    clock.now += 10
    report_progress(4.5, 12, "epoch", loss=0.81)
    clock.now += 3
    report = read_progress(file)
    assert report is not None and report.seconds_left == pytest.approx(7.5 * 10 / 2.5 - 3)
    assert report.parts() == ["epoch 5/12", "loss 0.81", "ETA 0:27"]


def test_reports_are_rare_but_for_the_last(clock: Clock, file: Path) -> None:
    report_progress(1, 9)
    clock.now += 0.1
    report_progress(2, 9)
    assert json.loads(file.read_text())["done"] == 1
    report_progress(9, 9)
    assert json.loads(file.read_text())["done"] == 9


def test_another_loop_has_a_speed_of_its_own(clock: Clock, file: Path) -> None:
    for first in (0, 0):  # the second time it begins again
        report_progress(first, 9, "step")
        report = read_progress(file)
        assert report is not None and report.done == 0 and report.seconds_left is None
        clock.now += 1
        report_progress(3, 9, "step")
        report = read_progress(file)
        assert report is not None and report.seconds_left == pytest.approx(2.0)
    report_progress(1, 4, "file")
    report = read_progress(file)
    assert report is not None and report.unit == "file" and report.seconds_left is None


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    report_progress(1, 2)
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "no folder" / "report"))
    report_progress(1, 2)  # and a disk that is full ends no training
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"done": 1}', "null"])
def test_a_report_that_is_no_report(tmp_path: Path, text: str) -> None:
    (tmp_path / "report").write_text(text)
    assert read_progress(tmp_path / "report") is None and read_progress(tmp_path / "none") is None
