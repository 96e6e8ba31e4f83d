"""Queries per epsilon, before any training: the most noise with which a majority still wins.

For one query with counts n_1, ..., n_C and independent discrete noise, with ties broken at random
by u in [0, 1), the first class wins with the chance

    sum_k P(k) integral over u of prod_{c > 1} (F(k + n_1 - n_c - 1) + u P(k + n_1 - n_c)),

with P(k) and F(k) the chances that the noise is k, and k or less. The exponential mechanism has its
chances in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Interval, MinLen

from privasr_k2.constraints import Checked, Choices, Count, Delta, Finite
from privasr_k2.errors import PrivacyError
from privasr_k2.pate.mechanisms import RELATION
from privasr_k2.privacy import checks
from privasr_k2.privacy.accounting import Epsilon, account
from privasr_k2.privacy.calibration import count_for
from privasr_k2.privacy.events import Event
from privasr_k2.privacy.pate.mechanisms import Amounts, all_mechanisms, mechanism
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.privacy.spending import shown

_PRECISION = 1e-4
_NODES, _WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(24))  # type: ignore[no-untyped-call]
_NODES = _NODES + 0.5


def _planned() -> list[str]:
    return [name for name in all_mechanisms() if mechanism(name).is_planned]


@dataclass(frozen=True)
class VotePlanConfig(Checked):
    """Settings of a plan; ``conf/pate.yaml#vote_plan`` explains the values."""

    kind: str
    mechanism: Annotated[str, Choices(_planned)]
    teachers: Annotated[list[Annotated[int, Ge(2)]], MinLen(1)]
    units_in_a_shard: Count
    classes: Annotated[int, Ge(2)]
    agreement: Annotated[list[Annotated[float, Interval(gt=0.5, le=1)]], MinLen(1)]
    correct: Annotated[float, Interval(gt=0, lt=1)]
    epsilon: Annotated[list[Finite], MinLen(1)]
    delta: Delta


@dataclass(frozen=True)
class VotePlan:
    """Queries per epsilon of one ensemble."""

    teachers: int
    units_in_a_shard: int
    agreement: float
    epsilon_asked: float
    noise: float
    votes: int
    epsilon: Epsilon

    def line(self) -> str:
        """For people."""
        most = "1 unit" if self.units_in_a_shard == 1 else f"{self.units_in_a_shard} units or more"
        ensemble = f"{self.teachers:,} teachers of {most}, {100 * self.agreement:g} % agree"
        cost = f"epsilon {shown(self.epsilon.value)} at delta {self.epsilon.delta:g}"
        votes = f"{self.votes:,} votes with noise {self.noise:.4g} ({cost})"
        return f"{ensemble}, epsilon {self.epsilon_asked:g}: {votes}"

    def to_json(self) -> dict[str, float | int]:
        """The plan as plain values."""
        return {**vars(self), "epsilon": self.epsilon.value, "delta": self.epsilon.delta}


def winning_chance(counts: Sequence[int], name: str, noise: float) -> float:
    """The chance that the first class of one query wins.

    Args:
        counts: of C classes, two or more.
        name: of a mechanism that is planned.
        noise: standard deviation or scale, in votes; above 0.

    >>> round(winning_chance([15] + [0] * 499, "gnmax", 3.112), 3)
    0.95
    """
    noise = checks.number("noise", noise, above=0)
    first, others = counts[0], np.asarray(counts[1:])
    chosen = mechanism(name)
    if chosen.chances is not None:
        return float(chosen.chances(np.asarray(counts), noise)[0])
    assert chosen.exponent is not None
    reach = max(2, math.ceil(chosen.tail * noise))
    steps = np.arange(-reach, reach + 1)
    chances = np.exp(-chosen.exponent(steps, noise))
    chances /= chances.sum()
    # A last column for whatever is beyond all steps.
    below, here = np.append(0.0, chances.cumsum()), np.append(chances, 0.0)
    different, times = np.unique(first - others, return_counts=True)
    lead = np.arange(len(steps))[:, None] + different  # (K, L): where another class would tie
    places = np.clip(lead, 0, len(steps))
    tied = np.where(lead == places, here[places], 0.0)[..., None]
    with np.errstate(divide="ignore"):
        smaller = np.log(below[places][..., None] + _NODES * tied)
    beaten = np.exp(np.einsum("klu,l->ku", smaller, times)) @ _WEIGHTS
    return float(chances @ beaten)


def largest_noise(counts: Sequence[int], name: str, correct: float) -> float:
    """The most noise with which the first class wins by the chance ``correct``, less 0.01 %.

    Raises:
        PrivacyError: it does not win so often with noise of 0.05 votes.
    """
    low, high = 0.05, 0.1
    if winning_chance(counts, name, low) < correct:
        counted = f"{counts[0]} votes against {counts[1]}"
        expected = f"a noise that lets the first win {100 * correct:g} % of the time"
        way_out = "take more teachers, or expect more agreement"
        raise PrivacyError(counted, expected, "none", way_out)
    while winning_chance(counts, name, high) >= correct:
        low, high = high, 2 * high
    while high / low > 1 + _PRECISION:
        middle = (low * high) ** 0.5
        if winning_chance(counts, name, middle) >= correct:
            low = middle
        else:
            high = middle
    return low


def plan_votes(
    config: VotePlanConfig, units_in_a_shard: Mapping[int, int] | None = None
) -> list[VotePlan]:
    """A plan for every number of teachers, agreement and epsilon.

    Args:
        units_in_a_shard: teachers -> the largest number of units in a shard, where it is not that
            of the configuration.

    Raises:
        PrivacyError: a majority that no noise leaves alone.

    >>> unanimous = VotePlanConfig("queries", "gnmax", [15], 2, 500, [1.0], 0.95, [8.0], 1e-5)
    >>> [plan] = plan_votes(unanimous)
    >>> plan.votes, round(plan.noise, 3), [plan.votes for plan in plan_votes(unanimous, {15: 1})]
    (13, 3.113, [26])
    """
    plans = []
    for teachers in config.teachers:
        most = (units_in_a_shard or {}).get(teachers, config.units_in_a_shard)
        change = Change.of(most)
        for agreement in config.agreement:
            first = round(agreement * teachers)
            counts = [first, teachers - first, *[0] * (config.classes - 2)]
            noise = largest_noise(counts, config.mechanism, config.correct)

            def event(count: int, noise: float = noise, change: Change = change) -> Event:
                amounts = Amounts(noise, count, count, change=change)
                return mechanism(config.mechanism).event(amounts)

            for epsilon in config.epsilon:
                votes = count_for(event, epsilon=epsilon, delta=config.delta, relation=RELATION)
                cost = account(event(votes), RELATION, config.delta)
                found = (first / teachers, epsilon, noise, votes, cost)
                plans.append(VotePlan(teachers, most, *found))
    return plans
