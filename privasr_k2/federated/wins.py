"""For whom a system is the best one: people by how much they said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privasr_k2.constraints import Checked, Count
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.scoring.counts import ErrorCounts

#: Of each person the total, such as errors or nats, and what it is of, such as words.
Figures = Mapping[str, tuple[float, int]]

#: Totals that differ less, by what they are of, are alike: such is the rounding of scores.
ALIKE = 1e-5


@dataclass(frozen=True)
class WinsConfig(Checked):
    """See ``conf/personal.yaml#wins``."""

    groups: Count


@dataclass(frozen=True)
class Wins:
    """People of one group.

    Attributes:
        group: who they are; empty: all.
        people: how many.
        best: system -> for how many it is better than every other system.
        better: system -> for how many it is better than the first system.
        rate: system -> total by what it is of, of all of them together.
    """

    group: str
    people: int
    best: Mapping[str, int]
    better: Mapping[str, int]
    rate: Mapping[str, float]


def wins(systems: Mapping[str, Figures], groups: int) -> list[Wins]:
    """All people, then equally large groups of them by what the totals are of.

    Where several systems are the best alike, none is the best.

    Args:
        systems: by name; the first one is what others are compared with.

    Raises:
        DataError: systems of other people, or of other words.

    >>> found = wins({"a": {"x": (2.0, 9), "y": (1.0, 5)}, "b": {"x": (1.0, 9), "y": (1.0, 5)}}, 2)
    >>> [(of.group, of.people, of.best["b"]) for of in found]
    [('', 2, 1), ('up to 5 words', 1, 0), ('from 9 words', 1, 1)]
    """
    names, people = [*systems], sorted(next(iter(systems.values())))
    for name, figures in systems.items():
        others = systems[names[0]]
        if sorted(figures) != people or any(figures[of][1] != others[of][1] for of in people):
            expected = f"the people and words of {names[0]}"
            raise DataError(name, expected, "others", "score both on one text")
    totals = np.array([[systems[name][of][0] for of in people] for name in names])
    words = np.array([systems[names[0]][of][1] for of in people])
    least = np.sort(totals, axis=0)[: 2 if len(names) > 1 else 1]
    is_best = (totals == least[0]) & (least[-1] - least[0] > ALIKE * words)
    is_better = totals[0] - totals > ALIKE * words
    found = [("", np.arange(len(people)))]
    order = np.argsort(words, kind="stable")
    for place, own in enumerate(np.array_split(order, groups) if groups > 1 else ()):
        low, high = words[own[0]], words[own[-1]]
        text = f"{low:,} to {high:,} words"
        if place == 0:
            text = f"up to {high:,} words"
        elif place == groups - 1:
            text = f"from {low:,} words"
        found.append((text, own))
    return [
        Wins(
            group,
            len(own),
            dict(zip(names, is_best[:, own].sum(axis=1).tolist())),
            dict(zip(names, is_better[:, own].sum(axis=1).tolist())),
            dict(zip(names, (totals[:, own].sum(axis=1) / max(1, words[own].sum())).tolist())),
        )
        for group, own in found
    ]


def of_run(path: Path) -> Figures:
    """Nats of each client in a ``run_<role>.json`` of ``personalize``.

    Raises:
        DataError: its scores are not normalized.
    """
    figures = read_json(path).get("perplexity")
    if figures is None:
        raise DataError(path, "perplexities", "none", "score with normalized=true")
    return {
        name: (float(sum(of["nats"])), int(sum(of["tokens"])))
        for name, of in figures["clients"].items()
    }


def of_scores(path: Path) -> Figures:
    """Errors of each speaker in a folder ``score_<role>`` of ``wer``."""
    totals: dict[str, tuple[float, int]] = {}
    for part in read_json(path / "wer.json")["parts"].values():
        for name, record in part["speakers"].items():
            counts, (errors, words) = ErrorCounts.from_dict(record), totals.get(name, (0.0, 0))
            totals[name] = (errors + counts.errors, words + counts.ref_words)
    return totals
