"""The law of people: which error rate DP-SGD would have with other numbers of people.

The mean update of N people has noise of standard deviation sigma C / N in each direction: sigma is
the noise multiplier, C the clip. So DP-SGD of N people at some epsilon hears the speech of those N,
and meets the relative noise sigma / N. One set of people at several epsilons shows how the error
rate rises with it, and says what is to be expected of any other number of people at the noise that
they would have. That other numbers of people bring more speech, or less, is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from privasr_k2.report.results import Row

KIND, METRIC, MEASURED = "projection", "projected_wer", "measured_wer"
#: Settings that two systems of one law share.
_ALIKE = ("trained_parameters", "steps", "clip")


class Measured(NamedTuple):
    """A system of the law: its people, the noise multiplier, and its error rate."""

    people: int
    noise: float
    wer: float
    row: Row


def law(measured: Sequence[Measured], people: int, noise: float) -> float | None:
    """The error rate of ``people`` with a noise multiplier, by those of most people.

    Linear in the relative noise between two measured ones; ``None`` outside of them.

    Args:
        measured: systems of one model, at several epsilons; those of most people count.

    >>> row = None
    >>> at = [Measured(100, 0.0, 20.0, row), Measured(100, 2.0, 24.0, row)]
    >>> law(at, 200, 2.0), law(at, 50, 2.0)
    (22.0, None)
    """
    most = max(each.people for each in measured)
    known = sorted((each.noise / most, each.wer) for each in measured if each.people == most)
    relative = noise / people
    noises, rates = np.array(known).T
    if not noises[0] <= relative <= noises[-1]:
        return None
    return float(np.interp(relative, noises, rates))


def projections(rows: Iterable[Row], further: Sequence[int]) -> Iterator[Row]:
    """Rows of the law, for every measured number of people and for ``further`` ones.

    The item is the number of people. Of those who were measured, the row shows how well the law
    holds; those of most people are on it by themselves and left out.

    Args:
        rows: figures of a report; without systems of two numbers of people there is no law.
        further: numbers of people that nobody has measured.
    """
    rows = list(rows)
    values = {
        (row.system, row.metric): row.value for row in rows if row.kind in ("dpsgd", "people")
    }
    groups: dict[tuple[object, ...], list[Measured]] = {}
    for row in rows:
        people = values.get((row.system, "people"))
        if people is None or row.against or row.group or row.item:
            continue
        if (row.kind, row.metric) != ("score_test", "wer") or row.value is None:
            continue
        noise = values.get((row.system, "noise_multiplier"))
        if noise is not None:
            alike = (values[row.system, name] for name in _ALIKE)
            found = Measured(int(people), float(noise), float(row.value), row)
            groups.setdefault((row.part, row.facts.get("model"), *alike), []).append(found)
    for measured in groups.values():
        numbers = sorted({each.people for each in measured})
        if len(numbers) < 2:
            continue
        of_most = [each for each in measured if each.people == numbers[-1] and each.noise > 0]
        for each in of_most:
            same = {other.people: other.wer for other in measured if other.noise == each.noise}
            for people in sorted({*numbers, *further} - {numbers[-1]}):
                wer = law(measured, people, each.noise)
                drawn = dict.fromkeys(("low", "high", "clusters"))
                base = replace(each.row, kind=KIND, item=str(people), **drawn)
                if wer is not None:
                    yield replace(base, metric=METRIC, value=wer)
                if people in same:
                    yield replace(base, metric=MEASURED, value=same[people])
