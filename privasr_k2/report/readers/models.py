"""Perplexities of language models, and what was chosen on dev."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.randomness import stream
from privasr_k2.report.measures import Context, Measure, Paired, Reading, Tested
from privasr_k2.scoring.bootstrap import clusters_of, ratio_difference, ratio_interval


@dataclass(frozen=True)
class GroupNats:
    """-sum of log P, and predictions, of each group of sentences (speaker, call, client)."""

    place: str
    groups: Mapping[str, tuple[float, int]]
    context: Context

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """(G,) nats and (G,) predictions, groups sorted by name."""
        ordered = [self.groups[name] for name in sorted(self.groups)]
        return np.array([nats for nats, _ in ordered]), np.array([count for _, count in ordered])

    def measure(self, value: float) -> Measure:
        """The perplexity with its interval, groups drawn with replacement."""
        of = self.context
        ratio = ratio_interval(
            *self.arrays,
            stream(of.seed, "perplexity"),
            num_replicates=of.num_replicates,
            confidence=of.confidence,
        )
        ends = None if ratio is None else (math.exp(ratio.low), math.exp(ratio.high))
        return Measure.drawn("ppl", value, ends, clusters_of(self.arrays[1]))

    def against(self, other: Paired) -> Tested | None:
        """Relative change of the perplexity in per cent, on the same draws of groups."""
        if not isinstance(other, GroupNats):
            return None
        (ours, counts), (theirs, others) = self.arrays, other.arrays
        if sorted(self.groups) != sorted(other.groups) or not np.array_equal(counts, others):
            expected = f"the groups and predictions of {other.place}"
            way_out = "compute both on one text with one vocabulary"
            raise DataError(self.place, expected, "others", way_out)
        of = self.context
        test = ratio_difference(
            ours - theirs,
            counts,
            stream(of.seed, "perplexity"),
            num_replicates=of.num_replicates,
            confidence=of.confidence,
        )
        if test is None:
            return None
        ends = None if test.interval is None else (test.interval.low, test.interval.high)
        low, high = (None, None) if ends is None else map(_percent, ends)
        change, drawn_from = _percent(test.value), clusters_of(counts)
        return Tested("ppl_change", change, low, high, test.p_value, len(counts), drawn_from)


def _percent(nats: float) -> float:
    """The relative change of a perplexity whose logarithm changes by ``nats``."""
    return 100 * math.expm1(nats)


def perplexity(path: str, context: Context) -> Reading:
    """``FILE#KEY``: a model of verb ``perplexity`` by its path, or the last name of it."""
    file, _, key = path.partition("#")
    records = read_json(Path(file))["lms"]
    of_model = [record for record in records if record["lm"] == key]
    of_model = of_model or [record for record in records if Path(record["lm"]).name == key]
    if len(of_model) != 1:
        known = ", ".join(str(record["lm"]) for record in records)
        raise DataError(file, f"one of {known}", f"{len(of_model)} of {key!r}", "name FILE#LM")
    record = of_model[0]
    ppl = Measure("ppl", float(record["ppl"]))
    pairs: dict[tuple[str, str], Paired] = {}
    if record.get("groups"):
        found = record["groups"].items()
        groups = {name: (float(nats), int(count)) for name, (nats, count) in found}
        paired = GroupNats(path, groups, context)
        pairs["", "ppl"], ppl = paired, paired.measure(float(record["ppl"]))
    counts = {f"ppl_{name}": int(record[name]) for name in ("words", "sentences", "oov")}
    values = {"ppl_with_oov": record["ppl_with_oov"], **counts}
    others = (Measure(metric, value) for metric, value in values.items())
    return Reading((ppl, *others), pairs)


def weights(path: str, context: Context) -> Reading:
    """Read the choice of a verb that tunes weights, such as ``tune_weights`` or ``adapt_lm``."""
    content = read_json(Path(path))
    readers = {"grid": _recognizer, "criterion": _marginals, "beta": _adapted, "form": _mixture}
    for key, reader in readers.items():
        if key in content:
            return Reading(tuple(reader(content)))
    raise KeyError("grid, criterion, beta or form")


def _recognizer(content: Mapping[str, Any]) -> Iterator[Measure]:
    yield Measure("lm_weight", float(content["lm_weight"]))
    yield Measure("insertion_penalty", float(content["insertion_penalty"]))
    if "lms" in content:
        shares = zip(content["lms"], content["lambdas"], strict=True)
        yield Measure("lms", " + ".join(f"{share:g} {name}" for name, share in shares if share))
        yield Measure("form", content["interpolation"].replace("_", "-"))
        words = content["ref_words"]
        yield Measure("dev_wer", 100.0 * content["errors"] / words if words else None)
    else:
        yield Measure("dev_wer", content["wer_percent"])
    yield Measure("at_edge", ", ".join(edge.replace("_", " ") for edge in content["edges"]) or "no")


def _adapted(content: Mapping[str, Any]) -> Iterator[Measure]:
    equation, beta = content["equation"], float(content["beta"])
    points = (of for of in content["tried"] if of.get("equation", equation) == equation)
    tried = {float(point["beta"]): float(point["ppl"]) for point in points}
    yield Measure("form", f"equation {equation}")
    yield Measure("beta_adapt", beta)
    yield Measure("dev_ppl", tried.get(beta))
    yield Measure("at_edge", "yes" if len(tried) > 1 and beta in (min(tried), max(tried)) else "no")


def _mixture(content: Mapping[str, Any]) -> Iterator[Measure]:
    parts = [(Path(lm["lm"]).name.partition(".")[0], float(lm["weight"])) for lm in content["lms"]]
    shares = [f"{weight:.3f} {name}" for name, weight in parts]
    yield Measure("lms", " + ".join(shares))
    yield Measure("form", str(content["form"]))
    yield Measure("criterion", str(content["chosen_by"]))
    yield Measure("dev_ppl", content["dev_ppl"])


def _marginals(content: Mapping[str, Any]) -> Iterator[Measure]:
    for metric in ("lam", "strength", "alpha", "beta", "kernel_bandwidth"):
        if metric in content:
            yield Measure(metric, float(content[metric]))
    yield Measure("criterion", str(content["criterion"]))
    edge = "lambda" if "lam" in content else "strength"
    yield Measure("at_edge", edge if content.get("at_end") else "no")


def folds(path: str, context: Context) -> Reading:
    """``FOLDER``: acoustic models of a cross-validation, each with its scores on the held-out fold.

    The part of a measure is the fold, or the mean of all.
    """
    found = [read_json(file) for file in Path(path).glob("*/dev.json")]
    if not found:
        raise ValueError("no fold")
    scores = {f"fold {of['fold']}": of for of in sorted(found, key=lambda of: int(of["fold"]))}
    measures = [
        Measure(metric, factor * float(of_fold[key]), part=fold)
        for fold, of_fold in scores.items()
        for metric, key, factor in (
            ("fold_errors", "token_errors", 100.0),
            ("fold_loss", "loss", 1.0),
        )
    ]
    for metric in ("fold_errors", "fold_loss"):
        values = [float(measure.value) for measure in measures if measure.metric == metric]
        measures.append(Measure(metric, fmean(values), part="mean of the folds"))
    return Reading(tuple(measures))
