"""Rows of the table of benchmarks, as JSON lines for benchmarks/table.py, and a benchmark's flags.

A benchmark passes its results to :func:`append_rows`, which writes only with ``--out-rows``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from privasr_k2.environment import installed_version

ROOT = Path(__file__).resolve().parents[1]


def command_line() -> str:
    """This process's command as given in the repository's root, without ``--out-rows FILE``."""
    words = [os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]]
    if "--out-rows" in words:
        at = words.index("--out-rows")
        del words[at : at + 2]
    words = [word.removeprefix(f"{ROOT}/") for word in words]
    return f"python {shlex.join(words)}"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        what: the task, with its sizes.
        ours, peer: the two figures, above 0.
        unit: of both, for example ``s``.
        against: the peer, a library with its version or ``a loop``, and its restrictions.
        better: which figure is the better one, ``less`` or ``more``.
        command: that measured it.
    """

    what: str
    ours: float
    peer: float
    unit: str
    against: str
    better: str
    command: str = field(default_factory=command_line)

    def __post_init__(self) -> None:
        if self.better not in ("less", "more"):
            raise ValueError(f"better must be less or more, got {self.better!r}")
        for name in ("ours", "peer"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be finite and above 0, got {value} ({self.what})")

    @property
    def ratio(self) -> float:
        """How many times as good ours is as the peer: below 1 the peer is ahead."""
        return self.peer / self.ours if self.better == "less" else self.ours / self.peer


def flags(doc: str | None, *, rows: bool = True, **numbers: int) -> argparse.ArgumentParser:
    """A benchmark's parser: its docstring, whole-number flags, and ``--out-rows`` with ``rows``."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=formatter)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    if rows:
        text = "append the table's rows to this file as JSON lines"
        parser.add_argument("--out-rows", type=Path, metavar="FILE", help=text)
    return parser


def append_rows(path: Path | None, rows: Iterable[Row]) -> None:
    """Append rows in one write, so that a file never has a part of them, unless ``None``."""
    if path is None:
        return
    lines = "".join(f"{json.dumps({**asdict(row), 'ratio': row.ratio})}\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        file.write(lines.encode())


def read_rows(path: Path) -> list[Row]:
    """The rows of a file; of one that is not there, none."""
    if not path.exists():
        return []
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Row(**{name: value for name, value in r.items() if name != "ratio"}) for r in records]


def library(name: str) -> str:
    """A package's name and installed version: how ``against`` names a library."""
    return f"{name} {installed_version(name)}"
