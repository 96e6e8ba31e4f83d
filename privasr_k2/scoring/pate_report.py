"""``RESULTS.md`` of recipes ``pate`` and ``dpsgd``: every system with two columns of epsilon, and tests.

The exact epsilon comes from the release's entry in the ledger. What the paper would call epsilon stands
beside it, marked as no guarantee, with K and the scale that it follows from. The same results give the same
file.

[yang2022] C.-H. H. Yang, I-F. Chen, A. Stolcke, S. M. Siniscalchi, C.-H. Lee, An experimental study on
private aggregation of teacher ensemble learning for end-to-end speech recognition, SLT 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.privacy.accounting import Epsilon
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import Guarantee, guarantees, shown
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.pate_attacks import Attacks, at_least, attack_blocks
from privasr_k2.scoring.pate_comparisons import AGAINST_PUBLIC, Compared, compare_systems
from privasr_k2.scoring.pate_findings import findings, teachers_wer, too_weak
from privasr_k2.scoring.pate_phones import PhoneRate
from privasr_k2.scoring.pate_results import (
    DPSGD,
    EXACT,
    FREE,
    Name,
    System,
    Votes,
    model_label,
    parse_system,
    parts_of,
)
from privasr_k2.scoring.report import (
    FEW_SPEAKERS,
    NOTHING,
    interval_text,
    number,
    p_text,
    percent_name,
    rough,
    table,
    versions,
)
from privasr_k2.scoring.results import Score

_READINGS = {"published_equation": "scale 1/lambda (eq. 4)", "published_figures": "scale lambda (figures)"}
_INFINITE = "infinite"


@dataclass(frozen=True)
class PateReportOptions:
    """``conf/pate_report.yaml``, where every value is explained."""

    command: str
    level: float
    weak_wer: float
    target_epsilon: float
    target_delta: float
    phones: bool
    cmudict: str
    g2p: str

    def __post_init__(self) -> None:
        for name in ("level", "target_delta"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        if self.weak_wer <= 0 or self.target_epsilon <= 0:
            raise ValueError("weak_wer and target_epsilon must be above 0")
        if self.g2p not in ("espeak", "none"):
            raise ValueError(f"g2p must be espeak or none, got {self.g2p!r}")


@dataclass(frozen=True)
class PateInputs:
    """What the report is about.

    Attributes:
        scores: error rates on test.
        entries: the release of each system that has one.
        votes: what was asked and answered.
        agreement: of teachers, by model and number: shares by what they are of. Private; empty: not shown.
        attacks: what they found.
        phones: phone errors of the words, by part; empty: not shown.
        sides: rows of who is private, public and in the pool; empty: not shown.
    """

    scores: Mapping[Name, Score]
    entries: Mapping[Name, Entry]
    votes: Mapping[Name, Votes]
    agreement: Mapping[tuple[str, int], Mapping[str, float]]
    corpus: CorpusInfo
    attacks: Attacks = field(default_factory=Attacks)
    phones: Mapping[Name, Mapping[str, PhoneRate]] = field(default_factory=dict)
    sides: Sequence[Mapping[str, str]] = ()


def exact_epsilons(entries: Mapping[Name, Entry]) -> dict[Name, Epsilon]:
    """What each release costs by itself."""
    return {name: guarantees([entry.spending])[0].epsilon for name, entry in entries.items()}


def pate_report(given: PateInputs, options: PateReportOptions) -> str:
    """The whole file.

    Raises:
        DataError: nothing to report, a student of noisy votes or of DP-SGD without its release, or scores of
            other utterances or references than those they are compared with.
    """
    if not given.scores:
        raise DataError("--in-scores", "score_test folders", "none", "name at least one")
    _check_releases(given)
    compared, exact = compare_systems(given.scores), exact_epsilons(given.entries)
    weak = {part: too_weak(given.scores, part, options.weak_wer) for part in parts_of(given.scores)}
    name = f": {given.corpus.name}" if given.corpus.name else ""
    blocks = [f"# PATE and DP-SGD for end-to-end recognizers{name}\n", *given.corpus.heading]
    if options.command:
        blocks.append(f"Made by\n\n```bash\n{options.command}\n```\n")
    if given.sides:
        blocks.append(f"Whose speech it is\n\n{table(list(given.sides))}")
    for model in dict.fromkeys(one.model for one in given.scores):
        blocks.append(f"## {model_label(model)}\n\n{table(list(_rows(model, given, exact, compared, weak)))}")
        blocks += [line + "\n" for line in _verdicts(model, given.scores, weak, options.weak_wer)]
    blocks += _claims(given)
    blocks += attack_blocks(given.attacks)
    if given.agreement:
        blocks.append(_agreement(given.agreement))
    others = [one for one in compared if one.why != AGAINST_PUBLIC]
    if others:
        blocks.append(f"## Compared\n\n{table([_pair(one, given.scores) for one in others])}")
    blocks.append("## What holds\n\n" + "".join(_found(given, compared, exact, weak, options)))
    blocks.append("".join(f"- {line}\n" for line in _notes(given, compared)))
    return "\n".join(blocks)


def _check_releases(given: PateInputs) -> None:
    """A claim without a release would be shown as if nobody had counted what it cost."""
    for name, score in given.scores.items():
        system = parse_system(name.system, score.place)
        claims = (system.is_pate or system.kind == DPSGD) and system.epsilon != math.inf
        if claims and name not in given.entries:
            raise DataError(
                score.place,
                f"the privacy.json of {name.model}/{name.system}",
                "none",
                "give it with --in-privacy, or call a student of votes without noise clean_<I>",
            )


def _rows(
    model: str,
    given: PateInputs,
    exact: Mapping[Name, Epsilon],
    compared: Sequence[Compared],
    weak: Mapping[str, Mapping[tuple[str, int], float]],
) -> Iterator[dict[str, str]]:
    of_model = {name: score for name, score in given.scores.items() if name.model == model}
    for part in parts_of(of_model):
        for name, score in of_model.items():
            result = score.parts.get(part)
            if result is None:
                continue
            system = parse_system(name.system, score.place)
            mark = " (too weak)" if (model, system.teachers) in weak[part] else ""
            yield {
                "system": system.label + mark,
                "part": part,
                f"{score.rate_name} %": number(result.counts.percent),
                f"{percent_name(score)} interval": interval_text(result.interval),
                **_phones(given.phones.get(name, {}).get(part), score),
                **_against_public(name, part, compared),
                **_epsilons(system, given.entries.get(name), exact.get(name)),
                **_votes(system, given.votes.get(name)),
            }


def _phones(found: PhoneRate | None, score: Score) -> dict[str, str]:
    if found is None:
        return {}
    within = f"PER {percent_name(score)} interval"
    return {"PER of the words %": number(found.counts.percent), within: interval_text(found.interval)}


def _against_public(name: Name, part: str, compared: Sequence[Compared]) -> dict[str, str]:
    of_pair = [c for c in compared if (c.first, c.part, c.why) == (name, part, AGAINST_PUBLIC)]
    change = of_pair[0].change if of_pair else None
    return {
        "change against public %": NOTHING if change is None else f"{change:+.2f}",
        "p": p_text(of_pair[0].p_value) if of_pair else NOTHING,
    }


def _epsilons(system: System, entry: Entry | None, cost: Epsilon | None) -> dict[str, str]:
    """Exact epsilon and what it says nothing without; public systems have none, as they cost nothing."""
    if entry is None or cost is None:
        return {"exact epsilon": NOTHING if system.kind in FREE else _INFINITE}
    return {
        "exact epsilon": shown(cost.value),
        "delta": f"{cost.delta:g}",
        "unit": entry.spending.unit,
        "neighbours": entry.spending.relation.value,
    }


def _votes(system: System, votes: Votes | None) -> dict[str, str]:
    cells = {"teachers": NOTHING if system.teachers is None else f"{system.teachers:,}"}
    if votes is not None:
        cells["votes asked"], cells["answered"] = f"{votes.asked:,}", f"{votes.answered:,}"
        cells["a vote on"] = votes.vote
        cells["noise, votes"] = f"{votes.noise:.4g}"
        cells["labels"] = f"{votes.utterances:,}"
    return cells


def _verdicts(
    model: str,
    scores: Mapping[Name, Score],
    weak: Mapping[str, Mapping[tuple[str, int], float]],
    limit: float,
) -> Iterator[str]:
    for part, found in weak.items():
        for (of_model, teachers), rate in found.items():
            if of_model == model:
                yield (
                    f"**Too weak to conclude from**: its {teachers} teachers have {rate:.2f} % on the "
                    f"average in {part}, above {limit:g} %."
                )
        pate = {
            system.teachers
            for name, score in scores.items()
            if name.model == model and part in score.parts
            for system in [parse_system(name.system, score.place)]
            if system.is_pate and system.teachers is not None
        }
        for teachers in sorted(pate):
            if teachers_wer(scores, model, teachers, part) is None:
                yield f"None of its {teachers} teachers was scored: whether they are too weak is not known."


def _claims(given: PateInputs) -> list[str]:
    if not given.entries:
        return []
    rows = []
    for name, entry in given.entries.items():
        row: dict[str, str] = {"system": name.label} | _claim(guarantees([entry.spending])[0])
        if given.attacks.audits:
            row["epsilon at least, by audit"] = at_least(given.attacks.audits.get(name, ()))
        published = given.votes[name].published if name in given.votes else {}
        for key, reading in _READINGS.items():
            told = published.get("epsilon", {}).get(key)
            row[f"as published, no guarantee: {reading}"] = NOTHING if told is None else f"{told:.4g}"
        row["K"] = f"{published['K']:,}" if published else NOTHING
        row["scale"] = f"{published['scale']:.4g}" if published else NOTHING
        rows.append(row)
    spent = [entry.spending for entry in given.entries.values()]
    lines = [line for guarantee in guarantees(spent) for line in guarantee.lines()]
    together = "All of these releases together, which is what holds if all are published:\n\n```\n"
    return [f"## What is guaranteed\n\n{table(rows)}", together + "\n".join(lines) + "\n```\n"]


def _claim(guarantee: Guarantee) -> dict[str, str]:
    units = NOTHING if guarantee.units is None else f"{guarantee.units:,}"
    cells = {key: text for key, text in guarantee.row().items() if key != "releases"}
    return {**cells, "units": units}


def _agreement(found: Mapping[tuple[str, int], Mapping[str, float]]) -> str:
    rows = [
        {"system": f"{model_label(model)}, {teachers} teachers"}
        | {
            what.replace("_", " "): f"{value:,.0f}" if what == "queries" else f"{100 * value:.1f} %"
            for what, value in shares.items()
        }
        for (model, teachers), shares in found.items()
    ]
    return f"## Agreement of the teachers\n\nPrivate: no guarantee covers this table.\n\n{table(rows)}"


def _pair(one: Compared, scores: Mapping[Name, Score]) -> dict[str, str]:
    return {
        "system": one.first.label,
        "against": one.second.label,
        "part": one.part,
        f"{scores[one.first].rate_name} %": number(one.rates[0]),
        "its %": number(one.rates[1]),
        "change %": NOTHING if one.change is None else f"{one.change:+.2f}",
        "segments": f"{one.test.segments:,}",
        "p": p_text(one.p_value),
    }


def _found(
    given: PateInputs,
    compared: Sequence[Compared],
    exact: Mapping[Name, Epsilon],
    weak: Mapping[str, Mapping[tuple[str, int], float]],
    options: PateReportOptions,
) -> Iterator[str]:
    target = (options.target_epsilon, options.target_delta)
    for part, of_part in weak.items():
        where = f"{part}: " if len(weak) > 1 else ""
        for line in findings(
            given.scores, compared, exact, of_part, part, level=options.level, target=target
        ):
            yield f"- {where}{line}\n"


def _notes(given: PateInputs, compared: Sequence[Compared]) -> Iterator[str]:
    score = next(iter(given.scores.values()))
    yield (
        f"Intervals: {score.options.num_replicates:,} draws of speakers with replacement. p: MAPSSWE, "
        f"two-sided, by Holm for the {len(compared)} comparisons of this file."
    )
    if any(rough(one.test) for one in compared):
        yield "Some comparisons have fewer than 50 segments: their p-values are rough."
    speakers = min(len(result.speakers) for one in given.scores.values() for result in one.parts.values())
    if speakers < FEW_SPEAKERS:
        yield f"With {speakers} speakers intervals are too narrow as a rule."
    if given.entries:
        yield (
            "Exact epsilon: of that release alone, from the ledger; a smaller one is stronger. Several "
            "students that are published together cost more: see what is guaranteed."
        )
        yield (
            "As published: lambda = K / (2 epsilon) [yang2022], K the utterances, delta 1e-3; both readings "
            "of lambda. It is no bound on anything."
        )
    if given.phones:
        yield (
            "PER of the words: the phones of reference and hypothesis words by the lexicon (CMUdict, else "
            "espeak-ng; of each word the first pronunciation), folded to TIMIT's 39, of which silence and "
            "flap never occur. No model recognized phones, and no phonetic labels were used: it says how far "
            "off wrong words sound."
        )
        unspoken = sum(rate.unspoken for parts in given.phones.values() for rate in parts.values())
        if unspoken:
            yield f"{unspoken:,} words of hypotheses cannot be said: each is a phone that fits nothing."
    if any(parse_system(name.system, Path()).means != EXACT for name in given.scores):
        yield (
            "Systems called 'as published' took their noise from such a reading; only their exact epsilon "
            "holds."
        )
    yield f"Versions: {versions()}."
