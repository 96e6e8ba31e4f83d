"""The table "Beside the papers": published figures and those of committed results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.report.layout import Layout
from privasr_k2.report.markdown import markdown_table
from privasr_k2.report.measures import NOTHING, interval_text, p_text, text_of, title_of
from privasr_k2.report.results import Row
from privasr_k2.report.tables import Cell, Index, Table, change_of

START, END = "<!-- beside the papers: made by report --out-beside -->", "<!-- end -->"
_METRICS, _KINDS = ("wer", "per", "ppl"), ("score_test", "perplexity", "run")
_COLUMNS = (
    *((title, True) for title in ("paper", "its data", "system", "corpus", "figure")),
    *((title, False) for title in ("there", "here", "interval", "change %", "p (Holm)", "epsilon")),
    ("unit", True),
    ("epsilon, person", False),
)


def beside_papers(results: Iterable[tuple[Layout, Sequence[Row]]]) -> str:
    """The block with its markers: a row for each published figure and each headline system."""
    rows = [row for layout, of in results for row in _rows(layout, of)]
    table = "No results are committed.\n"
    if rows:
        table = markdown_table(Table("", _COLUMNS, tuple(rows)), len(rows))
    return f"{START}\n\n{table}\n{END}\n"


def _rows(layout: Layout, rows: Sequence[Row]) -> Iterator[tuple[Cell, ...]]:
    index = Index(rows)
    for of_system in index.of_system.values():
        for row in of_system:
            if row.metric not in _METRICS or row.item or row.kind not in _KINDS:
                continue
            figures = {
                name: layout.published_for(row, row.metric, name)
                for name in layout.data_sets(row.metric)
            }
            there = {name: str(figure) for name, figure in figures.items() if figure is not None}
            if not there and not row.headline:
                continue
            test = index.comparison(row, row.metric, row.part, "")
            other = None if test is None else index.find(test.against, row.metric, row.part)
            relative = change_of(row, other)
            change = NOTHING if relative is None else f"{relative:+.2f}"
            where = f"{row.corpus}, {row.part}" if row.part else row.corpus
            here = (
                text_of(row.metric, row.value),
                interval_text(row.metric, row.low, row.high),
                change,
                NOTHING if test is None else p_text(test.p_holm),
                text_of("epsilon", row.epsilon),
                row.unit or NOTHING,
                text_of("person_epsilon", row.person_epsilon),
            )
            for data, figure in (there or {NOTHING: NOTHING}).items():
                names = layout.paper or NOTHING, data or NOTHING, row.label, where
                texts = (*names, title_of(row.metric), figure, *here)
                yield tuple(Cell(text) for text in texts)


def with_block(text: str, block: str, place: Path) -> str:
    """A page with the block between its markers replaced.

    Raises:
        DataError: a page without the markers.
    """
    before, start, rest = text.partition(f"{START}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not start or not end:
        expected = f"the lines {START} and {END}"
        raise DataError(place, expected, "none", "write both around the table")
    return before + block + after
