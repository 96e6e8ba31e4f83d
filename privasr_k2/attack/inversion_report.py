"""The report on inversions: whom they resemble, and what a random model gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from privasr_k2.attack.inversion_files import Inversion
from privasr_k2.attack.occurrences import Occurrence, by_speaker
from privasr_k2.attack.pictures import mel_spectrogram
from privasr_k2.attack.settings import InversionReportConfig
from privasr_k2.attack.similarity import (
    Advantage,
    Distances,
    advantage,
    minus,
    prepared,
    warped_distances,
)
from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.scoring.holm import holm

Occurrences = Mapping[str, Sequence[Occurrence]]


@dataclass(frozen=True)
class Result:
    """Results of one inversion; the advantages are None where speakers are too few."""

    inversion: Inversion
    words: tuple[str, ...]
    alone: Advantage | None
    less_control: Advantage | None


def distances(inversion: Inversion, found: Occurrences, *, utterance_mean: bool) -> Distances:
    """Speaker -> word -> mean distance of the speaker's occurrences to the inverted word."""
    by_word: dict[str, dict[str, float]] = {}

    def scaled(features: np.ndarray) -> np.ndarray:
        return prepared(features, inversion.deviation, utterance_mean=utterance_mean)

    for word, speakers in by_speaker(found).items():
        if word not in inversion.words:
            continue
        inverted = scaled(inversion.words[word].features)
        for speaker, occurrences in speakers.items():
            spoken = [scaled(occurrence.features) for occurrence in occurrences]
            apart = warped_distances(inverted, spoken)
            by_word.setdefault(speaker, {})[word] = float(apart.mean())
    return by_word


def check_apart(members: Occurrences, others: Occurrences, name: str) -> None:
    """Refuse others who are members.

    Raises:
        DataError: a speaker of both.
    """

    def speakers(group: Occurrences) -> set[str]:
        return {occurrence.speaker for occurrence in chain(*group.values())}

    both = sorted(speakers(members) & speakers(others))
    if both:
        place, expected = f"--in-others, for {name}", "speakers who are not in the training"
        found = f"{len(both)} speakers in both, {', '.join(both[:3])}"
        raise DataError(place, expected, found, "name another folder")


def examine(
    inversions: Sequence[Inversion],
    members: Sequence[Occurrences],
    others: Occurrences,
    config: InversionReportConfig,
) -> list[Result]:
    """The advantages of all inversions.

    Args:
        members: for each inversion, where members of the attacked model's training said the words.
        others: where speakers said them who are in no training.

    Raises:
        DataError: a speaker who is both.
    """
    results = []
    for inversion, of_members in zip(inversions, members, strict=True):
        check_apart(of_members, others, inversion.name)

        def measured(
            other: Inversion, of_members: Occurrences = of_members
        ) -> tuple[Distances, Distances]:
            mean = {"utterance_mean": config.utterance_mean}
            return distances(other, of_members, **mean), distances(other, others, **mean)

        def tested(pair: tuple[Distances, Distances], *names: str) -> Advantage | None:
            return advantage(
                *pair, stream(config.seed, "advantage", *names), permutations=config.permutations,
                replicates=config.replicates, confidence=config.confidence,
            )  # fmt: skip

        measures = measured(inversion)
        control = next((other for other in inversions if _controls(other, inversion)), None)
        less = None
        if control is not None:
            pair = tuple(minus(a, b) for a, b in zip(measures, measured(control)))
            less = tested(pair, inversion.name, "less control")  # type: ignore[arg-type]
        words = tuple(sorted(w for w in inversion.words if of_members.get(w) and others.get(w)))
        results.append(Result(inversion, words, tested(measures, inversion.name), less))
    return results


def _controls(one: Inversion, of: Inversion) -> bool:
    return one.control and not of.control and one.config["attack"] == of.config["attack"]


def panels(
    inversions: Sequence[Inversion], members: Sequence[Occurrences], config: InversionReportConfig
) -> list[tuple[str, list[tuple[str, np.ndarray]]]]:
    """For each word a member's utterance and all inversions of it, as log-mel energies.

    The utterance is the one that is closest to the first inversion.
    """
    first, rows = inversions[0], []

    def scaled(features: np.ndarray) -> np.ndarray:
        return prepared(features, first.deviation, utterance_mean=config.utterance_mean)

    for word, inverted in first.words.items():
        having = [each for each in inversions if word in each.words]
        shown = [(each.name, each.words[word].features) for each in having]
        if occurrences := members[0].get(word):
            spoken = [scaled(each.features) for each in occurrences]
            apart = warped_distances(scaled(inverted.features), spoken)
            nearest = occurrences[int(apart.argmin())]
            shown.insert(0, (f"said by {nearest.speaker}", nearest.features))
        mel = {"mel_bins": config.mel_bins, "lifter": config.lifter}
        rows.append((word, [(name, mel_spectrogram(values, **mel)) for name, values in shown]))
    return rows


def report_values(results: Sequence[Result], config: InversionReportConfig) -> dict[str, Any]:
    """The results as plain values, by system."""
    return {
        "confidence": config.confidence,
        "systems": {
            result.inversion.name: {
                "attack": result.inversion.config["attack"],
                "control": result.inversion.control,
                "models": result.inversion.models,
                "words": list(result.words),
                **_scores(result.inversion),
                "alone": _test(result.alone, p),
                "less_control": _test(result.less_control, p_less),
            }
            for result, (p, p_less) in zip(results, _corrected(results), strict=True)
        },
    }


def _test(test: Advantage | None, p: float | None) -> dict[str, Any] | None:
    if test is None:
        return None
    names = ("members", "others", "member_distance", "other_distance")
    values = {name: getattr(test, name) for name in names}
    interval = None if test.low is None else [test.low, test.high]
    return {**values, "advantage": test.value, "interval": interval, "p": test.p_value, "p_holm": p}


def _scores(inversion: Inversion) -> dict[str, float]:
    """Means over its words, in nats, and the most queries."""
    inverted = list(inversion.words.values())
    return {
        "log_likelihood": float(np.mean([word.log_likelihood for word in inverted])),
        "begun_at": float(np.mean([word.begun_at for word in inverted])),
        "queries": max(word.queries for word in inverted),
    }


def _corrected(results: Sequence[Result]) -> list[tuple[float | None, float | None]]:
    """Holm's p-values of each result's two tests, over all of them."""
    tests = [test for result in results for test in (result.alone, result.less_control)]
    corrected = holm([None if test is None else test.p_value for test in tests])
    return list(zip(corrected[::2], corrected[1::2]))
