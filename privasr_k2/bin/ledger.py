r"""Show a ledger and the guarantees that hold, or restore a ledger that was lost.

    privasr ledger --ledger egs/mini/privacy/ledger.json
    privasr ledger --in-path egs/mini/exp/pate_rnnt/student
    privasr ledger restore --in-path egs/mini
    privasr ledger declare --reason "test data, made again" --in-path egs/mini

Without an action, or with show: first come the totals over all releases about the same people, for
a whole person and for the finest unit. Then come the guarantees by data and unit. A smaller epsilon
is the stronger guarantee. --in-path names a privacy.json, or anything that a recipe has made. Then
only what concerns its people is shown, and its lineage: which stages spent, and which read the
corpus without a release. The ledger is that of the work folder, privacy/ledger.json, if --ledger
does not name another. --out-table writes the guarantees as a table for RESULTS.md.

restore enters the releases that the ledger lacks, from its second copy and from every privacy.json
of the work folder. declare records, with your reason, that they are lost: they are never counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, DataError, PrivacyError
from privasr_k2.fileio import write_text
from privasr_k2.privacy.keys import seal_of
from privasr_k2.privacy.ledger import (
    Declaration,
    Entry,
    Ledger,
    entries_beside,
    locked,
    lost_entries,
)
from privasr_k2.privacy.lineage import Lineage, lineage, work_dir_of
from privasr_k2.privacy.safekeeping import Copies, declare, restore
from privasr_k2.privacy.spending import Guarantee, guarantees_for, shown
from privasr_k2.privacy.totals import Spent, are_related, ledger_totals, spent_of
from privasr_k2.report.markdown import plain_table

_MAX_SECONDS = 60.0


def main() -> None:
    """Parse; show, restore or declare."""
    parser = cli.parser(
        __doc__,
        in_path="[PATH] a work folder, a privacy.json, or anything that a recipe made",
        ledger="[FILE] the ledger of the corpus's private data",
        ledger_copy="[DIR] its second copy (default: WORK_DIR.ledger)",
        delta="[X] of the guarantees; without it: the smallest that was planned",
        out_table="[FILE] Markdown",
    )
    parser.add_argument("action", nargs="?", choices=list(_ACTIONS), default="show")
    parser.add_argument("--reason", metavar="TEXT", help="declare: why releases are lost")
    args = cli.parse(parser, config=False)
    if (args.action == "declare") != bool(args.reason):
        expected = "--reason TEXT with declare, and with nothing else"
        raise ConfigError("the command line", expected, f"{args.action}", "see --help")
    if args.in_path is None and args.ledger is None:
        args.in_path = _here()
    _ACTIONS[args.action](args)


def _here() -> Path:
    """The work folder that the process is in."""
    try:
        return work_dir_of(Path.cwd())
    except DataError as error:
        expected = "--in-path or --ledger, or a work folder to be in"
        raise ConfigError("the command line", expected, "neither", "name one") from error


def _ledger_of(args: argparse.Namespace) -> Path:
    return args.ledger or work_dir_of(args.in_path) / "privacy" / "ledger.json"


def _copies(args: argparse.Namespace) -> Copies:
    ledger = _ledger_of(args).resolve()
    copies = Copies.of(ledger, args.in_path or ledger, args.ledger_copy)
    if not ledger.exists() and next(copies.entries(), None) is None:
        way_out = "name its copies: --ledger-copy DIR, or --in-path WORK_DIR"
        raise PrivacyError(ledger, "a ledger, or a copy of its releases", "neither", way_out)
    return copies


def _restore(args: argparse.Namespace) -> None:
    copies = _copies(args)
    with locked(copies.ledger, max_seconds=_MAX_SECONDS):
        restored = restore(copies)
    print(f"{copies.ledger}: {restored} releases restored")


def _declare(args: argparse.Namespace) -> None:
    copies = _copies(args)
    with locked(copies.ledger, max_seconds=_MAX_SECONDS):
        declared = declare(copies, args.reason)
    print(f"{copies.ledger}: {declared} releases declared lost; no total counts them")


def _show(args: argparse.Namespace) -> None:
    origin, releases = _origin(args.in_path)
    path = _ledger_of(args)
    seal = seal_of(path)
    book, declared = Ledger(path, seal).read()
    notes = []
    if not path.exists() and not releases:
        way_out = "name the ledger: --ledger FILE; a recipe writes it with its first release"
        raise PrivacyError(path, "a ledger", "nothing", way_out)
    if not path.exists():
        notes.append(
            f"There is no ledger {path}: other releases of the same data are NOT in these figures."
        )
        book = tuple(releases)
    elif seal is None:
        notes.append(
            f"{path} has no key beside it: releases at its end may be MISSING from these figures."
        )
    if lost := lost_entries(book, releases):
        expected = f"release {lost[0].release} of {args.in_path}"
        way_out = "name the ledger that it was entered in: --ledger FILE; or privasr ledger restore"
        raise PrivacyError(path, expected, "a ledger without it", way_out)
    spent = _with_people(path, book, notes)
    own = {entry.release for entry in (book if origin is None else releases)}
    concerned = [s for s in spent.values()
                 if any(are_related(s, spent[release]) for release in own)]  # fmt: skip
    totals = [*_total_lines(concerned, args.delta)]
    data = {spent[release].spending.data for release in own}
    held = guarantees_for(data, (entry.spending for entry in book), delta=args.delta)
    print("\n".join([*notes, *_lines(totals, declared, held, origin)]))
    if args.out_table is not None:
        write_text(args.out_table, plain_table([g.row() for g in held]))


_ACTIONS = {"show": _show, "restore": _restore, "declare": _declare}


def _origin(path: Path | None) -> tuple[Lineage | None, tuple[Entry, ...]]:
    """Return the stages behind a path, and the releases among them; a work folder has none."""
    if path is None or _is_work_folder(path):
        return None, ()
    if path.name == "privacy.json":
        return Lineage(spent={"this release": str(path)}), entries_beside(path)
    work_dir = work_dir_of(path)
    behind = lineage(path, work_dir)
    copies = dict.fromkeys(behind.spent.values())
    return behind, tuple(entry for copy in copies for entry in entries_beside(work_dir / copy))


def _is_work_folder(path: Path) -> bool:
    """Whether a path is a work folder itself."""
    return (path / ".stages" / "lock").exists()


def _with_people(path: Path, book: Sequence[Entry], notes: list[str]) -> dict[str, Spent]:
    """The entries by release; of a copy without its people, related by the names of their data."""
    if not path.with_name(f"{path.name}.people").exists():
        if any(entry.people is not None for entry in book):
            notes.append(f"{path}: the people behind releases are not known; names of data relate.")
        return {entry.release: Spent(entry.spending, None) for entry in book}
    names = (entry.release for entry in book)
    return dict(zip(names, spent_of(path, book), strict=True))


def _total_lines(spent: Sequence[Spent], delta: float | None) -> Iterator[str]:
    for related in ledger_totals(spent, delta):
        for total in related.totals:
            many = "1 release" if total.releases == 1 else f"{total.releases} releases"
            names = "the names of " if related.names_alone else ""
            of = f"{names}each {total.level} of {', '.join(related.data)}"
            epsilon = f"epsilon {shown(total.epsilon.value)} at delta {total.epsilon.delta:g}"
            yield f"  {of}: {epsilon} ({total.relation.value}), {many} together"


def _lines(
    totals: Sequence[str],
    declared: Sequence[Declaration],
    held: Sequence[Guarantee],
    origin: Lineage | None,
) -> Iterator[str]:
    if origin is not None and not origin.is_covered:
        yield (
            "NO GUARANTEE holds for this file: not all that it was made from is covered (see"
            " below)."
            if origin.spent
            else "NOT PRIVATE: no release stands between this file and what it was made from."
        )
    if totals:
        yield "All releases about the same people:"
        yield from totals
    for declaration in declared:
        names = ", ".join(declaration.releases) or "none known by name"
        yield f"Declared lost {declaration.time}, NOT counted: {names} ({declaration.reason})"
    if not held:
        yield "No release was found."
    for guarantee in held:
        yield from guarantee.lines()
    if origin is not None:
        yield from origin.lines()


if __name__ == "__main__":
    cli.run(main)
