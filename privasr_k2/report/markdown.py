"""Tables and reports as Markdown: ``RESULTS.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from privasr_k2.report.layout import Layout
from privasr_k2.report.measures import NOTHING
from privasr_k2.report.notes import notes_of
from privasr_k2.report.results import Row
from privasr_k2.report.tables import Cell, Table, tables_of


def markdown_table(table: Table, most: int) -> str:
    """A Markdown table whose columns are aligned as plain text too, with at most so many rows.

    >>> rows = (Cell("dev"), Cell("3.1")), (Cell("test"), Cell("12.5"))
    >>> made = Table("", (("part", True), ("WER", False)), rows)
    >>> print(markdown_table(made, 1), end="")
    | part | WER |
    |:-----|----:|
    | dev  | 3.1 |
    <BLANKLINE>
    1 more row in `results.jsonl`.
    """
    titles = [title for title, _ in table.columns]
    words = [is_words for _, is_words in table.columns]
    cells = [[cell.text.replace("|", "\\|") for cell in row] for row in table.rows[:most]]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]

    def line(texts: Sequence[str]) -> str:
        columns = zip(texts, widths, words, strict=True)
        padded = (t.ljust(w) if left else t.rjust(w) for t, w, left in columns)
        return "| " + " | ".join(padded) + " |\n"

    dashes = ("-" * (width + 1) for width in widths)
    rules = (f":{dash}" if left else f"{dash}:" for dash, left in zip(dashes, words))
    more = len(table.rows) - most
    left_out = f"\n{more:,} more row{'s' * (more > 1)} in `results.jsonl`.\n" if more > 0 else ""
    return line(titles) + "|" + "|".join(rules) + "|\n" + "".join(map(line, cells)) + left_out


def plain_table(rows: Sequence[Mapping[str, str]]) -> str:
    """A Markdown table of rows that map columns to words; a cell that a row lacks shows a dash."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = tuple(tuple(Cell(row.get(name, NOTHING)) for name in names) for row in rows)
    return markdown_table(Table("", tuple((name, True) for name in names), cells), len(rows))


def report_text(
    layout: Layout,
    rows: Sequence[Row],
    heading: Sequence[str],
    figures: Mapping[str, str],
) -> str:
    """``RESULTS.md``: at most ``layout.max_lines`` lines. Where there are more, details are cut
    first, then the longest tables.

    Args:
        heading: paragraphs on the corpus.
        figures: title -> path of a figure, relative to the file.
    """
    tables = tables_of(layout, rows)
    text = ""
    for most in _cuts(tables):
        text = _text(layout, rows, heading, figures, tables, most)
        if text.count("\n") <= layout.max_lines:
            break
    return text


def _cuts(tables: Sequence[Table]) -> Iterator[tuple[int, int, int]]:
    """Most rows of tables by their ``detail``: less and less."""
    plain, names, details = (
        max((len(table.rows) for table in tables if table.detail == of), default=1)
        for of in range(3)
    )
    yield from ((plain, names, most) for most in range(details, -1, -1))
    yield from ((plain, most, 0) for most in range(names - 1, -1, -1))
    yield from ((most, 0, 0) for most in range(plain - 1, 0, -1))


def _text(
    layout: Layout,
    rows: Sequence[Row],
    heading: Sequence[str],
    figures: Mapping[str, str],
    tables: Sequence[Table],
    most: tuple[int, int, int],
) -> str:
    corpus = rows[0].corpus
    blocks = [f"# {layout.title}{': ' if corpus else ''}{corpus}\n", *heading]
    if layout.command:
        blocks.append(f"```bash\n{layout.command}\n```\n")
    for table in tables:
        if not most[table.detail]:
            continue
        blocks.append(f"## {table.title}\n\n{markdown_table(table, most[table.detail])}")
        if table.notes:
            blocks.append("".join(f"- {note}\n" for note in table.notes))
    if left_out := [table for table in tables if not most[table.detail]]:
        told = ", ".join(f"{table.title} ({len(table.rows):,} rows)" for table in left_out)
        blocks.append(f"In `results.jsonl` and on the page: {told}.\n")
    if figures:
        blocks.append(", ".join(f"[{title}]({path})" for title, path in figures.items()) + "\n")
    if notes := (*layout.notes, *notes_of(rows)):
        blocks.append("".join(f"- {note}\n" for note in notes))
    return "\n".join(blocks)
