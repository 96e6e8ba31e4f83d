"""Tables of a report, from tidy rows and a layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from privasr_k2.recipe.systems import Fact
from privasr_k2.report.layout import FACTS, OWN, Column, Layout, TableLayout, fits, with_units
from privasr_k2.report.measures import METRICS, NOTHING, gap_closed, interval_text, p_text, text_of
from privasr_k2.report.notes import is_few
from privasr_k2.report.results import (
    HOLDS,
    LEDGER,
    OF_NAMES,
    RECIPE,
    Comparison,
    Row,
    comparisons_of,
)


class Place(NamedTuple):
    """What a figure of a system is of, as in :class:`privasr_k2.report.results.Row`."""

    part: str
    item: str = ""
    group: str = ""


class Cell(NamedTuple):
    """Cell of a table: its text and its sort key, which is a number, words, or nothing.

    ``kept``: it shows a dash because too few speakers can be drawn, so that its column stays.
    """

    text: str
    key: float | str | None = None
    kept: bool = False


_EMPTY = Cell(NOTHING)


@dataclass(frozen=True)
class Table:
    """Cells under headings.

    Attributes:
        title: above it.
        columns: headings, and whether their cells are words.
        rows: a cell for each column.
        notes: below it.
        detail: as in :class:`privasr_k2.report.layout.TableLayout`.
    """

    title: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    detail: int = 0


class Index:
    """Rows by system, to look figures up.

    Attributes:
        of_system: figures of each system, but for those of groups.
        of_groups: figures of groups.
        compared: comparisons, by system and part.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.of_system: dict[str, list[Row]] = {}
        self.of_groups: dict[str, list[Row]] = {}
        self.compared: dict[tuple[str, str], list[Row]] = {}
        self._found: dict[tuple[str, str, Place], dict[str, Row]] = {}
        for row in rows:
            if row.against:
                self.compared.setdefault((row.system, row.part), []).append(row)
            else:
                of_kind = self.of_groups if row.group else self.of_system
                of_kind.setdefault(row.system, []).append(row)
                key = (row.system, row.metric, _place(row))
                self._found.setdefault(key, {}).setdefault(row.kind, row)

    def find(
        self,
        system: str,
        metric: str,
        part: str,
        item: str = "",
        kinds: Sequence[str] = (),
        group: str = "",
    ) -> Row | None:
        """A figure of a part and item, of ``kinds`` first; what holds for all counts for each.

        A group has its own figures alone.
        """
        names = (metric, "per") if metric == "wer" else (metric,)
        further = () if group else (Place(part), Place("", item), Place(""))
        places = dict.fromkeys((Place(part, item, group), *further))
        for name in names:
            matches = [self._found.get((system, name, place), {}) for place in places]
            wanted = (rows[kind] for rows in matches for kind in kinds if kind in rows)
            others = (row for rows in matches for row in rows.values())
            row = next(wanted, None) or next(others, None)
            if row is not None:
                return row
        return None

    def comparison(self, row: Row, metric: str, part: str, against: str) -> Row | None:
        """The test of a metric against a system; ``against`` empty: against the first."""
        tests = [test for p in (part, "") for test in self.compared.get((row.system, p), ())]
        names = (metric, "per") if metric == "wer" else (metric,)
        for test in tests:
            if test.metric.rpartition("_")[0] in names and against in ("", test.against):
                return test
        return None


def _place(row: Row) -> Place:
    return Place(row.part, row.item, row.group)


def tables_of(
    layout: Layout, rows: Sequence[Row], seen: set[Comparison] | None = None
) -> list[Table]:
    """All tables that have rows: those of the layout, comparisons, and what the ledger holds.

    Args:
        seen: comparisons that stand elsewhere on the page; those of these tables are added.
    """
    index, seen = Index(rows), set() if seen is None else seen
    tables = [table for spec in layout.all_tables for table in _tables(spec, layout, index)]
    return [*tables, *comparison_tables(rows, index, seen), *_ledger_tables(rows, layout, index)]


def _tables(spec: TableLayout, layout: Layout, index: Index) -> Iterator[Table]:
    if spec.literal:
        titles = tuple(dict.fromkeys(name for row in spec.literal for name in row))
        rows = [[Cell(str(row.get(name, NOTHING))) for name in titles] for row in spec.literal]
        columns = tuple((name, n == 0) for n, name in enumerate(titles))
        yield Table(spec.title, columns, tuple(map(tuple, rows)), spec.notes)
        return
    shown = [
        (rows[0], place)
        for rows in (index.of_groups if spec.groups else index.of_system).values()
        if fits(rows[0], spec.where) and (spec.kinds or rows[0].method != RECIPE)
        for place in _places(rows, spec)
    ]
    values: list[Fact] = [None]
    if spec.split:
        values = list(dict.fromkeys(row.facts.get(spec.split) for row, _ in shown))
    for value in values:
        part = [pair for pair in shown if not spec.split or pair[0].facts.get(spec.split) == value]
        name = "" if value is None else f": {layout.fact_text(spec.split, value)}"
        table = _table(f"{spec.title}{name}", spec, layout, index, part)
        if table is not None:
            yield table


def _places(rows: Sequence[Row], spec: TableLayout) -> list[Place]:
    """Parts and items of its kinds; what holds for all parts has no row of its own beside parts."""
    kept = (row for row in rows if not spec.kinds or row.kind in spec.kinds)
    places = dict.fromkeys(_place(row) for row in kept if bool(row.item) == spec.items)
    return [place for place in places if place.part] or list(places)


def _table(
    title: str,
    spec: TableLayout,
    layout: Layout,
    index: Index,
    found: Sequence[tuple[Row, Place]],
) -> Table | None:
    cells, keys = (
        [[_cell(c, layout, index, row, place, spec.kinds) for c in columns] for row, place in found]
        for columns in (spec.columns, spec.sort)
    )
    ordered = sorted(zip(keys, cells), key=lambda pair: [*map(_order, pair[0])])
    cells = [row for _, row in ordered]
    measured = [n for n, column in enumerate(spec.columns) if column.name in METRICS]
    cells = [row for row in cells if not measured or any(row[n].text != NOTHING for n in measured)]
    places = range(len(spec.columns))
    used = [n for n in places if any(row[n].text != NOTHING or row[n].kept for row in cells)]
    if not cells:
        return None
    titles = [spec.columns[n].title for n in used]
    if any(row.metric == "per" for rows in index.of_system.values() for row in rows):
        titles = [title.replace("WER", "PER") for title in titles]
    words = (any(isinstance(row[n].key, str) for row in cells) for n in used)
    rows = tuple(tuple(row[n] for n in used) for row in cells)
    title, *notes = (with_units(text, (row for row, _ in found)) for text in (title, *spec.notes))
    return Table(title, tuple(zip(titles, words)), rows, tuple(notes), spec.detail)


def _order(cell: Cell) -> tuple[bool, bool, float, str]:
    """Numbers before words, nothing last."""
    is_number = isinstance(cell.key, (int, float))
    return cell.key is None, not is_number, float(cell.key) if is_number else 0.0, str(cell.key)  # type: ignore[arg-type]


def _cell(
    column: Column, layout: Layout, index: Index, row: Row, place: Place, kinds: Sequence[str]
) -> Cell:
    name = column.name
    if name.startswith(FACTS):
        fact = name.removeprefix(FACTS)
        value = row.facts.get(fact)
        return _EMPTY if value is None else Cell(layout.fact_text(fact, value), _number(value))
    if name in OWN:
        text = getattr(place if name in Place._fields else row, name)
        return Cell(text or NOTHING, text or None)
    if column.view == "published":
        figure = layout.published_for(row, name, column.data_set)
        return _EMPTY if figure is None else Cell(str(figure), _number(figure))
    if name in HOLDS and column.view == "value" and LEDGER not in kinds:
        value = getattr(row, name)
        return Cell(text_of(name, value), value or None)
    found = index.find(row.system, name, place.part, place.item, kinds, place.group)
    if found is None:
        return _EMPTY
    if column.view == "interval":
        return Cell(interval_text(name, found.low, found.high), found.low, is_few(found))
    if column.view == "value":
        return Cell(text_of(name, found.value), found.value)
    against = getattr(row, column.against) if column.against else ""
    test = None
    if not place.group and (against or not column.against):
        test = index.comparison(row, name, found.part, against)
    if column.view == "p":
        return _EMPTY if test is None else Cell(p_text(test.p_holm), test.p_holm, is_few(test))
    other = against or ("" if test is None else test.against)
    theirs = index.find(other, name, found.part, found.item, kinds, found.group) if other else None
    if column.view == "remains":
        exact = index.find(row.not_private, name, found.part, found.item, kinds, found.group)
        share = gap_closed(*(one and one.value for one in (theirs, found, exact)))
        return _EMPTY if share is None else Cell(f"{round(100 * share)}", share)
    change = change_of(found, theirs)
    return _EMPTY if change is None else Cell(f"{change:+.2f}", change)


def _number(value: Fact) -> float | str | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None if value is None else str(value)


def change_of(ours: Row, theirs: Row | None) -> float | None:
    """Relative change of a figure in per cent; ``None`` where there is none to compare with."""
    if theirs is None or theirs is ours or not theirs.value:
        return None
    if not isinstance(ours.value, (int, float)):
        return None
    return 100 * (ours.value / float(theirs.value) - 1)


_COMPARED = (
    *((title, True) for title in ("system", "against", "part", "figure")),
    *((title, False) for title in ("of it", "of the other", "difference", "interval")),
    *((title, False) for title in ("pairs", "p", "p (Holm)")),
)


def comparison_tables(rows: Sequence[Row], index: Index, seen: set[Comparison]) -> Iterator[Table]:
    """Every declared comparison that is not yet ``seen``, once; those of names a pair a row."""
    compared = []
    for key, row in comparisons_of(rows):
        if key not in seen:
            compared.append(row)
            seen.add(key)
    labels = {row.system: row.label for row in rows}
    lines = []
    for row in compared:
        if row.metric in OF_NAMES:
            continue
        metric = row.metric.rpartition("_")[0]
        pair = [index.find(name, metric, row.part, row.item) for name in (row.system, row.against)]
        values = [None if figure is None else figure.value for figure in pair]
        lines.append(
            (
                *_compared_systems(row, labels),
                Cell(METRICS[row.metric][0], row.metric),
                *(Cell(text_of(metric, value), value) for value in values),
                Cell(text_of(row.metric, row.value), row.value),
                Cell(interval_text(row.metric, row.low, row.high), row.low),
                Cell(f"{row.pairs:,}", row.pairs),
                Cell(p_text(row.p), row.p),
                Cell(p_text(row.p_holm), row.p_holm),
            )
        )
    note = (
        "p: two-sided; error rates by MAPSSWE, which takes segments as independent, whoever speaks"
        " them (rough below 50); perplexities by drawing groups again."
        " p (Holm) allows for all comparisons of this page, those of names apart."
    )
    if lines:
        yield Table("Comparisons", _COMPARED, tuple(lines), (note,))
    yield from _names_compared([row for row in compared if row.metric in OF_NAMES], labels)


def _compared_systems(row: Row, labels: Mapping[str, str]) -> Iterator[Cell]:
    yield Cell(row.label, row.label)
    yield Cell(labels.get(row.against, row.against), row.against)
    yield Cell(row.part or NOTHING, row.part)


def _names_compared(compared: Sequence[Row], labels: Mapping[str, str]) -> Iterator[Table]:
    """The comparisons of names: a row a pair and part, three columns a metric."""
    pairs: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in compared:
        pairs.setdefault((row.system, row.against, row.part), {})[row.metric] = row
    metrics = [name for name in OF_NAMES if any(name in of for of in pairs.values())]
    if not metrics:
        return
    titles = [("system", True), ("against", True), ("part", True)]
    for metric in metrics:
        titles += [(METRICS[metric][0], False), ("interval", False), ("p (Holm)", False)]
    lines = []
    for of_pair in pairs.values():
        cells = list(_compared_systems(next(iter(of_pair.values())), labels))
        for metric in metrics:
            row = of_pair.get(metric)
            if row is None:
                cells += [_EMPTY] * 3
                continue
            cells.append(Cell(text_of(metric, row.value), row.value))
            cells.append(Cell(interval_text(metric, row.low, row.high), row.low))
            cells.append(Cell(p_text(row.p_holm), row.p_holm))
        lines.append(tuple(cells))
    note = (
        "p: two-sided; error rates by MAPSSWE of the errors of these words alone; recall and false"
        " alarms by drawing speakers again. p (Holm) allows for all comparisons of names of this"
        " page."
    )
    yield Table("Comparisons of names", tuple(titles), tuple(lines), (note,), detail=2)


def _ledger_tables(rows: Sequence[Row], layout: Layout, index: Index) -> Iterator[Table]:
    names = (
        "epsilon unit person_epsilon person_units names_epsilon only_for_epsilon only_for"
        " epsilon_rdp epsilon_pld delta units releases"
    )
    figures = (Column(name, "value", "", METRICS[name][0]) for name in names.split())
    columns = (Column("item", "value", "", "data"), *figures)
    spec = TableLayout("", {"method": RECIPE}, (LEDGER,), True, columns, (), "", (), ())
    entries = [row for row in rows if row.kind == LEDGER]
    not_covered = dict.fromkeys(
        f"Not covered: {sentence}"
        for row in entries
        if row.metric == "not_covered"
        for sentence in str(row.value or "").split("\n")
        if sentence
    )
    places = [(entries[0], Place("", item)) for item in dict.fromkeys(row.item for row in entries)]
    table = _table("All that was spent", spec, layout, index, places) if places else None
    if table is not None:
        yield Table(table.title, table.columns, table.rows, tuple(not_covered))
