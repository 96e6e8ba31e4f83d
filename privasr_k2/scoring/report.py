"""``RESULTS.md``: a table of error rates, and below it how it was made and how to read it.

Rows are mappings from column to text, so that a recipe adds columns of its own (epsilon, unit, delta, ...)
by adding keys: :func:`table` shows every column that some row has. Neither dates nor paths of a machine are
written: the same results give the same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import privasr_k2
from privasr_k2.errors import DataError
from privasr_k2.scoring.bootstrap import Interval
from privasr_k2.scoring.comparisons import check_same_references, holm
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.entities import ALL
from privasr_k2.scoring.matched_pairs import MatchedPairs, compare
from privasr_k2.scoring.results import PartScore, Score, read_scored_words

NOTHING = "–"
_TEXT_COLUMNS = (
    "system",
    "against",
    "part",
    "class",
    "weights",
    "chosen on",
    "LMs",
    "at the edge of the grid",
)
_LISTED = 5
_ENTITIES = (
    "Entities: recall is the share of their words that was recognized, precision the share of these among "
    "them and the false alarms: wrong words that references use inside such entities as a rule. Precision is "
    "an upper bound: wrong names that the references at hand do not hold are no false alarms."
)
ROUGH_BELOW = 50
"""Segments below which MAPSSWE's normal distribution is rough."""
# Percentile intervals cover less than they promise where few clusters are drawn again.
FEW_SPEAKERS = 10


@dataclass(frozen=True)
class ReportOptions:
    """What stands above the table.

    Attributes:
        command: what the results were made with, for readers to repeat; empty: none is shown.
    """

    command: str


@dataclass(frozen=True)
class Chosen:
    """A ``weights.json`` or ``rescoring.json`` as the report shows it; ``lms`` is empty in the former."""

    system: str
    role: str
    lm_weight: float
    insertion_penalty: float
    wer_percent: float | None
    edges: tuple[str, ...]
    lms: str = ""


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """A Markdown table whose columns are aligned as plain text too.

    Columns stand in the order in which the rows first name them; a cell that a row lacks shows a dash.

    >>> print(table([{"part": "dev", "WER": "3.1"}, {"part": "test", "WER": "12.5", "epsilon": "1"}]), end="")
    | part |  WER | epsilon |
    |:-----|-----:|--------:|
    | dev  |  3.1 |       – |
    | test | 12.5 |       1 |
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [[row.get(column, NOTHING).replace("|", "\\|") for column in columns] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(columns, *cells, strict=True)]
    left = [column in _TEXT_COLUMNS for column in columns]

    def line(texts: Sequence[str]) -> str:
        padded = (
            t.ljust(w) if is_left else t.rjust(w) for t, w, is_left in zip(texts, widths, left, strict=True)
        )
        return "| " + " | ".join(padded) + " |\n"

    rules = (
        f":{'-' * (w + 1)}" if is_left else f"{'-' * (w + 1)}:"
        for w, is_left in zip(widths, left, strict=True)
    )
    return line(columns) + "|" + "|".join(rules) + "|\n" + "".join(map(line, cells))


def result_row(score: Score, part: str) -> dict[str, str]:
    """The cells of one part of one system."""
    result = score.parts[part]
    counts = result.counts
    return {
        "system": score.system,
        "part": part,
        "utterances": f"{result.utterances:,}",
        "words": f"{counts.ref_words:,}",
        f"{score.rate_name} %": number(counts.percent),
        f"{percent_name(score)} interval": interval_text(result.interval),
        "ins": f"{counts.insertions:,}",
        "del": f"{counts.deletions:,}",
        "sub": f"{counts.substitutions:,}",
        f"speakers (lowest to highest {score.rate_name} %)": _speakers(result),
        "no path": f"{len(result.no_path):,}",
        "OOV %": NOTHING
        if result.oov is None or not result.ref_words
        else f"{100 * result.oov / result.ref_words:.2f}",
    }


def compare_scores(score: Score, baseline: Score, part: str) -> MatchedPairs:
    """MAPSSWE between two systems on one part.

    Raises:
        DataError: they were not scored on the same utterances with the same references.
    """
    ours, theirs = (read_scored_words(s.place).get(part, {}) for s in (score, baseline))
    check_same_references(score, ours, baseline, theirs, part)
    return compare(
        [ref for ref, _ in ours.values()],
        [hyp for _, hyp in ours.values()],
        [theirs[name][1] for name in ours],
    )


def entity_rows(score: Score, part: str) -> list[dict[str, str]]:
    """The cells of one part's entities, a row for each class and one for all together; none where nothing is
    annotated."""
    found = score.parts[part].entities
    if found is None:
        return []
    together = {} if found.together is None or len(found.classes) < 2 else {ALL: found.together}
    return [
        {
            "system": score.system,
            "part": part,
            "class": name,
            "words": f"{counts.ref_words:,}",
            "recognized": f"{counts.hits:,}",
            "false alarms": f"{counts.false_alarms:,}",
            "recall %": number(None if counts.recall is None else 100 * counts.recall),
            **(
                {f"{percent_name(score)} interval": interval_text(found.intervals[name])}
                if name in found.intervals
                else {}
            ),
            "precision %": number(None if counts.precision is None else 100 * counts.precision),
        }
        for name, counts in {**found.classes, **together}.items()
    ]


def versions() -> str:
    """What made the results, where it is installed.

    >>> versions().split(",")[0].startswith("privasr_k2 ")
    True
    """
    found = [f"privasr_k2 {privasr_k2.__version__}"]
    for package in ("torch", "k2", "lhotse"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def report(
    scores: Sequence[Score],
    chosen: Sequence[Chosen],
    baselines: Sequence[Score],
    corpus: CorpusInfo,
    options: ReportOptions,
) -> str:
    """The whole of ``RESULTS.md``.

    Args:
        scores: at least one, in the order of the table.
        chosen: the weights that were used.
        baselines: scores to compare with, each with the score of the same role; may be empty.
        corpus: what the results are on.
        options: the command.

    Raises:
        DataError: nothing to report, or a baseline that cannot be compared.
    """
    if not scores:
        raise DataError("--in-scores", "folders that score wrote", "none", "name at least one")
    rows: list[dict[str, str]] = []
    tests: list[tuple[dict[str, str], str, MatchedPairs]] = []
    notes: list[str] = []
    entities = [row for score in scores for part in score.parts for row in entity_rows(score, part)]
    for score in scores:
        for part in score.parts:
            row = result_row(score, part)
            for baseline in baselines:
                is_itself = baseline.place.resolve() == score.place.resolve()
                if baseline.role == score.role and part in baseline.parts and not is_itself:
                    test = compare_scores(score, baseline, part)
                    tests.append((row, f"p against {baseline.system}", test))
                    if rough(test):
                        notes.append(_comparison(score, baseline, part, test))
            rows.append(row)
            notes += _remarks(score, part)
    for (row, column, _), p_value in zip(tests, holm([test.p_value for *_, test in tests])):
        row[column] = p_text(p_value)
    blocks = [f"# {_title(scores, corpus)}\n", *corpus.heading]
    if options.command:
        blocks.append(f"Made by\n\n```bash\n{options.command}\n```\n")
    blocks.append(table(rows))
    if entities:
        blocks.append("Words inside entities:\n\n" + table(entities))
        notes.append(_ENTITIES)
    if chosen:
        blocks.append(
            "Chosen on dev, before the test parts were scored:\n\n" + table([chosen_row(c) for c in chosen])
        )
    if tests:
        many = f", corrected by Holm for the {len(tests)} comparisons of this table" if len(tests) > 1 else ""
        notes.insert(0, f"p: MAPSSWE, two-sided{many}.")
    notes += _caveats(scores, chosen)
    blocks.append("".join(f"- {note}\n" for note in [*_legend(scores[0], corpus), *dict.fromkeys(notes)]))
    return "\n".join(blocks)


def _caveats(scores: Sequence[Score], chosen: Sequence[Chosen]) -> list[str]:
    """What a reader may not conclude."""
    notes = [
        f"{role}: weights were chosen here, so that its rates and p-values flatter what was chosen."
        for role in sorted({one.role for one in chosen} & {score.role for score in scores})
    ]
    if any(score.system == "oracle" for score in scores):
        notes.append(
            "oracle: the best hypothesis of each list, chosen with its reference; no system can do it."
        )
    return notes


def read_chosen(path: Path, content: Mapping[str, Any]) -> Chosen:
    """A ``weights.json`` or ``rescoring.json`` for the report; its system is the folder it lies in.

    Raises:
        DataError: it is not what ``tune_weights`` or ``tune_rescoring`` writes.
    """
    try:
        lms = ""
        if "lms" in content:
            words = content["ref_words"]
            wer_percent = 100.0 * content["errors"] / words if words else None
            used = [f"{w:g} {name}" for name, w in zip(content["lms"], content["lambdas"]) if w]
            how = f" ({content['interpolation'].replace('_', '-')})" if len(used) > 1 else ""
            lms = " + ".join(used) + how
        else:
            wer_percent = content["wer_percent"]
        return Chosen(
            system=path.resolve().parent.name,
            role=str(content["role"]),
            lm_weight=float(content["lm_weight"]),
            insertion_penalty=float(content["insertion_penalty"]),
            wer_percent=None if wer_percent is None else float(wer_percent),
            edges=tuple(content["edges"]),
            lms=lms,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            path, "what tune_weights or tune_rescoring writes", repr(error), "choose on dev again"
        ) from error


def chosen_row(chosen: Chosen) -> dict[str, str]:
    """The cells of weights that were chosen."""
    return {
        "system": chosen.system,
        "chosen on": chosen.role,
        **({"LMs": chosen.lms} if chosen.lms else {}),
        "LM weight": str(chosen.lm_weight),
        "insertion penalty": str(chosen.insertion_penalty),
        "WER %": number(chosen.wer_percent),
        "at the edge of the grid": ", ".join(e.replace("_", " ") for e in chosen.edges) or "no",
    }


def _legend(score: Score, corpus: CorpusInfo) -> list[str]:
    lines = [
        f"{score.rate_name} is insertions, deletions and substitutions by 100 reference {score.unit}s, "
        "summed over all utterances.",
        f"Intervals: {score.options.num_replicates:,} draws of speakers with replacement, percentiles of the "
        "ratio of sums.",
    ]
    if corpus.renamed:
        scored = len(set(corpus.renamed.values()))
        lines.append(f"{len(corpus.renamed)} recognized units are scored as {scored}.")
    if corpus.left_out:
        lines.append(f"Not scored, in references and hypotheses: {', '.join(corpus.left_out)}.")
    return [*lines, f"Versions: {versions()}."]


def _remarks(score: Score, part: str) -> list[str]:
    result, where = score.parts[part], f"{score.system}, {part}"
    remarks = []
    if result.interval_note:
        remarks.append(f"{where}: no interval over speakers: {result.interval_note}.")
    if result.interval is not None and len(result.speakers) < FEW_SPEAKERS:
        remarks.append(f"{part}: with {len(result.speakers)} speakers the interval is too narrow as a rule.")
    if result.no_path:
        listed = ", ".join(f"`{name}`" for name in result.no_path[:_LISTED])
        more = f" and {len(result.no_path) - _LISTED:,} more" if len(result.no_path) > _LISTED else ""
        remarks.append(f"{where}: no path was found, and nothing recognized, in {listed}{more}.")
    return remarks


def rough(test: MatchedPairs) -> bool:
    """Whether a p-value rests on too few segments to be more than rough."""
    return test.segments < ROUGH_BELOW


def _comparison(score: Score, baseline: Score, part: str, test: MatchedPairs) -> str:
    remark = f"; with fewer than {ROUGH_BELOW} segments this p-value is rough" if rough(test) else ""
    return (
        f"{score.system} against {baseline.system}, {part}: {test.errors_a:,} and {test.errors_b:,} errors "
        f"in {test.segments:,} segments, MAPSSWE, two-sided{remark}."
    )


def _title(scores: Sequence[Score], corpus: CorpusInfo) -> str:
    systems = ", ".join(dict.fromkeys(score.system for score in scores))
    return f"Results: {corpus.name}, {systems}" if corpus.name else f"Results: {systems}"


def percent_name(score: Score) -> str:
    """How much of the draws an interval holds, as text."""
    return f"{100 * score.options.confidence:g} %"


def number(value: float | None) -> str:
    """A figure in per cent, or a dash."""
    return NOTHING if value is None else f"{value:.2f}"


def interval_text(interval: Interval | None) -> str:
    """Both ends of an interval in per cent, or a dash."""
    return NOTHING if interval is None else f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"


def _speakers(result: PartScore) -> str:
    rates = [c.percent for c in result.speakers.values() if c.percent is not None]
    between = f" ({min(rates):.1f} to {max(rates):.1f})" if rates else ""
    return f"{len(result.speakers):,}{between}"


def p_text(p_value: float | None) -> str:
    """A p-value as tables show it.

    >>> p_text(0.0004), p_text(0.0312), p_text(None)
    ('<0.001', '0.031', '–')
    """
    if p_value is None:
        return NOTHING
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"
