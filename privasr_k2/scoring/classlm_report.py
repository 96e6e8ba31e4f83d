"""``RESULTS.md`` of recipe ``classlm``: the five tables of turan2022, all systems with their tests, and what
the figures show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.privacy.ledger import Entry
from privasr_k2.scoring.bootstrap import Interval
from privasr_k2.scoring.classlm_comparisons import (
    Pair,
    RecallTested,
    Tested,
    compare_rates,
    compare_recall,
    increase_difference,
)
from privasr_k2.scoring.classlm_findings import Measure, error_rates, findings
from privasr_k2.scoring.classlm_notes import EXACT_ROWS, notes
from privasr_k2.scoring.classlm_privacy import coverage_finding, privacy_blocks
from privasr_k2.scoring.classlm_published import FIGURES, TEXTS
from privasr_k2.scoring.classlm_results import (
    ADAPT,
    DIRECT,
    MIXED,
    ORIGINAL,
    SANITIZED,
    Measured,
    Perplexities,
    System,
    TextPart,
    in_order,
    setting_of,
)
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.entities import ALL, EntityCounts
from privasr_k2.scoring.report import NOTHING, interval_text, number, p_text, percent_name, table

_MODELS = {
    "M1": "M1 word n-gram",
    "M2": "M2 class n-gram",
    "M3": "M3 n-gram approximation of the LSTM",
    "M4": "M4 LSTM on the lists of M1",
}
_MIXTURES = {
    "M1_M2": "M1 + M2, one pass (root models mixed)",
    "M1_M2_exact": "M1 + M2, exactly, on its lists",
    "M1_M2_M3": "M1 + M2 + M3, one pass (root models mixed)",
    "M1_M2_M3_exact": "M1 + M2 + M3, exactly, on the lists of M1 + M2",
    "M1_M2_M4": "M1 + M2 + M4, exactly, on the lists of M1 + M2",
}
"""Rows of the run's own table 5; the paper says nothing of how it mixed."""
_TEXT_COLUMNS = (
    "part",
    "% of background",
    "minutes",
    "utterances",
    "spoken",
    "users",
    "unique words",
    "words",
)
_PUBLISHED = "As published (turan2022, table {}: AMI, headset microphones, LF-MMI TDNN):"


@dataclass(frozen=True)
class ClassLmReportOptions:
    """What the report cannot read from its inputs.

    Attributes:
        command: what the results were made with; empty: none is shown.
        acoustic_model: how it was trained: ``CTC``, ``LF-MMI``, ...
        tagger: what found the names that were sanitized: ``spacy``, ``gold``, ...
    """

    command: str
    acoustic_model: str
    tagger: str

    def __post_init__(self) -> None:
        for name in ("acoustic_model", "tagger"):
            if not getattr(self, name):
                raise ValueError(f"{name} must be said")


@dataclass(frozen=True)
class ClassLmInputs:
    """What is reported.

    Attributes:
        texts: rows of table 1.
        perplexities: on test.
        systems: error rates on test; empty where the corpus has no speech.
        choices: tables of what was chosen on dev, title -> rows.
        entries: of the privacy ledger, of all releases.
        entities: the JSON of ``report_entities``; empty: none.
        coverage: class -> counts of the words of test's names, of
            :func:`privasr_k2.text.name_coverage.name_coverage`; empty: none.
        corpus: what the results are on.
    """

    texts: Sequence[TextPart]
    perplexities: Perplexities
    systems: Mapping[System, Measured]
    choices: Mapping[str, Sequence[Mapping[str, str]]]
    entries: Sequence[Entry]
    entities: Mapping[str, Any]
    coverage: Mapping[str, Mapping[str, int]]
    corpus: CorpusInfo


def classlm_report(given: ClassLmInputs, options: ClassLmReportOptions) -> str:
    """The whole file. It holds no date and no path of a machine.

    Raises:
        DataError: systems that cannot be compared, or with an error rate and without a perplexity.
    """
    lacking = sorted(map(str, set(given.systems) - set(given.perplexities.ppl)))
    if lacking:
        raise DataError(
            "--in-perplexity", "every system of --in-scores", f"none of {', '.join(lacking)}",
            "compute the perplexity of its LM",
        )  # fmt: skip
    tests = compare_rates(given.systems)
    recall = compare_recall(given.systems)
    measures = [Measure("perplexity", given.perplexities.ppl, None)]
    if given.systems:
        measures.insert(0, error_rates(given.systems, tests))
    name = f"{given.corpus.name}, " if given.corpus.name else ""
    blocks = [f"# Results: {name}language models from sanitized text\n"]
    if given.corpus.synthetic and given.systems:
        blocks.append(
            f"**Synthetic speech.** The speech of `{given.corpus.name}` is made by a program: these error "
            "rates tell the language models apart; they do not show how well people are recognized.\n"
        )
    if not given.systems:
        blocks.append("**No speech.** Nothing was decoded: perplexities only, and no error rates.\n")
    if options.command:
        blocks.append(f"Made by\n\n```bash\n{options.command}\n```\n")
    found = findings(measures, increase_difference(given.systems), recall, given.systems)
    found += coverage_finding(given.coverage)
    blocks.append("## What it shows\n\n" + "".join(f"- {finding}\n" for finding in found))
    blocks += _paper_tables(given, measures)
    blocks += _all_systems(given)
    blocks += _comparisons(given, tests, recall)
    if given.choices:
        blocks.append("## Chosen on dev\n")
        blocks += [f"{title}\n\n{table(rows)}" for title, rows in given.choices.items()]
    blocks += privacy_blocks(given.entries, given.entities, given.coverage)
    listed = notes(
        given.texts,
        given.perplexities,
        given.systems,
        given.corpus,
        tests,
        recall,
        acoustic_model=options.acoustic_model,
        tagger=options.tagger,
    )
    blocks.append("## How to read it\n\n" + "".join(f"- {note}\n" for note in listed))
    return "\n".join(blocks)


def _paper_tables(given: ClassLmInputs, measures: Sequence[Measure]) -> list[str]:
    """Tables 1 to 5, each with the published figures below."""
    known = in_order(given.perplexities.ppl)

    def own(system: System) -> list[str]:
        return [number(m.values[system]) if m.has(system) else NOTHING for m in measures]

    def published(system: System) -> list[str]:
        wer, ppl = FIGURES[system]
        return [f"{wer:.1f}", str(ppl)]

    columns = [f"{m.name} %" if m.p_values is not None else "PPL" for m in measures]
    adapted, direct = ([setting_of(kind, n) for n in _sizes(known, kind)] for kind in (ADAPT, DIRECT))
    plans = [
        (2, "Models trained on sanitized and on original text", [SANITIZED, ORIGINAL]),
        (3, "Models trained on sanitized text, adapted to a little original text", adapted),
        (4, "The same original text in training, beside the sanitized text", direct),
        (5, "Mixtures of adapted models", [MIXED]),
    ]
    blocks = [f"## Table 1: texts\n\n{table(_text_rows(given.texts))}"]
    blocks.append(f"{_PUBLISHED.format(1)}\n\n{table(TEXTS)}")
    for number_of, title, settings in plans:
        rows = _setting_rows(known, settings, columns, own, _MIXTURES)
        body = table(rows) if rows else "No such model.\n"
        if rows and MIXED in settings:
            body += f"\n{EXACT_ROWS}\n"
        blocks.append(f"## Table {number_of}: {title[0].lower()}{title[1:]}\n\n{body}")
        kinds = {setting.partition("_")[0] for setting in settings} or {ADAPT if number_of == 3 else DIRECT}
        theirs = [system for system in FIGURES if system.kind in kinds]
        theirs_of = list(dict.fromkeys(system.setting for system in theirs))
        rows = _setting_rows(theirs, theirs_of, ["WER %", "PPL"], published)
        blocks.append(f"{_PUBLISHED.format(number_of)}\n\n{table(rows)}")
    return blocks


def _sizes(systems: Iterable[System], kind: str) -> list[float]:
    return sorted({system.size for system in systems if system.kind == kind})


def _setting_rows(
    systems: Sequence[System],
    settings: Sequence[str],
    columns: Sequence[str],
    cells: Callable[[System], list[str]],
    labels: Mapping[str, str] | None = None,
) -> list[dict[str, str]]:
    """A row for each model, the columns of each setting beside each other; ``labels`` name mixtures."""
    names = dict.fromkeys(system.name for system in systems if system.setting in settings)
    rows = []
    for name in names:
        row = {"system": (labels or {}).get(name) or _model_name(name)}
        for setting in settings:
            if (system := System(setting, name)) in systems:
                titles = [_column(column, setting) for column in columns]
                row |= dict(zip(titles, cells(system), strict=True))
        rows.append(row)
    return _in_order(rows, ["system", *(_column(c, setting) for setting in settings for c in columns)])


def _in_order(rows: Sequence[Mapping[str, str]], order: Sequence[str]) -> list[dict[str, str]]:
    """The same rows with columns in this order, other ones behind; whatever no row has is left out."""
    every = dict.fromkeys([*order, *(column for row in rows for column in row)])
    columns = [column for column in every if any(column in row for row in rows)]
    return [{column: row.get(column, NOTHING) for column in columns} for row in rows]


def _model_name(name: str) -> str:
    model, _, equation = name.partition("_eq")
    if model in _MODELS:
        return _MODELS[model] + (f", equation {equation}" if equation else "")
    return name.replace("_", " + ")


def _column(title: str, setting: str) -> str:
    kind, _, size = setting.partition("_")
    return title if kind == MIXED else f"{title} ({f'{size} %' if size else kind})"


def _text_rows(texts: Sequence[TextPart]) -> list[dict[str, str]]:
    if not texts:
        raise DataError("--in-texts", "parts of a text", "none", "split the text again")
    return _in_order([_text_row(part) for part in texts], _TEXT_COLUMNS)


def _text_row(part: TextPart) -> dict[str, str]:
    cells = {"part": part.name}
    if part.percent is not None:
        cells["% of background"] = f"{part.percent:.2f}"
    if part.minutes is not None:
        cells |= {"minutes": f"{part.minutes:,.0f}", "spoken": f"{part.spoken:,}"}
    cells |= {"utterances": f"{part.utterances:,}", "users": f"{part.users:,}"}
    cells |= {"unique words": f"{part.unique_words:,}", "words": f"{part.words:,}"}
    names = sorted(part.names.items())
    return cells | {f"{label} (different)": f"{all_of:,} ({unique:,})" for label, (all_of, unique) in names}


def _all_systems(given: ClassLmInputs) -> list[str]:
    """A row for each system, and one for each class of entities."""
    rows, of_classes = [], []
    for system in in_order(given.perplexities.ppl):
        row = {"system": str(system)}
        if system in given.systems:
            measured = given.systems[system]
            result, score = measured.result, measured.score
            interval = f"{percent_name(score)} interval"
            row[f"{score.rate_name} %"] = number(result.counts.percent)
            row[interval] = interval_text(result.interval)
            row["no path"] = f"{len(result.no_path):,}"
            if result.entities is not None:
                found, together = result.entities, result.entities.together
                if together is not None:
                    row |= _rates(together, found.intervals.get(ALL), f"names, {interval}", "names, ")
                of_classes += [
                    {
                        "system": str(system),
                        "class": label,
                        "words": f"{counts.ref_words:,}",
                        **_rates(counts, found.intervals.get(label), interval),
                    }
                    for label, counts in found.classes.items()
                ]
        row["PPL"] = number(given.perplexities.ppl[system])
        row["PPL with OOV"] = number(given.perplexities.with_oov[system])
        rows.append(row)
    blocks = [f"## All systems, on test\n\n{table(rows)}"]
    if of_classes:
        blocks.append(f"Words inside names, class by class:\n\n{table(of_classes)}")
    return blocks


def _rates(counts: EntityCounts, interval: Interval | None, column: str, prefix: str = "") -> dict[str, str]:
    return {
        f"{prefix}recall %": number(None if counts.recall is None else 100 * counts.recall),
        column: interval_text(interval),
        f"{prefix}precision %": number(None if counts.precision is None else 100 * counts.precision),
    }


def _comparisons(
    given: ClassLmInputs, tests: Mapping[Pair, Tested], recall: Mapping[Pair, RecallTested]
) -> list[str]:
    if not tests:
        return []
    score = next(iter(given.systems.values())).score
    interval = f"{percent_name(score)} interval"
    rows = [
        {
            "system": str(first),
            "against": str(second),
            f"{score.rate_name} difference": NOTHING
            if tested.difference is None
            else f"{100 * tested.difference:+.2f}",
            interval: interval_text(tested.interval),
            "p": p_text(tested.test.p_value),
            "p (Holm)": p_text(tested.adjusted_p),
        }
        for (first, second), tested in tests.items()
    ]
    blocks = [f"## Comparisons\n\n{table(rows)}"]
    if recall:
        rows = [
            {
                "system": str(first),
                "against": str(second),
                "recall difference": f"{100 * tested.found.value:+.2f}",
                interval: interval_text(tested.found.interval),
                "p": p_text(tested.found.p_value),
                "p (Holm)": p_text(tested.adjusted_p),
            }
            for (first, second), tested in recall.items()
        ]
        blocks.append(f"Recall of the words of names:\n\n{table(rows)}")
    return blocks
