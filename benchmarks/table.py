"""One Markdown table of the rows of benchmarks: called by benchmarks/run.sh.

    . ./path.sh; python benchmarks/table.py --in-rows FILE --out-table FILE

Above the table stand the machine, the date, the versions and the commit; below it, what was left
out and the rows in which the peer is ahead. docs/benchmarks.md tells what each row compares.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.rows import Row, flags, read_rows
from privasr_k2.environment import code_version, installed_version
from privasr_k2.fileio import write_text

COLUMNS = ("what", "ours", "peer", "ratio", "against", "command")


def machine() -> str:
    """CPU model, cores that this process may use, and memory."""
    listed = Path("/proc/cpuinfo")
    text = listed.read_text(encoding="utf-8") if listed.exists() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    name = model[1] if model else platform.machine()
    return f"{name}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB memory"


def versions() -> str:
    """Of Python and of what does the work."""
    packages = [f"{name} {installed_version(name) or 'none'}" for name in ("torch", "k2", "numpy")]
    return ", ".join([f"Python {platform.python_version()}", *packages])


def figure(value: float) -> str:
    """Three digits, or all those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cells(row: Row) -> tuple[str, ...]:
    """A row's cells; the ratio is bold where the peer is ahead."""
    ratio = figure(row.ratio)
    return (
        row.what,
        f"{figure(row.ours)} {row.unit}",
        f"{figure(row.peer)} {row.unit}",
        f"**{ratio}**" if row.ratio < 1 else ratio,
        row.against,
        f"`{row.command}`",
    )


def line(words: Sequence[str]) -> str:
    """One line of a Markdown table."""
    return "| " + " | ".join(word.replace("|", "\\|") for word in words) + " |"


def table(rows: Sequence[Row], head: Sequence[str], left_out: Sequence[str], quick: bool) -> str:
    """The page: ``head`` as a list, the table, what was left out, the rows in which the peer is
    ahead.
    """
    parts = ["# Benchmarks"]
    if quick:
        parts.append(
            "**No measurement**: made with `--quick true`, whose sizes show only that all"
            " benchmarks run. None of these figures says anything."
        )
    parts.append("\n".join(f"- {entry}" for entry in head))
    parts.append(
        "Ratio: how many times as good ours is as the peer: peer / ours for time and memory, ours /"
        " peer for speed. Bold: below 1, the peer is ahead."
    )
    ruled = ["---:" if name == "ratio" else "---" for name in COLUMNS]
    parts.append("\n".join([line(COLUMNS), line(ruled), *(line(cells(row)) for row in rows)]))
    if left_out:
        parts.append("\n".join(["Not in this table:", "", *(f"- {entry}" for entry in left_out)]))
    behind = [
        f"- {row.what}, against {row.against}: {figure(row.ratio)}" for row in rows if row.ratio < 1
    ]
    if behind:
        told = "The peer is ahead in these rows; docs/benchmarks.md says why, and what is planned:"
        parts.append("\n".join([told, "", *behind]))
    else:
        parts.append("The peer is ahead in no row.")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Read rows, write the table."""
    parser = flags(__doc__, rows=False)
    parser.add_argument("--in-rows", type=Path, required=True)
    parser.add_argument("--out-table", type=Path, required=True)
    parser.add_argument(
        "--quick", choices=("true", "false"), default="false", help="these are no measurements"
    )
    parser.add_argument("--load", default="unknown", help="average load before the first benchmark")
    parser.add_argument(
        "--left-out", nargs="*", default=[], metavar="REASON", help="what is missing, and why"
    )
    args = parser.parse_args()
    head = (
        (
            f"machine: {machine()}; threads: {os.environ.get('OMP_NUM_THREADS', 'not limited')}; "
            f"load before the first benchmark: {args.load}"
        ),
        f"date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"versions: {versions()}",
        f"privasr_k2: {code_version()}",
    )
    write_text(
        args.out_table, table(read_rows(args.in_rows), head, args.left_out, args.quick == "true")
    )


if __name__ == "__main__":
    main()
