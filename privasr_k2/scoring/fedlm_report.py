"""``RESULTS.md`` of recipe ``fedlm``: tables in the shape of Tables 1 to 5 of [liu2021], with tests.

Each adapted model stands beside what it has to beat: relative change and p-value of the WER (MAPSSWE), and of
the perplexity (groups of sentences drawn again, both models on the same draws). P-values are Holm's over all
comparisons of a kind. Rows with a claim show what holds for the clients at hand, what an attack found, and
what the paper's plan would cost. The same results give the same file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.privacy.accounting import Epsilon
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import guarantees, shown
from privasr_k2.randomness import stream
from privasr_k2.scoring.bootstrap import ratio_difference, ratio_interval
from privasr_k2.scoring.comparisons import holm
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.fedlm_notes import PAPER, findings, notes
from privasr_k2.scoring.fedlm_results import (
    PRETRAINED,
    Perplexities,
    Words,
    baselines_of,
    label_of,
    parse_system,
)
from privasr_k2.scoring.matched_pairs import MatchedPairs
from privasr_k2.scoring.report import (
    NOTHING,
    Chosen,
    chosen_row,
    compare_scores,
    interval_text,
    number,
    p_text,
    table,
)
from privasr_k2.scoring.results import Score


@dataclass(frozen=True)
class FedLmReportOptions:
    """``conf/fedlm_report.yaml``, where every value is explained."""

    command: str
    num_replicates: int
    confidence: float
    seed: int

    def __post_init__(self) -> None:
        if self.num_replicates < 1 or not 0 < self.confidence < 1:
            raise ValueError("num_replicates must be 1 or more and confidence between 0 and 1")


@dataclass(frozen=True)
class FedLmInputs:
    """What the report is about; systems are named as in :mod:`privasr_k2.scoring.fedlm_results`.

    Attributes:
        perplexities: on test.
        scores: error rates on test; empty where there is no speech.
        adapt: error rates on the adaptation part.
        texts: of Table 1: a text's name -> the figures of :func:`privasr_k2.federated.clients.table`.
        entries: the release of each system with a claim.
        plans: what the paper's setting costs with the noise of such a system.
        audits: what ``audit_fedlm`` found for such a system.
        chosen: weights of rescoring.
        trainings: rows on federated training.
        recognized: whether the clients' text is a recognizer's.
        tuned: whether learning rates were chosen by ``tune_fedlm``.
        words: the vocabulary, where it is known.
    """

    perplexities: Perplexities
    scores: Mapping[str, Score]
    adapt: Mapping[str, Score]
    texts: Mapping[str, Mapping[str, float]]
    entries: Mapping[str, Entry]
    plans: Mapping[str, Epsilon]
    audits: Mapping[str, Mapping[str, Any]]
    chosen: Sequence[Chosen]
    corpus: CorpusInfo
    trainings: Sequence[Mapping[str, str]]
    recognized: bool
    tuned: bool
    words: Words | None


@dataclass
class Compared:
    """One system against another on one part; of perplexities there is one part, all of test.

    Attributes:
        change: relative, of the perplexity or of the WER; ``None`` where it cannot be.
        interval: of it, as text.
        p_value: Holm's, once all are known.
    """

    system: str
    against: str
    part: str
    change: float | None
    interval: str
    p_value: float | None


def fedlm_report(given: FedLmInputs, options: FedLmReportOptions) -> str:
    """The whole file.

    Raises:
        DataError: scores of other utterances or references than those they are compared with.
    """
    ppl = _perplexities_compared(given.perplexities, options)
    wer = _scores_compared(given.scores)
    systems = list(dict.fromkeys([*given.scores, *given.perplexities.systems]))
    parts = list(dict.fromkeys(part for score in given.scores.values() for part in score.parts)) or [""]
    name = f": {given.corpus.name}" if given.corpus.name else ""
    blocks = [f"# Federated adaptation of language models{name}\n", *given.corpus.heading]
    if options.command:
        blocks.append(f"Made by\n\n```bash\n{options.command}\n```\n")
    blocks += _table_1(given)

    def rows(chosen: Iterable[str]) -> str:
        return table([_row(system, part, given, options, ppl, wer) for part in parts for system in chosen])

    plain, scratch, private = _kinds(systems)
    blocks.append(f"## Tables 2 and 3: adapted models\n\n{rows(plain)}")
    if scratch:
        blocks.append(f"## Table 4: without pre-training\n\n{rows(scratch)}")
    if private:
        blocks.append(f"## Table 5: user-level privacy\n\n{rows([PRETRAINED, *private])}")
        blocks += _claims(private, given)
    if given.audits:
        blocks += _audits(given.audits)
    blocks += _comparisons(ppl, wer)
    if given.chosen:
        blocks.append(
            "Chosen on dev, before test was scored:\n\n" + table(list(map(chosen_row, given.chosen)))
        )
    if given.trainings:
        blocks.append(
            "Federated training, and the round whose model was kept (`keep` of `conf/fedlm.yaml`):\n\n"
            + table(list(map(dict, given.trainings)))
        )
    said = findings(given.perplexities, {(c.system, c.against): c for c in ppl})
    if said:
        blocks.append("## What holds\n\n" + "".join(f"- {line}\n" for line in said))
    tests = {"ppl": len(ppl), "wer": len(wer)}
    lines = notes(
        given.perplexities,
        options.num_replicates,
        tests,
        spoken=bool(given.scores),
        recognized=given.recognized,
        tuned=given.tuned,
        words=given.words,
    )
    blocks.append("".join(f"- {line}\n" for line in lines))
    return "\n".join(blocks)


def _kinds(systems: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Systems of Tables 2 and 3, of Table 4, of Table 5."""
    plain, scratch, private = [], [], []
    for name in systems:
        system = parse_system(name, Path(name))
        if system is not None and system.noise is not None:
            private.append(name)
        elif system is not None and system.scratch:
            scratch.append(name)
        else:
            plain.append(name)
    return plain, scratch, private


def _row(
    name: str,
    part: str,
    given: FedLmInputs,
    options: FedLmReportOptions,
    ppl: Sequence[Compared],
    wer: Sequence[Compared],
) -> dict[str, str]:
    percent = f"{100 * options.confidence:g} %"
    row = {"system": label_of(name)}
    if part:
        row["part"] = part
    figures = given.perplexities.systems.get(name)
    row["PPL"] = NOTHING if figures is None else f"{figures.ppl:.2f}"
    if given.perplexities.by:
        row[f"PPL {percent} interval"] = _ppl_interval(name, given.perplexities, options)
    first = (baselines_of(name) or ("",))[0]
    against = [c for c in ppl if (c.system, c.against) == (name, first)]
    row["PPL change %"] = _change(against[0].change) if against else NOTHING
    if part:
        score = given.scores.get(name)
        result = None if score is None else score.parts.get(part)
        row["WER %"] = NOTHING if result is None else number(result.counts.percent)
        row[f"WER {percent} interval"] = NOTHING if result is None else interval_text(result.interval)
        against = [c for c in wer if (c.system, c.against, c.part) == (name, first, part)]
        row["WER change %"] = _change(against[0].change) if against else NOTHING
    row["p"] = p_text(against[0].p_value) if against else NOTHING
    row["against"] = label_of(first) if against else NOTHING
    paper = PAPER.get(name)
    row["paper: PPL"], row["paper: WER %"] = (NOTHING, NOTHING) if paper is None else paper
    return row


def _table_1(given: FedLmInputs) -> list[str]:
    if not given.texts:
        return []
    rows = [
        {"part": name} | {key.replace("_", " "): f"{value:,g}" for key, value in figures.items()}
        for name, figures in given.texts.items()
    ]
    blocks = [f"## Table 1: text\n\n{table(rows)}"]
    for system, score in given.adapt.items():
        for part, result in score.parts.items():
            blocks.append(
                f"{score.rate_name} of the adaptation part ({part}, {label_of(system)}): "
                f"{number(result.counts.percent)} %, interval {interval_text(result.interval)}.\n"
            )
    return blocks


def _claims(systems: Sequence[str], given: FedLmInputs) -> list[str]:
    """What each release claims, with the audit's lower bound under it, and what the paper's plan costs."""
    rows: list[dict[str, str]] = []
    for name in systems:
        row = {"system": label_of(name)}
        if name in given.entries:
            spending = given.entries[name].spending
            claimed = guarantees([spending])[0].row()
            clients = NOTHING if spending.units is None else f"{spending.units:,}"
            row |= {k: v for k, v in claimed.items() if k not in ("private data", "releases")}
            row["clients"] = clients
        if name in given.plans:
            plan = given.plans[name]
            row["paper's plan: epsilon (RDP)"] = shown(plan.rdp)
            row["paper's plan: epsilon (PLD)"] = "none" if plan.pld is None else shown(plan.pld)
            paper = PAPER.get(name)
            row["paper: epsilon"] = NOTHING if paper is None else _PAPER_EPSILON[name.rpartition("_")[2]]
        rows.append(row)
        marks = given.audits.get(name, {}).get("marks")
        if marks is not None:
            found = marks["epsilon_lower"]
            for what, key in (("lower bound by audit", "sound"), ("the same, noise divided", "broken")):
                rows.append({"system": f"{label_of(name)}: {what}", "epsilon (PLD)": f"{found[key]:.3g}"})
    blocks = [table(rows)]
    spent = [given.entries[name].spending for name in systems if name in given.entries]
    if spent:
        lines = [line for guarantee in guarantees(spent) for line in guarantee.lines()]
        blocks.append("All of these releases together:\n\n```\n" + "\n".join(lines) + "\n```\n")
    return blocks


#: [liu2021, Table 5]
_PAPER_EPSILON = {"0.2": "248.6", "0.5": "14.2", "1.5": "0.9"}


def _audits(audits: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = []
    for name, found in audits.items():
        for what, text in (("without_privacy", "no clip, no noise"), ("with_privacy", "as claimed")):
            secrets, members = found[what]["exposure"], found[what]["membership"]
            low, high = members["auc_interval"]
            rows.append(
                {
                    "system": f"{label_of(name)}: {text}",
                    "mean exposure, bits": f"{secrets['mean_exposure']:.2f}",
                    "largest": f"{secrets['largest_exposure']:.2f}",
                    "largest possible": f"{secrets['largest_possible_exposure']:.2f}",
                    "epsilon at least, canaries": f"{secrets['epsilon_lower']:.3g}",
                    "membership AUC": f"{members['auc']:.3f}",
                    "interval": f"{low:.3f} to {high:.3f}",
                }
            )
    verdicts = "".join(
        f"- {label_of(name)}: claimed epsilon {shown(found['marks']['claimed_epsilon'])}, "
        f"{found['marks']['trials']} marks can show at most {found['marks']['largest_possible']:.3g}; "
        f"verdict: {found['marks']['verdict']}.\n"
        for name, found in audits.items()
    )
    return [f"## Audit\n\n{table(rows)}", verdicts]


def _comparisons(ppl: Sequence[Compared], wer: Sequence[Compared]) -> list[str]:
    blocks = []
    for heading, compared in (("Perplexities compared", ppl), ("Error rates compared", wer)):
        if compared:
            rows = [
                {
                    "system": label_of(one.system),
                    "against": label_of(one.against),
                    **({"part": one.part} if one.part else {}),
                    "change %": _change(one.change),
                    **({"interval": one.interval} if one.interval else {}),
                    "p": p_text(one.p_value),
                }
                for one in compared
            ]
            blocks.append(f"## {heading}\n\n{table(rows)}")
    return blocks


def _ppl_interval(name: str, given: Perplexities, options: FedLmReportOptions) -> str:
    figures = given.systems.get(name)
    if figures is None or not figures.groups:
        return NOTHING
    nats, counts = _of_groups(figures.groups)
    found = ratio_interval(
        nats,
        counts,
        stream(options.seed, "perplexity"),
        num_replicates=options.num_replicates,
        confidence=options.confidence,
    )
    return NOTHING if found is None else f"{math.exp(found.low):.2f} to {math.exp(found.high):.2f}"


def _of_groups(groups: Mapping[str, tuple[float, int]]) -> tuple[np.ndarray, np.ndarray]:
    ordered = [groups[name] for name in sorted(groups)]
    return np.array([nats for nats, _ in ordered]), np.array([count for _, count in ordered])


def _perplexities_compared(given: Perplexities, options: FedLmReportOptions) -> list[Compared]:
    """Relative changes of the perplexity, exp of the difference of nats a prediction less 1."""
    found = []
    for name, figures in given.systems.items():
        for other in baselines_of(name):
            if other not in given.systems:
                continue
            theirs = given.systems[other]
            one = Compared(name, other, "", figures.ppl / theirs.ppl - 1, "", None)
            if figures.groups:
                (nats, counts), (beside, _) = _of_groups(figures.groups), _of_groups(theirs.groups)
                test = ratio_difference(
                    nats - beside,
                    counts,
                    stream(options.seed, "perplexity"),
                    num_replicates=options.num_replicates,
                    confidence=options.confidence,
                )
                if test is not None:
                    low, high = math.expm1(test.interval.low), math.expm1(test.interval.high)
                    one.interval, one.p_value = f"{100 * low:+.2f} to {100 * high:+.2f}", test.p_value
            found.append(one)
    return _corrected(found)


def _scores_compared(scores: Mapping[str, Score]) -> list[Compared]:
    found = []
    for name, score in scores.items():
        for other in (scores[other] for other in baselines_of(name) if other in scores):
            for part in score.parts:
                if part in other.parts:
                    test: MatchedPairs = compare_scores(score, other, part)
                    ours, theirs = score.parts[part].counts.percent, other.parts[part].counts.percent
                    change = ours / theirs - 1 if ours is not None and theirs else None
                    found.append(Compared(name, other.system, part, change, "", test.p_value))
    return _corrected(found)


def _corrected(compared: list[Compared]) -> list[Compared]:
    for one, p_value in zip(compared, holm([one.p_value for one in compared])):
        one.p_value = p_value
    return compared


def _change(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:+.2f}"
