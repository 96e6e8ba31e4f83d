"""Perplexities of language models, and what was chosen on dev."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.randomness import stream
from privasr_k2.report.measures import Context, Measure, Paired, Reading, Tested
from privasr_k2.scoring.bootstrap import ratio_difference, ratio_interval


@dataclass(frozen=True)
class GroupNats:
    """-sum of log P of each group of sentences (speaker, call, client), and its number of
    predictions.
    """

    place: str
    groups: Mapping[str, tuple[float, int]]
    context: Context

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """(G,) nats and (G,) predictions, groups sorted by name."""
        ordered = [self.groups[name] for name in sorted(self.groups)]
        return np.array([nats for nats, _ in ordered]), np.array([count for _, count in ordered])

    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """Of the perplexity, groups drawn with replacement."""
        of = self.context
        ratio = ratio_interval(
            *self.arrays,
            stream(of.seed, "perplexity"),
            num_replicates=of.num_replicates,
            confidence=of.confidence,
        )
        return (None, None) if ratio is None else (math.exp(ratio.low), math.exp(ratio.high))

    def against(self, other: Paired) -> Tested | None:
        """Relative change of the perplexity in per cent, both models on the same draws of
        groups.
        """
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
        value, low, high = (
            100 * math.expm1(one) for one in (test.value, test.interval.low, test.interval.high)
        )
        return Tested("ppl_change", value, low, high, test.p_value, len(counts))


def perplexity(path: str, context: Context) -> Reading:
    """``FILE#KEY``: of verb ``perplexity``, the model whose path, or the last name of it, is the
    key.
    """
    file, _, key = path.partition("#")
    records = read_json(Path(file))["lms"]
    of_model = [one for one in records if one["lm"] == key] or [
        one for one in records if Path(one["lm"]).name == key
    ]
    if len(of_model) != 1:
        known = ", ".join(str(one["lm"]) for one in records)
        raise DataError(file, f"one of {known}", f"{len(of_model)} of {key!r}", "name FILE#LM")
    record = of_model[0]
    ends: tuple[float | None, float | None] = (None, None)
    pairs: dict[tuple[str, str], Paired] = {}
    if record.get("groups"):
        groups = {
            name: (float(nats), int(count)) for name, (nats, count) in record["groups"].items()
        }
        paired = GroupNats(path, groups, context)
        pairs["", "ppl"], ends = paired, paired.interval()
    measures = [
        Measure("ppl", float(record["ppl"]), *ends),
        Measure("ppl_with_oov", record["ppl_with_oov"]),
    ]
    measures += [
        Measure(f"ppl_{name}", int(record[name])) for name in ("words", "sentences", "oov")
    ]
    return Reading(tuple(measures), pairs)


def weights(path: str, context: Context) -> Reading:
    """Read the choice of a verb that tunes weights, such as ``tune_weights`` or ``adapt_lm``."""
    content = read_json(Path(path))
    keys = set(content)
    for needed, reader in (
        ("grid", _recognizer), ("criterion", _marginals), ("beta", _adapted), ("form", _mixture)
    ):  # fmt: skip
        if needed in keys:
            return Reading(tuple(reader(content, context)))
    raise KeyError("grid, criterion, beta or form")


def _recognizer(content: Mapping[str, Any], context: Context) -> Iterator[Measure]:
    yield Measure("lm_weight", float(content["lm_weight"]))
    yield Measure("insertion_penalty", float(content["insertion_penalty"]))
    if "lms" in content:
        used = [
            f"{w:g} {name}" for name, w in zip(content["lms"], content["lambdas"], strict=True) if w
        ]
        yield Measure("lms", " + ".join(used))
        yield Measure("form", content["interpolation"].replace("_", "-"))
        words = content["ref_words"]
        yield Measure("dev_wer", 100.0 * content["errors"] / words if words else None)
    else:
        yield Measure("dev_wer", content["wer_percent"])
    yield Measure("at_edge", ", ".join(edge.replace("_", " ") for edge in content["edges"]) or "no")


def _adapted(content: Mapping[str, Any], context: Context) -> Iterator[Measure]:
    equation, beta = content["equation"], float(content["beta"])
    tried = {
        float(one["beta"]): float(one["ppl"])
        for one in content["tried"]
        if one.get("equation", equation) == equation
    }
    yield Measure("form", f"equation {equation}")
    yield Measure("beta_adapt", beta)
    yield Measure("dev_ppl", tried.get(beta))
    yield Measure("at_edge", "yes" if len(tried) > 1 and beta in (min(tried), max(tried)) else "no")


def _mixture(content: Mapping[str, Any], context: Context) -> Iterator[Measure]:
    names = [Path(one["lm"]).name.partition(".")[0] for one in content["lms"]]
    shares = [f"{float(one['weight']):.3f} {name}" for one, name in zip(content["lms"], names)]
    yield Measure("lms", " + ".join(shares))
    yield Measure("form", str(content["form"]))
    yield Measure("criterion", str(content["chosen_by"]))
    yield Measure("dev_ppl", content["dev_ppl"])


def _marginals(content: Mapping[str, Any], context: Context) -> Iterator[Measure]:
    yield Measure("lam", float(content["lam"]))
    for metric, key in (
        ("alpha", "alpha"),
        ("beta", "beta"),
        ("kernel_bandwidth", "kernel_bandwidth"),
    ):
        if key in content:
            yield Measure(metric, float(content[key]))
    yield Measure("criterion", str(content["criterion"]))
    yield Measure("at_edge", "lambda" if content.get("at_end") else "no")
