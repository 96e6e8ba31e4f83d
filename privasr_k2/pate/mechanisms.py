"""Settings of a release of answers and their privacy cost, complete before any vote is read.

Votes get exact discrete noise, posteriors rounded Gaussian or Laplace noise. Noise is in votes,
also for posteriors, which are summed over teachers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from privasr_k2.constraints import Checked, Choices, Delta, FiniteOrZero, Natural, Positive, one_of
from privasr_k2.errors import ConfigError, PrivacyError
from privasr_k2.pate.published import BY_EQUATION, BY_FIGURES, published_noise
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Epsilon, Relation, account
from privasr_k2.privacy.calibration import count_for, noise_for
from privasr_k2.privacy.pate.mechanisms import Amounts, all_mechanisms, mechanism
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.privacy.spending import shown

UNPUBLISHED = "none"
# A unit is in one shard: without its data one teacher votes otherwise, or not.
RELATION = Relation.ADD_OR_REMOVE_ONE


@dataclass(frozen=True)
class MechanismConfig(Checked):
    """A release of answers; ``conf/pate.yaml#pate`` explains the values."""

    data: str
    mechanism: Annotated[str, Choices(all_mechanisms)]
    epsilon: Positive
    delta: Delta
    published_scale: Annotated[str, one_of(UNPUBLISHED, BY_EQUATION, BY_FIGURES)]
    noise: FiniteOrZero
    max_answers: Natural
    max_sigma: FiniteOrZero
    min_answers: Natural
    max_queries: Natural
    threshold: float
    threshold_ratio: float

    def __post_init__(self) -> None:
        super().__post_init__()
        checked = mechanism(self.mechanism).needs_threshold
        published = self.published_scale != UNPUBLISHED
        if checked and not (self.threshold > 0 and self.threshold_ratio > 0):
            raise ValueError(f"threshold and threshold_ratio must be above 0 for {self.mechanism}")
        if math.isinf(self.epsilon) and self.noise > 0:
            raise ValueError(f"noise must be 0 where epsilon is infinite, got {self.noise}")
        if self.max_sigma > 0 and (self.noise > 0 or self.min_answers < 1 or published):
            raise ValueError(
                "with max_sigma, noise must be 0, published_scale none and min_answers above 0,"
                f" got {self.noise}, {self.published_scale}, {self.min_answers}"
            )
        if published and (self.noise > 0 or checked):
            raise ValueError("published_scale must be none with noise above 0, or with a threshold")

    @property
    def claims(self) -> bool:
        """Whether noise is added, and a guarantee claimed."""
        return math.isfinite(self.epsilon)


@dataclass(frozen=True)
class Setting:
    """The mechanism, its noise and its limits, with the cost.

    Attributes:
        noise, threshold, threshold_noise: in votes; 0 where there is none.
        max_queries, max_answers: most queries, and answers.
        change: what one unit changes in a query.
        event: of the whole release; None without noise.
        epsilon: its cost; None without noise.
    """

    mechanism: str
    noise: float
    threshold: float
    threshold_noise: float
    max_queries: int
    max_answers: int
    change: Change
    event: events.Event | None
    epsilon: Epsilon | None

    def lines(self, what: str) -> list[str]:
        """The settings and their cost as text; ``what`` is voted on."""
        if self.event is None or self.epsilon is None:
            return [f"{self.max_answers:,} votes on {what}, without noise: NO GUARANTEE"]
        checked = ""
        if mechanism(self.mechanism).needs_threshold:
            checked = f", of {self.max_queries:,} queries with threshold {self.threshold:g}"
            checked += f" (noise {self.threshold_noise:.6g})"
        pld = "none for this" if self.epsilon.pld is None else shown(self.epsilon.pld)
        rdp, delta = shown(self.epsilon.rdp), self.epsilon.delta
        noise = f"{self.mechanism}, noise {self.noise:.6g} votes, sensitivity {self.change.l2:.3g}"
        return [
            f"at most {self.max_answers:,} votes on {what} are answered{checked}: {noise}",
            f"epsilon (RDP) {rdp}, (PLD) {pld} at delta {delta:g}",
        ]


def make_setting(
    config: MechanismConfig,
    *,
    teachers: int,
    available: int,
    largest_weight: float,
    utterances: int,
    change: Change = Change.MOVES,
) -> Setting:
    """The settings for an ensemble and a pool. Reads no votes.

    Args:
        teachers: I.
        available: queries that the pool allows.
        largest_weight: of a teacher in the sum of posteriors, in votes: I times its weight.
        utterances: that the queries are about, K of [yang2022].
        change: what one unit changes in a query.

    Raises:
        ConfigError: a threshold above the number of teachers.
        PrivacyError: noise and answers that exceed epsilon, or an epsilon that allows no answer.
    """
    chosen = mechanism(config.mechanism)
    if chosen.needs_threshold and config.threshold > teachers:
        expected = f"at most {teachers}, the number of teachers"
        raise ConfigError("threshold", expected, f"{config.threshold:g}", "lower it")
    if available < 1:
        raise ConfigError("the pool", "something to vote on", "nothing", "give a larger pool")
    asked = min(config.max_queries or available, available)
    answers = min(config.max_answers or asked, asked)
    if not config.claims:
        caps = (asked, answers, change)
        return Setting(config.mechanism, 0.0, config.threshold, 0.0, *caps, None, None)
    ratio = config.threshold_ratio if chosen.needs_threshold else 0.0

    def make(noise: float, count: int) -> events.Event:
        checks = (max(asked, count), ratio * noise)
        return chosen.event(Amounts(noise, count, *checks, largest_weight, change))

    target: Any = dict(epsilon=config.epsilon, delta=config.delta, relation=RELATION)
    noise = config.noise
    if config.published_scale != UNPUBLISHED:
        most = min(utterances, answers)
        noise = published_noise(config.epsilon, most, config.published_scale)
    elif noise == 0:
        noise = noise_for(lambda value: make(value, answers), **target)
        if 0 < config.max_sigma < noise:
            affordable = count_for(lambda count: make(config.max_sigma, count), **target)
            answers = max(affordable, min(config.min_answers, answers))
            noise = noise_for(lambda value: make(value, answers), **target)
    else:
        within = account(make(noise, answers), RELATION, config.delta).value <= config.epsilon
        affordable = answers if within else count_for(lambda count: make(noise, count), **target)
        if affordable == 0 or affordable < min(config.max_answers, answers):
            raise PrivacyError(
                f"epsilon {config.epsilon:g} at delta {config.delta:g}",
                f"{config.max_answers or 1:,} answers with noise {noise:g}",
                f"{affordable:,} that it buys",
                "more noise or epsilon, fewer answers (0: as many as it buys) or queries (asked)",
            )
        answers = min(answers, affordable)
    event = make(noise, answers)
    threshold = config.threshold if chosen.needs_threshold else 0.0
    queries = asked if chosen.needs_threshold else answers
    cost = account(event, RELATION, config.delta)
    caps = (ratio * noise, queries, answers, change)
    return Setting(config.mechanism, noise, threshold, *caps, event, cost)
