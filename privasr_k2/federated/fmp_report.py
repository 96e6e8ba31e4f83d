"""The report of recipe fmp: tables 1 to 4 in the form of [liu2020], with intervals, tests and guarantees.

Systems are named by their folders: ``T<rounds>`` belong to table 2, ``grid_*`` to table 3, ``eps_*`` to table
4; ``baseline`` is the unadapted model. Each has ``run_<role>.json`` of run_fmp and, where there is speech,
``score_<role>``; private ones have the ``privacy.json`` of their release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_findings import PAIRS, PUBLISHED, Measured, findings
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.spending import guarantees, shown
from privasr_k2.randomness import stream
from privasr_k2.scoring.bootstrap import ratio_interval
from privasr_k2.scoring.classlm_results import pooled
from privasr_k2.scoring.comparisons import check_same_references, holm
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.matched_pairs import compare
from privasr_k2.scoring.report import NOTHING, interval_text, number, p_text, table
from privasr_k2.scoring.results import Score, read_score, read_scored_words

BASELINE = "baseline"
GRID_CHOSEN = "grid_dev"  # its settings are those that dev chose from a grid
_TABLES = {
    "T": "Table 2: numbers of rounds",
    "grid_": "Table 3: weights alpha and beta, bandwidth sigma",
    "eps_": "Table 4: released global marginals",
}
_REPLICATES, _CONFIDENCE = 1000, 0.95


@dataclass(frozen=True)
class FmpReportOptions:
    """What stands above the tables; ``command``: what the results were made with, may be empty."""

    command: str


@dataclass(frozen=True)
class System:
    """What is known of one system.

    Attributes:
        name: of its folder.
        config: of run_fmp; empty for a baseline that was not run by it.
        perplexity: of run_fmp, or None.
        release: settings of its release, or None.
        score: its errors, or None.
        p: of MAPSSWE against the baseline, corrected by Holm but for the full method's; None: no test.
        p_full: likewise of the full method against this one; None where it is not tested.
        guarantee: what holds for its release, as text.
    """

    name: str
    config: Mapping[str, Any]
    perplexity: Mapping[str, Any] | None
    release: Mapping[str, Any] | None
    score: Score | None
    p: float | None = None
    p_full: float | None = None
    guarantee: str = ""


def read_systems(runs: Sequence[Path], scores: Sequence[Path], privacy: Sequence[Path]) -> list[System]:
    """All systems, those of ``runs`` in their order after the baseline.

    Raises:
        DataError: a file that run_fmp does not write, a system twice, systems scored on other references.
    """
    found: dict[str, System] = {}
    for path in runs:
        content, name = read_json(path), path.resolve().parent.name
        if not isinstance(content, dict) or "config" not in content or "release" not in content:
            raise DataError(path, "what run_fmp writes", "something else", "run it again")
        if name in found:
            raise DataError(path, "every system once", f"{name} twice", "name it once")
        found[name] = System(name, content["config"], content["perplexity"], content["release"], None)
    for folder in scores:
        score = read_score(folder)
        before = found.get(score.system, System(score.system, {}, None, None, None))
        found[score.system] = replace(before, score=score)
    for path in privacy:
        name = path.resolve().parent.name
        [held] = guarantees(entry.spending for entry in Ledger(path).entries())
        text = f"{shown(held.epsilon.value)} at {held.epsilon.delta:g} for each {held.unit}"
        if name in found:
            found[name] = replace(found[name], guarantee=text)
    if BASELINE not in found:
        raise DataError("--in-runs and --in-scores", f"a system named {BASELINE}", "none", "name its folder")
    ordered = [found.pop(BASELINE), *found.values()]
    by_name = {one.name: one for one in ordered}
    full = full_method(ordered)
    pairs = [(one, ordered[0]) for one in ordered[1:] if one is not full]
    num_others = len(pairs)
    if full is not None:
        pairs += [(full, by_name[name]) for name in PAIRS if name in by_name]
    values = holm([_p(one, other) for one, other in pairs])
    tested = {one.name: p for (one, _), p in zip(pairs, values[:num_others])}
    if full is not None:
        tested[full.name] = _p(full, ordered[0])
    against = {other.name: p for (_, other), p in zip(pairs[num_others:], values[num_others:])}
    return [
        ordered[0],
        *(replace(one, p=tested[one.name], p_full=against.get(one.name)) for one in ordered[1:]),
    ]


def full_method(systems: Sequence[System]) -> System | None:
    """That of table 2 with the most rounds."""
    rounds = [one for one in systems if one.name[:1] == "T" and one.name[1:].isdigit()]
    return max(rounds, key=lambda one: int(one.config["rounds"]), default=None)


def _p(system: System, baseline: System) -> float | None:
    if system.score is None or baseline.score is None:
        return None
    ours, theirs = (
        {
            (part, name): words
            for part, of in read_scored_words(score.place).items()
            for name, words in of.items()
        }
        for score in (system.score, baseline.score)
    )
    flat = [{f"{part} {name}": pair for (part, name), pair in words.items()} for words in (ours, theirs)]
    check_same_references(system.score, flat[0], baseline.score, flat[1], "all")
    return compare(
        [ref for ref, _ in flat[0].values()],
        [hyp for _, hyp in flat[0].values()],
        [flat[1][name][1] for name in flat[0]],
    ).p_value


def _change(value: float | None, before: float | None) -> str:
    return NOTHING if value is None or not before else f"{100 * (value / before - 1):+.1f} %"


def row(system: System, baseline: System) -> dict[str, str]:
    """The cells of a system: settings, errors and perplexity against the baseline, guarantee."""
    told = {"system": system.name}
    if system.name != BASELINE:
        config = system.config
        told |= {"T": str(config["rounds"]), "lambda": f"{config['lam']:g}"}
        told |= {key: f"{float(config[key]):g}" for key in ("alpha", "beta", "sigma")}
    if system.score is not None:
        result = pooled(system.score)
        told[f"{system.score.rate_name} %"] = number(result.counts.percent)
        told["95 % interval"] = interval_text(result.interval)
        if system.name != BASELINE and baseline.score is not None:
            told["change"] = _change(result.counts.percent, pooled(baseline.score).counts.percent)
            told["p"] = p_text(system.p)
    if system.perplexity is not None:
        told["perplexity"] = f"{system.perplexity['total']:.2f}"
        told["last round"] = f"{system.perplexity['by_round'][-1]:.2f}"
        if system.name != BASELINE and baseline.perplexity is not None:
            told["change of ppl"] = _change(system.perplexity["total"], baseline.perplexity["total"])
            told["95 % over clients"] = _over_clients(system.perplexity, baseline.perplexity)
    if system.release is not None:
        release = system.release
        told["mechanism"] = str(release["mechanism"])
        if "strategy" in release:
            told["mechanism"] += f", {release['strategy']}"
        else:
            told["mechanism"] += f", called epsilon {release['epsilon']:g}"
        told["epsilon at delta"] = system.guarantee or "not given: no privacy.json"
    if system.score is not None and system.name in PUBLISHED:
        told["liu2020, AMI: WER % as published"] = number(PUBLISHED[system.name])
    return told


def _over_clients(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """The interval of the relative change of perplexity, both systems on the same draws of clients."""
    if ours["clients"].keys() != theirs["clients"].keys():
        raise DataError("--in-runs", "perplexities of the same clients", "others", "run on the same lists")
    names = sorted(ours["clients"])
    nats = np.array([sum(ours["clients"][n]["nats"]) - sum(theirs["clients"][n]["nats"]) for n in names])
    tokens = np.array([sum(ours["clients"][n]["tokens"]) for n in names])
    found = ratio_interval(
        nats, tokens, stream(1, "fmp report"), num_replicates=_REPLICATES, confidence=_CONFIDENCE
    )
    if found is None:
        return NOTHING
    low, high = (100 * math.expm1(value) for value in (found.low, found.high))
    return f"{low:+.1f} to {high:+.1f} %"


def corpus_row(timeline: Path) -> dict[str, str]:
    """Table 1 from a timeline."""
    turns = list(read_jsonl(timeline))
    return {
        "clients": f"{len({turn['client'] for turn in turns}):,}",
        "users": f"{len({turn['user'] for turn in turns}):,}",
        "utterances": f"{len(turns):,}",
        "words": f"{sum(int(turn['ref_words']) for turn in turns):,}",
    }


def fmp_report(
    systems: Sequence[System],
    timeline: Path,
    choice: Mapping[str, Any],
    audit: Mapping[str, Any] | None,
    corpus: CorpusInfo,
    options: FmpReportOptions,
) -> str:
    """The whole of ``RESULTS.md``.

    Args:
        systems: of :func:`read_systems`.
        timeline: of the role that was scored.
        choice: of tune_fmp.
        audit: of audit_fmp.
    """
    baseline = systems[0]
    name = f": {corpus.name}" if corpus.name else ""
    blocks = [f"# Federated marginal personalization{name}\n", *(corpus.heading if baseline.score else [])]
    if options.command:
        blocks.append(f"Made by\n\n```bash\n{options.command}\n```\n")
    blocks.append("Table 1: the corpus\n\n" + table([corpus_row(timeline)]))
    for prefix, title in _TABLES.items():
        rows = [row(one, baseline) for one in systems[1:] if one.name.startswith(prefix)]
        if rows:
            blocks.append(f"{title}\n\n" + table([row(baseline, baseline), *rows]))
    blocks.append("".join(f"- {note}\n" for note in [*_found(systems), *_notes(systems, choice)]))
    if audit is not None:
        blocks.append(_audit_lines(audit))
    return "\n".join(blocks)


def _found(systems: Sequence[System]) -> list[str]:
    """What the paper found, judged by error rates, or by perplexities where there is no speech."""
    tested = systems[0].score is not None

    def value(system: System) -> float | None:
        if tested:
            return None if system.score is None else pooled(system.score).counts.percent
        return None if system.perplexity is None else float(system.perplexity["total"])

    baseline = value(systems[0])
    if baseline is None:
        return []
    measured = {}
    for system in systems[1:]:
        figure = value(system)
        if figure is not None:
            epsilon = None if system.release is None else float(system.release["epsilon"])
            measured[system.name] = Measured(figure, system.p, int(system.config["rounds"]), epsilon)
    pairs = {system.name: system.p_full for system in systems if system.name in PAIRS}
    return findings(measured, baseline, pairs, tested=tested)


def _notes(systems: Sequence[System], choice: Mapping[str, Any]) -> list[str]:
    at_end = ", the end of what was tried" if choice.get("at_end") else ""
    others = ""
    if any(one.name == GRID_CHOSEN for one in systems):
        others = f" but {GRID_CHOSEN}, whose alpha, beta and sigma were chosen there as well"
    found = [
        f"lambda = {choice['lam']:g}{at_end}, chosen on the clients of dev by {choice['criterion']}, and the "
        f"same for all systems{others}.",
    ]
    if any(one.p is not None for one in systems):
        found += [
            "change: relative to the baseline. p: MAPSSWE against it, two-sided. The most rounds against the "
            "baseline is what this report asks, and tested by itself; all other tests are corrected by Holm "
            "together. Intervals of error rates are over speakers.",
        ]
    if systems[0].perplexity is not None:
        found.append("Perplexities are of what was said (normalized); round 0 is not adapted.")
    if any(one.release is not None for one in systems):
        found += [
            "Each row of table 4 is a release of its own, with the guarantee of that release alone; all "
            "releases of a sweep add up in the ledger (bin.privacy_report).",
            "As published: without a clip, the guarantee is only for units of as many words as "
            "conf/fmp_published.yaml says; an utterance counts in every running sum after it.",
            "beta's personal counts never leave the device and cost nothing; whoever sees what is rescored "
            "with them is not covered.",
        ]
    return found


def _audit_lines(audit: Mapping[str, Any]) -> str:
    rows = [
        {
            "attacked": name.replace("_", " "),
            "claimed epsilon": f"{audit[name]['claimed_epsilon']:.3g}",
            "lower bound": f"{audit[name]['epsilon_lower']:.3g}",
            "a tenth of the noise": f"{audit[name]['epsilon_lower_broken']:.3g}",
            "the audit": str(audit[name]["verdict"]),
        }
        for name in ("heaviest_unit", "rarest_word")
        if name in audit
    ]
    worth = audit["published"]
    return (
        f"Audit of the release for each {audit['unit']}\n\n{table(rows)}\nEq. 8-9 called epsilon "
        f"{worth['called']:g} come to {worth['average']:.3g} for an average {audit['unit']} of these data "
        f"and to {worth['largest']:.3g} for the heaviest (for the owner: this looks at the data).\n"
    )
