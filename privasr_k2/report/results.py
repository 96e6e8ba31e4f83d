"""Tidy results: a row for each figure and each comparison, as ``results.jsonl``.

``pandas.read_json("results.jsonl", lines=True)`` reads the file. Facts of a system are columns with
the prefix ``fact_``. An infinite number is the string ``inf``.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl, write_text
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import WHOLE
from privasr_k2.recipe.systems import Fact, System
from privasr_k2.report.kinds import (
    PRIVACY,
    is_privacy,
    owners_measures,
    plain_kind,
    read,
    told_groups,
)
from privasr_k2.report.measures import Context, Measure, Reading
from privasr_k2.report.readers.privacy import joint, ledger_measures
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.holm import holm

#: Methods: of public data alone; and what is no system, but told of the recipe as a whole.
PUBLIC, RECIPE = "public", "recipe"
LEDGER = "ledger"
#: Stands for the unit in what systems protect, and in titles.
UNIT = "{unit}"
_FACT = "fact_"
_NUMBERS = ("value", "low", "high", "p", "p_holm", "epsilon", "person_epsilon", "delta")
#: What holds for a system, as :func:`privasr_k2.report.readers.privacy.privacy` calls it.
HOLDS = ("epsilon", "unit", "person_epsilon", "person_units", "delta", "sampling", "accountant")
#: Metrics of comparisons of names. Holm counts them apart, as they answer another question.
OF_NAMES = tuple(
    f"{name}_difference" for name in ("name_wer", "other_wer", "recall", "false_alarm_rate")
)
#: Kinds of artifacts that are tested: weights were chosen on dev.
_TEST_KINDS = ("score_test", "perplexity", "run")


@dataclass(frozen=True)
class Row:
    """One figure, or, with ``against``, one comparison of two systems.

    Attributes:
        recipe, corpus, synthetic: where it is from; whether a machine speaks.
        system: its name. ``label``, ``method``, ``folder``, ``facts``, ``protects``, ``headline``,
            ``public`` and ``not_private`` are those of :class:`privasr_k2.recipe.systems.System`.
        kind: of the artifact.
        part, item, metric, value, low, high, group: of
            :class:`privasr_k2.report.measures.Measure`.
        against: the other system of a comparison; empty: a figure.
        p, p_holm: of the comparison: as tested, and by Holm over all comparisons of the page, those
            of names apart.
        pairs: segments, groups or speakers of the test.
        clusters: speakers or groups that the interval is drawn from; ``None``: it is not drawn, or
            an older version wrote the row.
        epsilon, unit, person_epsilon, person_units, delta, sampling, accountant: what holds for
            the system. Both epsilons are ``None`` for public data. That of a person is infinite
            where it is not known how many units one is; one of ``person_units`` at most.
        command: that made it.
        commit: version and commit of the code that wrote the artifact.
    """

    recipe: str
    corpus: str
    synthetic: bool
    system: str
    label: str
    method: str
    folder: str
    protects: str
    headline: bool
    public: str
    not_private: str
    kind: str
    part: str
    item: str
    metric: str
    value: float | str | None
    low: float | None = None
    high: float | None = None
    group: str = ""
    against: str = ""
    p: float | None = None
    p_holm: float | None = None
    pairs: int | None = None
    clusters: int | None = None
    epsilon: float | None = None
    unit: str = ""
    person_epsilon: float | None = None
    person_units: int | None = None
    delta: float | None = None
    sampling: str = ""
    accountant: str = ""
    command: str = ""
    commit: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values; words stand in ``text``, numbers in ``value``."""
        names = (field.name for field in dataclasses.fields(self))
        record = {name: getattr(self, name) for name in names if name != "facts"}
        words = isinstance(self.value, str)
        record |= {"value": None if words else self.value, "text": self.value if words else ""}
        record = {key: _finite(value) for key, value in record.items()}
        return record | {f"{_FACT}{name}": value for name, value in self.facts.items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Row:
        """Read the values of :meth:`to_json`; earlier ones say nothing of units of a person."""
        facts = {k.removeprefix(_FACT): v for k, v in values.items() if k.startswith(_FACT)}
        own = {k: v for k, v in values.items() if not k.startswith(_FACT)}
        text = own.pop("text")
        for name in _NUMBERS:
            own[name] = None if own[name] is None else float(own[name])
        if own["epsilon"] is not None and own["person_epsilon"] is None:
            own["person_epsilon"] = own["epsilon"] if own["unit"] in WHOLE else math.inf
        return cls(**{**own, "value": text or own["value"]}, facts=facts)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


@dataclass(frozen=True)
class Origin:
    """Facts that all rows of a recipe share.

    Attributes:
        recipe: its name.
        command: that made the results.
        corpus: what they are on.
        commit_of: path of an artifact -> version and commit of the code that wrote it.
        ledger: of the corpus's private data, or ``None``.
    """

    recipe: str
    command: str
    corpus: CorpusInfo
    commit_of: Callable[[str], str]
    ledger: Path | None


def collect(
    systems: Sequence[System],
    origin: Origin,
    context: Context,
    more: Mapping[str, Sequence[Measure]] | None = None,
) -> list[Row]:
    """Read all artifacts of all systems, test the declared pairs, and ask the ledger.

    Args:
        more: further figures of ``score_test`` by system.

    Raises:
        DataError: no system, a guarantee without its release, an artifact of another kind, or
            systems that were measured on other data.
    """
    if not systems:
        place = "systems.jsonl"
        raise DataError(place, "at least one system", "none", "declare the recipe's systems")
    for system in systems:
        claims = system.protects or any(map(is_privacy, system.artifacts))
        if claims and PRIVACY not in system.artifacts:
            expected = "the privacy.json of what it protects"
            raise DataError(f"system {system.name}", expected, "none", "declare privacy")
    readings = {system.name: _readings(system, context) for system in systems}
    rows = []
    for system in systems:
        of_system = readings[system.name]
        base = _base(system, origin, of_system.get(PRIVACY))
        for kind, reading in of_system.items():
            commit = origin.commit_of(system.artifacts[kind].partition("#")[0])
            further = (more or {}).get(system.name, ()) if kind == "score_test" else ()
            rows += [
                replace(base, kind=plain_kind(kind), commit=commit, **measure._asdict())
                for measure in (*reading.measures, *told_groups(further, context))
            ]
        for other in system.compare_with:
            pair = replace(base, against=other, commit=origin.commit_of(system.folder))
            rows += _compared(pair, of_system, readings[other], context.tests)
    entries = [e for of in readings.values() for reading in of.values() for e in reading.entries]
    return with_holm([*rows, *_ledger_rows(origin, entries)])


def _readings(system: System, context: Context) -> dict[str, Reading]:
    """What each artifact tells; several guarantees of one system are one."""
    found = {kind: read(kind, path, context) for kind, path in system.artifacts.items()}
    several = [kind for kind in found if is_privacy(kind)]
    if len(several) < 2:
        return found
    together = joint(found[kind] for kind in several)
    return {k: of for k, of in found.items() if k not in several} | {PRIVACY: together}


def owners_groups(systems: Iterable[System], corpus: CorpusInfo) -> tuple[str, ...]:
    """Groups that tell of train, where a guarantee is claimed for anybody in it."""
    return corpus.train_groups if any(system.protects for system in systems) else ()


def owners_rows(systems: Sequence[System], context: Context) -> list[dict[str, Any]]:
    """Exact figures of people for whom a guarantee is claimed: they are in no other results."""
    return [
        {"system": system.name, "kind": plain_kind(kind)}
        | {key: _finite(value) for key, value in measure._asdict().items()}
        for system in systems
        for kind, path in system.artifacts.items()
        for measure in owners_measures(kind, path, context)
    ]


def _base(system: System, origin: Origin, privacy: Reading | None) -> Row:
    facts: dict[str, Any] = {}
    if privacy is not None:
        facts = {m.metric: m.value for m in privacy.measures if not m.item}
    elif system.method not in (PUBLIC, RECIPE):
        facts = {"epsilon": math.inf, "person_epsilon": math.inf}
    declared = ("label", "method", "folder", "headline", "public", "not_private")
    return Row(
        recipe=origin.recipe,
        corpus=origin.corpus.name,
        synthetic=origin.corpus.synthetic,
        system=system.name,
        **{name: getattr(system, name) for name in (*declared, "facts")},
        protects=system.protects.replace(UNIT, str(facts.get("unit", "unit"))),
        **{name: facts[name] for name in HOLDS if name in facts},
        **dict.fromkeys(("kind", "part", "item", "metric"), ""),
        value=None,
        command=origin.command,
    )


def _compared(
    base: Row, ours: Mapping[str, Reading], theirs: Mapping[str, Reading], tests: Sequence[str]
) -> Iterator[Row]:
    for kind in _TEST_KINDS:
        if kind not in ours or kind not in theirs:
            continue
        for (part, metric), paired in ours[kind].pairs.items():
            other = theirs[kind].pairs.get((part, metric)) if metric in tests else None
            test = None if other is None else paired.against(other)
            if test is not None:
                values = test._asdict() | {"p": test.p_value}
                del values["p_value"]
                yield replace(base, kind=kind, part=part, **values)


def _ledger_rows(origin: Origin, entries: Iterable[Entry]) -> Iterator[Row]:
    measures: list[Measure] = ledger_measures(origin.ledger, entries)
    base = _base(System(LEDGER, "everything together", RECIPE, ""), origin, None)
    return (replace(base, kind=LEDGER, **measure._asdict()) for measure in measures)


Comparison = tuple[str, ...]


def comparisons_of(rows: Iterable[Row]) -> list[tuple[Comparison, Row]]:
    """The comparisons among rows, by corpus, folders, part and metric; recipes may share one."""
    rows = list(rows)
    folders = {(row.recipe, row.system): row.folder or row.system for row in rows}

    def key(row: Row) -> Comparison:
        other = folders.get((row.recipe, row.against), row.against)
        # Work folders may share names of corpora and folders; their outcomes differ.
        outcome = f"{row.value} {row.p}"
        return row.corpus, row.folder or row.system, other, row.part, row.metric, outcome

    return [(key(row), row) for row in rows if row.against]


def with_holm(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with Holm's p-values, of different comparisons among them.

    There are two families: comparisons of names (:data:`OF_NAMES`), and all others.
    """
    compared = comparisons_of(rows)
    adjusted: dict[Comparison, float | None] = {}
    for of_names in (True, False):
        family = {
            key: row.p for key, row in reversed(compared) if (row.metric in OF_NAMES) == of_names
        }
        adjusted |= zip(family, holm(list(family.values())), strict=True)
    keys = iter(key for key, _ in compared)
    return [replace(row, p_holm=adjusted[next(keys)]) if row.against else row for row in rows]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write one row a line."""
    write_text(path, "".join(json.dumps(row.to_json(), allow_nan=False) + "\n" for row in rows))


def read_rows(path: Path) -> list[Row]:
    """The rows of a ``results.jsonl``.

    Raises:
        DataError: a line that :func:`write_rows` does not write, or no line.
    """
    rows = []
    for number, values in enumerate(read_jsonl(path), start=1):
        try:
            rows.append(Row.from_json(values))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            place = f"{path}:{number}"
            raise DataError(place, "a row of report", repr(error), "report again") from error
    if not rows:
        raise DataError(path, "at least one row", "none", "report again")
    return rows
