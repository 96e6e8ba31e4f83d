"""Print which guarantee holds: for a release, for what was made from releases, or for a ledger.

    privasr privacy --in-path egs/mini/exp/fmp/privacy.json
    privasr privacy --in-path egs/mini/exp/pate_rnnt/student
    privasr privacy --ledger egs/mini/privacy/ledger.json

The guarantee is that of *all* releases of the same private data, unit and relation that the ledger
holds: what was spent before is not forgotten. Below it stands the lineage of --in-path: which
stages spent, which only worked on what was released, and which read the corpus without a release
(then no guarantee holds). The ledger is that of the work folder, privacy/ledger.json, if --ledger
does not name another. --out-table writes the guarantees as a table for RESULTS.md. A smaller
epsilon is the stronger guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, PrivacyError
from privasr_k2.fileio import write_text
from privasr_k2.privacy.keys import seal_of
from privasr_k2.privacy.ledger import Entry, Ledger, copies_agree, entries_beside
from privasr_k2.privacy.lineage import Lineage, lineage, work_dir_of
from privasr_k2.privacy.spending import Guarantee, guarantees_for
from privasr_k2.report.tables import plain_table


def main() -> None:
    """Parse, read, print, write."""
    args = cli.arguments(
        __doc__,
        config=False,
        in_path="[PATH] a privacy.json, or anything that a recipe made",
        ledger="[FILE] the ledger of the corpus's private data",
        delta="[X] of the guarantees; without it: the smallest that was planned",
        out_table="[FILE] Markdown",
    )
    if args.in_path is None and args.ledger is None:
        raise ConfigError("the command line", "--in-path or --ledger", "neither", "name one")

    origin, releases = (None, ()) if args.in_path is None else _origin(args.in_path)
    path = args.ledger or work_dir_of(args.in_path) / "privacy" / "ledger.json"
    seal = seal_of(path)
    book = Ledger(path, seal).entries()
    notes = []
    if not path.exists() and not releases:
        raise PrivacyError(path, "a ledger", "nothing", "name the ledger: --ledger FILE")
    if not path.exists():
        notes.append(
            f"There is no ledger {path}: other releases of the same data are NOT in these figures."
        )
        book = tuple(releases)
    elif seal is None:
        notes.append(
            f"{path} has no key beside it: releases at its end may be MISSING from these figures."
        )
    lost = copies_agree(book, releases)
    if lost:
        expected = f"release {lost[0].release} of {args.in_path}"
        way_out = "name the ledger that it was entered in: --ledger FILE"
        raise PrivacyError(path, expected, "a ledger without it", way_out)
    spent_on = {entry.spending.data for entry in (releases if origin else book)}
    held = guarantees_for(spent_on, (entry.spending for entry in book), delta=args.delta)
    print("\n".join([*notes, *_lines(held, origin)]))
    if args.out_table is not None:
        write_text(args.out_table, plain_table([g.row() for g in held]))


def _origin(path: Path) -> tuple[Lineage, tuple[Entry, ...]]:
    """Return the stages behind a path, and the releases among them."""
    if path.name == "privacy.json":
        return Lineage(spent={"this release": str(path)}), entries_beside(path)
    work_dir = work_dir_of(path)
    behind = lineage(path, work_dir)
    copies = dict.fromkeys(behind.spent.values())
    return behind, tuple(entry for copy in copies for entry in entries_beside(work_dir / copy))


def _lines(found: Sequence[Guarantee], origin: Lineage | None) -> Iterator[str]:
    if origin is not None and not origin.is_covered:
        yield (
            "NO GUARANTEE holds for this file: not all that it was made from is covered (see"
            " below)."
        )
        yield "What its releases alone would guarantee:" if found else ""
    if not found:
        yield "No release was found."
    for guarantee in found:
        yield from guarantee.lines()
    if origin is not None:
        yield from origin.lines()


if __name__ == "__main__":
    cli.run(main)
