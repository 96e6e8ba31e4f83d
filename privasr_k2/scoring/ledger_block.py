"""What a report says of releases that stand in none of its tables: those that the ledger remembers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy.ledger import Ledger, copies_agree, entries_beside
from privasr_k2.privacy.release import seal_of
from privasr_k2.privacy.spending import guarantees_for, is_related
from privasr_k2.scoring.report import table


def ledger_block(ledger: Path | None, beside: Iterable[Path]) -> str:
    """Markdown: the guarantees for the data of a report's releases by everything that was spent on them.

    A table has the releases of one run with one choice of settings. Whoever forces a stage again, or tries
    another setting, and keeps the better result has released both.

    Args:
        ledger: of the corpus's private data; ``None``: nothing is said.
        beside: the ``privacy.json`` of each release in the report; none: nothing is said.

    Raises:
        PrivacyError: a release that the ledger lacks, or a ledger that cannot be trusted.
    """
    shown = {entry.release: entry for path in beside for entry in entries_beside(path)}
    if ledger is None or not shown:
        return ""
    book = Ledger(ledger, seal_of(ledger)).entries()
    lost = copies_agree(book, [*shown.values()])
    if lost:
        raise PrivacyError(
            ledger, f"release {lost[0].release}", "a ledger without it", "name its ledger: --ledger FILE"
        )
    data = {entry.spending.data for entry in shown.values()}
    concerned = [entry for entry in book if any(is_related(entry.spending.data, name) for name in data)]
    others = len(concerned) - len(shown)
    rows = [found.row() for found in guarantees_for(data, (entry.spending for entry in concerned))]
    told = (
        f"{others} of the {len(concerned)} stand in no table above, such as those of other settings or of "
        "runs that were made again. Whoever chose among them by their results has released them all."
        if others
        else "It holds none but those above."
    )
    return (
        "\n## All that was spent\n\nReleases of the same data, or of the same people by another name, in the "
        f"ledger `{ledger.name}` when this was written. {told}\n\n"
        + table([{key: cell for key, cell in row.items() if key != "sampling"} for row in rows])
    )
