"""``report.html``: the results of several recipes on one page that needs no other file."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader

from privasr_k2.privacy.spending import WHOLE
from privasr_k2.report.figures import EPSILON, Plot, Point, add_levels, plots_of, svg_of
from privasr_k2.report.layout import Layout, with_units
from privasr_k2.report.measures import NOTHING, gap_closed, interval_text, p_text, text_of
from privasr_k2.report.notes import notes_of
from privasr_k2.report.results import Row, with_holm
from privasr_k2.report.tables import Cell, Index, Table, tables_of

_TEMPLATES = Path(__file__).parent / "templates"
_WORDS = ("system", "protects", "for each", "data")
_COLUMNS = tuple(
    (title, title in _WORDS)
    for title in (
        *("system", "protects", "epsilon", "for each", "epsilon of a person", "public", "private"),
        *("not private", "gap closed %", "p (Holm)", "data"),
    )
)
_RATES = {"wer": "WER %", "per": "PER %", "ppl": "PPL"}
_NOTE = (
    "Epsilon: of one release, rounded up. That of a person covers all that one has contributed; it"
    " is infinite where nothing bounds it, or nobody knows how many units that is. Gap closed:"
    " (public - private) / (public - not private). p: private against public."
)


class Section(NamedTuple):
    """One recipe on the page."""

    anchor: str
    title: str
    recipe: str
    corpus: str
    synthetic: bool
    command: str
    commits: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def page(recipes: Sequence[tuple[Layout, Sequence[Row]]], title: str = "Results") -> str:
    """The page as HTML, of the layout and the rows of each recipe.

    P-values are Holm's over all comparisons of the page, and each stands there once.
    """
    corrected = iter(with_holm([row for _, rows in recipes for row in rows]))
    together = [(layout, [next(corrected) for _ in rows]) for layout, rows in recipes]
    seen: set[tuple[str, ...]] = set()
    sections = [
        _section(number, layout, rows, seen) for number, (layout, rows) in enumerate(together, 1)
    ]
    indices = [(Index(rows), rows) for _, rows in together]
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html.jinja").render(
        title=title,
        headline=headline(indices),
        plots=[(plot.title, _data_of(plot)) for plot in headline_plots(indices)],
        sections=sections,
    )


def page_plots(recipes: Sequence[tuple[Layout, Sequence[Row]]]) -> list[tuple[str, Plot]]:
    """The page's error rates against epsilon: file names, of corpus and part, and plots."""
    plots = headline_plots([(Index(rows), rows) for _, rows in recipes])
    return [(f"{_word_of(plot.title)}.svg", plot) for plot in plots]


def _word_of(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


def _section(
    number: int, layout: Layout, rows: Sequence[Row], seen: set[tuple[str, ...]]
) -> Section:
    first = rows[0]
    return Section(
        anchor=f"{_word_of(f'{first.recipe} {first.corpus}')}-{number}",
        title=layout.title,
        recipe=first.recipe,
        corpus=first.corpus,
        synthetic=first.synthetic,
        command=first.command,
        commits=tuple(dict.fromkeys(row.commit for row in rows if row.commit)),
        tables=tuple(tables_of(layout, rows, seen)),
        figures=tuple((plot.title, _data_of(plot)) for _, plot in plots_of(layout, rows)),
        notes=(*layout.notes, *notes_of(rows)),
    )


def _headline_rows(index: Index) -> Iterator[tuple[Row, Row]]:
    """Headline systems, each with its error rates and its perplexities, else without a value."""
    for rows in index.of_system.values():
        if rows[0].headline:
            scores = (row for row in rows if row.kind == "score_test")
            rates = [row for row in scores if row.metric in ("wer", "per")]
            rates += [row for row in rows if row.metric == "ppl"]
            empty = dict.fromkeys(("kind", "part", "item"), "")
            empty |= {"metric": "wer", "value": None, "low": None, "high": None}
            yield from ((rows[0], rate) for rate in rates or [replace(rows[0], **empty)])


def headline(indices: Sequence[tuple[Index, Sequence[Row]]]) -> Table:
    """A row for each headline system and each part of the test set; recipes may share one."""
    rows: dict[tuple[str, ...], tuple[Cell, ...]] = {}
    for index, _ in indices:
        for row, rate in _headline_rows(index):
            place = (row.folder,) if row.folder else (row.recipe, row.system)
            key = (row.corpus, *place, rate.part, rate.metric)
            rows.setdefault(key, tuple(_headline(index, row, rate)))
    return Table("Privacy and accuracy", _COLUMNS, tuple(rows.values()), (_NOTE,))


def _headline(index: Index, row: Row, rate: Row) -> Iterator[Cell]:
    metric, where = rate.metric, f"{row.corpus}, {rate.part}" if rate.part else row.corpus
    names = (row.public, row.not_private)
    beside = [index.find(name, metric, rate.part, "", (rate.kind,)) for name in names]
    public, not_private = (None if figure is None else figure.value for figure in beside)
    test = index.comparison(row, metric, rate.part, row.public) if row.public else None
    for text in (row.label, row.protects):
        yield Cell(text or NOTHING, text)
    yield Cell(text_of("epsilon", row.epsilon), row.epsilon)
    delta = f", delta {row.delta:g}".replace("-", "\u2011") if row.delta else ""
    yield Cell(f"{row.unit}{delta}" or NOTHING, row.unit)
    yield Cell(f"{text_of('epsilon', row.person_epsilon)}{_of_person(index, row)}",
               row.person_epsilon)  # fmt: skip
    yield Cell(text_of(metric, public), public)
    ends = "" if rate.low is None else f" ({interval_text(metric, rate.low, rate.high)})"
    yield Cell(text_of(metric, rate.value) + ends, rate.value)
    yield Cell(text_of(metric, not_private), not_private)
    closed = gap_closed(public, rate.value, not_private)
    yield Cell(NOTHING if closed is None else f"{round(100 * closed)}", closed)
    p_holm = None if test is None else test.p_holm
    yield Cell(p_text(p_holm), p_holm)
    yield Cell(f"{where}, {_RATES[metric]}" if rate.kind else row.corpus, where)


def _of_person(index: Index, row: Row) -> str:
    """What a person's epsilon counts, where a person is more than a unit, or only names count."""
    names = index.find(row.system, "names_epsilon", "")
    if names is not None and isinstance(names.value, float) and math.isfinite(names.value):
        return f" (all names of one: {text_of('epsilon', names.value)})"
    if row.unit in WHOLE or row.person_units is None:
        return ""
    return f" (at most {row.person_units:,} {row.unit}s)"


def headline_plots(indices: Sequence[tuple[Index, Sequence[Row]]]) -> list[Plot]:
    """Error rate against epsilon, a panel a corpus, part and unit, a line a private method."""
    plots: dict[tuple[str, str], Plot] = {}
    for index, _ in indices:
        for rows in index.of_system.values():
            row = rows[0]
            if not row.protects or row.epsilon is None or not math.isfinite(row.epsilon):
                continue
            for y in rows:
                if y.kind != "score_test" or y.metric not in _RATES:
                    continue
                if not isinstance(y.value, float):
                    continue
                name = ", ".join(filter(None, (row.corpus, y.part, f"each {row.unit}")))
                axes = with_units(EPSILON, [row]), _RATES[y.metric]
                plot = plots.setdefault((name, y.metric), Plot(name, *axes))
                facts = (str(row.facts.get(name) or "") for name in ("model", "mechanism"))
                line = " ".join(filter(None, (row.method, *facts)))
                plot.lines.setdefault(line, []).append(Point(row.epsilon, y.value, y.low, y.high))
                add_levels(plot, index, row, y)
    for plot in plots.values():
        for points in plot.lines.values():
            points.sort()
    return [plot for plot in plots.values() if plot.num_points > 1]


def _data_of(plot: Plot) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg_of(plot).encode()).decode()}"
