"""Progress of a command: loops report it, and the stage runner shows it on the terminal.

The report is a JSON object in the file of ``PRIVASR_PROGRESS``: ``{"done": 3.4, "total": 12,
"unit": "epoch", "figures": {"loss": 0.81}, "begun": [s, done], "written": s}``, in monotonic time.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "PRIVASR_PROGRESS"
_SECONDS = 0.5  # between two reports


@dataclass
class _Loop:
    """The loop that reports."""

    key: tuple[str, float] = ("", 0.0)
    begun: tuple[float, float] = (0.0, 0.0)
    done: float = 0.0
    written: float = -math.inf


_loop = _Loop()


@dataclass(frozen=True)
class Progress:
    """A report.

    Attributes:
        done, total: how far of how much, in units such as ``epoch``.
        figures: further numbers, such as the loss.
        seconds_left: at the speed since the loop's first report; None if unknown.
    """

    done: float
    total: float
    unit: str
    figures: dict[str, float]
    seconds_left: float | None

    @property
    def fraction(self) -> float:
        """Of the whole, in [0, 1]."""
        return min(max(self.done / self.total, 0.0), 1.0) if self.total > 0 else 0.0

    def parts(self) -> list[str]:
        """The parts of a terminal line.

        >>> Progress(3.4, 12, "epoch", {"loss": 0.8125}, 70.0).parts()
        ['epoch 4/12', 'loss 0.812', 'ETA 1:10']
        """
        count = f"{self.unit} {math.ceil(self.done)}/{math.ceil(self.total)}".strip()
        left = [] if self.seconds_left is None else [f"ETA {clock(self.seconds_left)}"]
        return [count, *(f"{name} {value:.3g}" for name, value in self.figures.items()), *left]


def report_progress(done: float, total: float, unit: str = "", **figures: float) -> None:
    """Report how far a loop is, at most twice a second and only to a stage runner.

    Args:
        done, total: how far of how much, in units, from the beginning of the training.
        figures: further numbers, such as ``loss``.
    """
    file = os.environ.get(VARIABLE)
    if not file:
        return
    now = time.monotonic()
    if _loop.key != (unit, total) or done < _loop.done:
        _loop.key, _loop.begun, _loop.written = (unit, total), (now, done), -math.inf
    _loop.done = done
    if now - _loop.written < _SECONDS and done < total:
        return
    _loop.written = now
    report = {"done": done, "total": total, "unit": unit, "figures": figures}
    with contextlib.suppress(OSError):  # a full disk must not end a training here
        Path(f"{file}.new").write_text(json.dumps({**report, "begun": _loop.begun, "written": now}))
        os.replace(f"{file}.new", file)


def read_progress(file: Path) -> Progress | None:
    """The last report; None where there is none."""
    try:
        report = json.loads(file.read_text())
        (began, first), written = report["begun"], report["written"]
        done, total, left = report["done"], report["total"], None
        if done > first:
            left = (total - done) * (written - began) / (done - first)
            left = max(left - (time.monotonic() - written), 0.0)
        return Progress(done, total, report["unit"], report["figures"], left)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def clock(seconds: float) -> str:
    """Minutes and seconds, or hours too.

    >>> clock(70), clock(3661.2)
    ('1:10', '1:01:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
