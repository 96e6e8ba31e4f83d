"""Notes that rows call for, below a report's own."""

from __future__ import annotations

from collections.abc import Iterable

from privasr_k2.report.results import Row
from privasr_k2.scoring.bootstrap import MIN_CLUSTERS


def is_few(row: Row) -> bool:
    """Whether a row has too few speakers or groups for an interval to be drawn."""
    return row.clusters is not None and row.clusters < MIN_CLUSTERS


def notes_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """Why a dash stands for intervals and p-values, where there are too few speakers or groups.

    Values of groups, such as those of children, do not count: their table says it.
    """
    few = [row for row in rows if not row.group and is_few(row)]
    if not few:
        return ()
    numbers = ", ".join(f"{number}" for number in sorted({row.clusters or 0 for row in few}))
    note = (
        f"A dash for an interval or p: fewer than {MIN_CLUSTERS} speakers or groups, here"
        f" {numbers}. Nothing is drawn from so few."
    )
    if any(row.against and row.p is not None for row in few):
        note += " The p of error rates is still MAPSSWE's, of segments, whoever speaks them."
    return (note,)
