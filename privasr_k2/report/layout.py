"""Layouts: which tables and figures a report has, one YAML file a paper in ``conf/reports``.

A column is written ``NAME [VIEW [AGAINST]]``:

    label, method, protects                 of the system
    part, item, group                       of the row
    facts.NAME                              a fact of the system
    METRIC                                  a key of :data:`privasr_k2.report.measures.METRICS`
    METRIC interval                         its interval
    METRIC change [public|not_private]      in per cent, against the first declared, or that one
    METRIC p [public|not_private]           p-value by Holm of that comparison
    METRIC remains public                   per cent of the gain of not_private over public
    METRIC published                        the paper's figures for the same facts, a column for
                                            each of its data sets

A mapping ``{COLUMN: TITLE}`` gives a column another title. ``{unit}`` in the title or a note of a
table or figure stands for the units that its rows protect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from privasr_k2.constraints import Checked, Count, Delta
from privasr_k2.errors import ConfigError
from privasr_k2.recipe.systems import Fact
from privasr_k2.report.measures import METRICS, title_of
from privasr_k2.report.results import UNIT, Row
from privasr_k2.scoring.bootstrap import MIN_CLUSTERS

OWN = {
    **{"label": "system", "part": "part", "item": "", "group": "group"},
    **{"method": "method", "protects": "protects"},
}
VIEWS = ("value", "interval", "change", "p", "published", "remains")
AGAINST = ("", "public", "not_private")
FACTS = "facts."
_BY_GROUP = {
    "title": "By group",
    "kinds": ["score_test"],
    "groups": True,
    "notes": [
        "A group's interval: its own speakers drawn with replacement; none below"
        f" {MIN_CLUSTERS} speakers."
    ],
}
#: Names in every report, where references have any.
_NAMES = {
    "title": "Words of names",
    "kinds": ["score_test"],
    "detail": 1,
    "columns": "entity_words, name_wer, name_wer interval, other_words, other_wer,"
    " other_wer interval, recall, recall interval, false_alarms, false_alarm_rate,"
    " false_alarm_rate interval, precision",
    "notes": [
        "An inserted word is one of a name between two words of names, or beside a wrong one.",
        "False alarms: wrong words that are names elsewhere; / 1,000: by 1,000 words said.",
        "Precision is an upper bound: wrong names that no reference at hand holds are no false"
        " alarms.",
    ],
}
_NAMES_BY_CLASS = {
    "title": "Words of names, by class",
    "kinds": ["score_test"],
    "items": True,
    "detail": 2,
    "columns": "entity_words, hits, name_wer, name_wer interval, recall, recall interval,"
    " false_alarms, false_alarm_rate, false_alarm_rate interval, precision",
}
_ROW_KEYS = ("method", "system", "headline", "kind")
Where = Mapping[str, Any]


class Column(NamedTuple):
    """A column of a table: what it shows, how, against which system, and its heading.

    ``data_set``: whose figure it is, of those that the paper has.
    """

    name: str
    view: str
    against: str
    title: str
    data_set: str = ""


@dataclass(frozen=True)
class TableLayout:
    """A table.

    Attributes:
        title: above it; :data:`UNIT` in it, and in notes, is filled in.
        where: fact, ``method`` or ``system`` -> the value that rows must have, or a list of values;
            ``null``: the system lacks the fact; ``any``: it has it.
        kinds: artifacts whose parts and items make its rows.
        items: whether its rows are items of parts, such as classes of names; else parts.
        groups: whether its rows are values of groups, such as children and adults.
        columns: see the module.
        sort: columns to sort by; empty: systems as declared.
        split: a fact: one table for each of its values.
        notes: below it.
        literal: rows as they are, such as those of a paper, in place of all but the title.
        detail: 0, or how soon ``RESULTS.md`` is cut there: 2 first of all, then 1. Pages fold 2.
    """

    title: str
    where: Where
    kinds: tuple[str, ...]
    items: bool
    columns: tuple[Column, ...]
    sort: tuple[Column, ...]
    split: str
    notes: tuple[str, ...]
    literal: tuple[Mapping[str, Any], ...]
    groups: bool = False
    detail: int = 0


@dataclass(frozen=True)
class FigureLayout:
    """A plot: a line for each method and each value of the facts ``by``.

    Attributes:
        name: of its file.
        title: what is shown; :data:`UNIT` in it is filled in.
        where: which systems.
        kinds: artifacts that have ``y``.
        x: a metric, ``facts.NAME``, or ``item``.
        y: a metric.
        by: facts whose values have lines of their own.
        levels: whether the public and not private systems are drawn as horizontal lines.
        projected: whether lines go on, dashed, to what the law of people says of further numbers.
    """

    name: str
    title: str
    where: Where
    kinds: tuple[str, ...]
    x: str
    y: str
    by: tuple[str, ...]
    levels: bool
    projected: bool = False


@dataclass(frozen=True)
class Layout(Checked):
    """A report, from ``conf/common.yaml#report`` and ``conf/reports/<paper>.yaml``.

    Attributes:
        recipe: its name.
        paper: whose figures are published beside its own, such as ``liu2021``; empty: none.
        title: of the report.
        command: that made the results.
        corpus: its name in tables; empty: that of ``corpus.json``.
        num_replicates, confidence, seed: of intervals of perplexities.
        phones, cmudict, g2p: whether words have a phone error rate; sources of pronunciations.
        tests: metrics by which declared pairs are compared, such as ``wer`` and ``name_wer``.
        facts: fact -> its title, or ``{title: ..., labels: {value: label}}``.
        tables, figures: with the attributes of :class:`TableLayout` and :class:`FigureLayout`.
        people: numbers of people for whom error rates are projected (``report.projection``).
        published: ``where``, and for each data set of the paper its figures by metric, from
            ``conf/published.yaml``; the first that fits counts. In layouts of older results the
            figures stand beside ``where``, of a data set without a name.
        as_published: tables of the paper, each with ``literal`` rows.
        notes: at the end.
        shared_by: other recipes that have this layout.
        max_lines: of ``RESULTS.md``; the longest tables are cut where there are more.
    """

    recipe: str
    paper: str
    title: str
    command: str
    corpus: str
    num_replicates: Count
    confidence: Delta
    seed: int
    phones: bool
    cmudict: str
    g2p: str
    tests: list[str]
    facts: dict[str, Any]
    tables: list[Any]
    figures: list[Any]
    people: list[int]
    published: list[Any]
    as_published: list[Any]
    notes: list[str]
    shared_by: list[str]
    max_lines: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.all_tables, self.all_figures

    @property
    def all_tables(self) -> list[TableLayout]:
        """Its tables, those of names, the paper's, and that by groups, checked.

        Names and groups are those of corpora that have any. Older layouts have a table of names of
        their own.

        Raises:
            ConfigError: an unknown key, column, metric or fact.
        """
        first = ["label", *([f"{FACTS}model"] if "model" in self.facts else []), "part"]
        counts = ("utterances", "words", "wer", "wer interval", "word_per", "word_per interval")
        columns = [*first, "group", {"item": "value"}, *counts, "speakers"]
        by_group = _BY_GROUP | {"columns": columns}
        names = []
        if all(table.get("title") != _NAMES["title"] for table in self.tables):
            of_class = [*first, {"item": "class"}]
            names = [_with_columns(_NAMES, first), _with_columns(_NAMES_BY_CLASS, of_class)]
        tables = (*self.tables, *names, *self.as_published, by_group)
        return [self._table(table) for table in tables]

    @property
    def all_figures(self) -> list[FigureLayout]:
        """Its figures, checked; errors as :attr:`all_tables`."""
        figures = []
        for figure in self.figures:
            keys = ("name", "title", "where", "kinds", "x", "y", "by", "levels", "projected")
            self._check_keys(figure, keys, f"figure {figure.get('name')}")
            for axis in ("x", "y"):
                if figure[axis] != "item":
                    self._column(figure[axis])
            lists = {key: tuple(figure.get(key, ())) for key in ("kinds", "by")}
            names, axes = (figure["name"], figure["title"]), {"x": figure["x"], "y": figure["y"]}
            switches = {
                "levels": bool(figure.get("levels", True)),
                "projected": bool(figure.get("projected", False)),
            }
            figures.append(
                FigureLayout(*names, figure.get("where", {}), **axes, **switches, **lists)
            )
        return figures

    def published_for(self, row: Row, metric: str, data_set: str) -> float | str | None:
        """The paper's figure of a system on one of its data sets."""
        for published in self.published:
            figures = _by_data_set(published).get(data_set, {})
            if metric in figures and fits(row, published["where"]):
                return figures[metric]
        return None

    def data_sets(self, metric: str) -> tuple[str, ...]:
        """The paper's data sets with published figures of a metric, in their order."""
        every = [item for published in self.published for item in _by_data_set(published).items()]
        return tuple(dict.fromkeys(name for name, figures in every if metric in figures))

    def fact_title(self, name: str) -> str:
        """The heading of a fact."""
        fact = self.facts[name]
        return str(fact["title"] if isinstance(fact, Mapping) else fact)

    def fact_text(self, name: str, value: Fact) -> str:
        """A fact's value as tables show it."""
        fact = self.facts.get(name)
        labels = fact.get("labels", {}) if isinstance(fact, Mapping) else {}
        if isinstance(value, float):
            return f"{value:g}"
        return str(labels.get(value, value))

    def _table(self, told: Mapping[str, Any]) -> TableLayout:
        of_rows = ("title", "where", "kinds", "items", "groups", "split", "literal", "detail")
        keys = (*of_rows, "columns", "sort", "notes")
        self._check_keys(told, keys, f"table {told.get('title')!r}")
        columns, sort = (
            tuple(each for column in told.get(key, ()) for each in self._columns(column))
            for key in ("columns", "sort")
        )
        if told.get("split") and told["split"] not in self.facts:
            self._wrong(f"split {told['split']}", "a name of facts")
        lists = {key: tuple(told.get(key, ())) for key in ("kinds", "notes", "literal")}
        lists |= {"columns": columns, "sort": sort}
        groups = told.get("groups", False)
        rows = {"items": groups or told.get("items", False), "groups": groups}
        rows["detail"] = told.get("detail", 0)
        where, split = told.get("where", {}), told.get("split", "")
        return TableLayout(told["title"], where, split=split, **rows, **lists)

    def _columns(self, told: Any) -> Iterator[Column]:
        """A column, or one for each data set of the paper."""
        column = self._column(told)
        data_sets = self.data_sets(column.name) if column.view == "published" else ()
        for name in data_sets:
            before, colon, behind = column.title.partition(": ")
            title = f"{before}, {name}{colon}{behind}" if name else column.title
            yield column._replace(title=title, data_set=name)
        if not data_sets:
            yield column

    def _column(self, told: Any) -> Column:
        text, title = next(iter(told.items())) if isinstance(told, Mapping) else (told, "")
        name, view, against = (*text.split(), "", "")[:3]
        view = view or "value"
        if name.startswith(FACTS):
            if name.removeprefix(FACTS) not in self.facts:
                self._wrong(text, f"a fact: {', '.join(self.facts)}")
            return Column(name, view, "", title or self.fact_title(name.removeprefix(FACTS)))
        if name in OWN:
            return Column(name, view, "", title or OWN[name])
        if name not in METRICS or view not in VIEWS or against not in AGAINST:
            self._wrong(text, "METRIC [interval|change|p|published|remains [public|not_private]]")
        if not title:
            title = title_of(name)
            beside = f" against {against.replace('_', ' ')}" if against else ""
            plain = title.removesuffix(" %")
            title = {
                "value": title,
                "interval": f"{plain} interval",
                "change": f"{plain} change{beside} %",
                "p": f"p{beside}",
                "published": f"published: {title}",
                "remains": f"{plain}: gain that remains %",
            }[view]
        return Column(name, view, against, title)

    def _check_keys(self, told: Mapping[str, Any], known: Iterable[str], place: str) -> None:
        unknown = sorted(set(told) - set(known))
        if unknown:
            self._wrong(f"{place}: {', '.join(unknown)}", f"keys of {', '.join(known)}")
        for text in (told.get("title", ""), *told.get("notes", ())):
            if {f"{{{name}}}" for name in re.findall(r"\{(.*?)\}", str(text))} - {UNIT}:
                self._wrong(f"{place}: {text}", f"{UNIT} as the only placeholder")

    def _wrong(self, found: str, expected: str) -> None:
        place = f"the layout of {self.recipe}"
        raise ConfigError(place, expected, found, "correct it in conf/reports")


def _with_columns(table: Mapping[str, Any], first: Iterable[Any]) -> dict[str, Any]:
    return {**table, "columns": [*first, *table["columns"].split(", ")]}


def _by_data_set(published: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Figures by metric, by data set; older layouts name none."""
    figures = {name: value for name, value in published.items() if name != "where"}
    named = {name: value for name, value in figures.items() if isinstance(value, Mapping)}
    bare = {name: value for name, value in figures.items() if name not in named}
    return {**named, "": bare} if bare else named


def with_units(text: str, rows: Iterable[Row]) -> str:
    """``text`` with the units that the systems of these rows protect: ``device or user``."""
    units = dict.fromkeys(row.unit for row in rows if row.unit)
    return text.replace(UNIT, " or ".join(units) or "unit")


def fits(row: Row, where: Where) -> bool:
    """Whether a row's system has these facts; an infinite epsilon is written ``inf``."""
    return all(_has(_value(row, name), wanted) for name, wanted in where.items())


def _value(row: Row, name: str) -> Fact:
    return getattr(row, name) if name in _ROW_KEYS else row.facts.get(name)


def _has(value: Fact, wanted: Any) -> bool:
    if wanted == "any":
        return value is not None
    return any(_equal(value, each) for each in (wanted if isinstance(wanted, list) else [wanted]))


def _equal(value: Fact, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool) or value is None or wanted is None:
        return value is wanted
    return value == wanted or str(value) == str(wanted)
