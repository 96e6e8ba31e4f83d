"""Settings of a release of answers and their privacy cost, complete before any vote is read.

Votes get exact discrete noise, posteriors rounded Gaussian or Laplace noise. Noise is in votes, for
posteriors too: they are the sum of what all teachers give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privasr_k2.errors import ConfigError, PrivacyError
from privasr_k2.pate.published import BY_EQUATION, BY_FIGURES, published_noise
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Epsilon, Relation, account
from privasr_k2.privacy.calibration import count_for, noise_for
from privasr_k2.privacy.pate.mechanisms import Amounts, all_mechanisms, mechanism
from privasr_k2.privacy.spending import shown

UNPUBLISHED = "none"
PUBLISHED_SCALES = (UNPUBLISHED, BY_EQUATION, BY_FIGURES)
RELATION = Relation.ADD_OR_REMOVE_ONE
# A unit is in one shard: without it, or with another, one teacher votes otherwise.


@dataclass(frozen=True)
class MechanismConfig:
    """A release of answers; defaults in ``conf/pate.yaml#pate``.

    Args:
        data: whose releases are added up: the private corpus and its part.
        mechanism: one of :func:`privasr_k2.privacy.pate.mechanisms.all_mechanisms`.
        epsilon: of the guarantee; infinite: no noise, no guarantee, no release.
        delta: of the guarantee.
        published_scale: ``none``; or ``equation`` or ``figures``: the noise that the paper takes
            for epsilon, by one of two readings (:mod:`privasr_k2.pate.published`). The ledger has
            its true cost.
        noise: the mechanism's standard deviation or scale, in votes; 0: computed from epsilon and
            the number of answers.
        max_answers: largest number of answers; 0: as many as epsilon allows with this noise, or all
            with noise 0.
        max_sigma: with noise 0, the largest noise, in votes: more of it would allow more answers,
            but is not taken; 0: no limit.
        min_answers: smallest number of answers, with more noise than ``max_sigma`` if necessary.
        max_queries: with a threshold, the largest number of queries; 0: all.
        threshold: votes that the largest count must reach, for mechanisms that need a threshold.
        threshold_ratio: the noise of that comparison, in units of ``noise``.
    """

    data: str
    mechanism: str
    epsilon: float
    delta: float
    published_scale: str
    noise: float
    max_answers: int
    max_sigma: float
    min_answers: int
    max_queries: int
    threshold: float
    threshold_ratio: float

    def __post_init__(self) -> None:
        if self.mechanism not in all_mechanisms():
            raise ValueError(
                f"mechanism must be one of {' '.join(all_mechanisms())}, got {self.mechanism!r}"
            )
        checked = mechanism(self.mechanism).needs_threshold
        if self.published_scale not in PUBLISHED_SCALES:
            raise ValueError(
                f"published_scale must be one of {' '.join(PUBLISHED_SCALES)}, got"
                f" {self.published_scale!r}"
            )
        if not self.epsilon > 0:
            raise ValueError(
                f"epsilon must be above 0, got {self.epsilon}: no answer costs nothing"
            )
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must be between 0 and 1, got {self.delta}")
        for name in ("noise", "max_answers", "max_sigma", "min_answers", "max_queries"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")
        if checked and not (self.threshold > 0 and self.threshold_ratio > 0):
            raise ValueError(
                f"threshold and threshold_ratio must be above 0 for {self.mechanism}, got "
                f"{self.threshold}, {self.threshold_ratio}"
            )
        if math.isinf(self.epsilon) and self.noise > 0:
            raise ValueError(f"noise must be 0 where epsilon is infinite, got {self.noise}")
        if self.max_sigma > 0 and (
            self.noise > 0 or self.min_answers < 1 or self.published_scale != UNPUBLISHED
        ):
            raise ValueError(
                "with max_sigma, noise must be 0, published_scale none and min_answers above 0,"
                f" got {self.noise}, {self.published_scale}, {self.min_answers}"
            )
        if self.published_scale != UNPUBLISHED and (self.noise > 0 or checked):
            raise ValueError("published_scale must be none with noise above 0, or with a threshold")

    @property
    def claims(self) -> bool:
        """Whether noise is added, and a guarantee claimed."""
        return math.isfinite(self.epsilon)


@dataclass(frozen=True)
class Setting:
    """The mechanism, its noise and its limits, with the cost.

    Attributes:
        mechanism: as configured.
        noise, threshold, threshold_noise: in votes; 0 where there is none.
        max_queries, max_answers: largest number of queries, and of answers.
        event: of the whole release; None without noise.
        epsilon: what it costs; None without noise.
    """

    mechanism: str
    noise: float
    threshold: float
    threshold_noise: float
    max_queries: int
    max_answers: int
    event: events.Event | None
    epsilon: Epsilon | None

    def lines(self, what: str) -> list[str]:
        """The settings and their cost as text; ``what`` is voted on."""
        if self.event is None or self.epsilon is None:
            return [f"{self.max_answers:,} votes on {what}, without noise: NO GUARANTEE"]
        checked = (
            f", of {self.max_queries:,} queries with threshold {self.threshold:g} "
            f"(noise {self.threshold_noise:.6g})"
            if mechanism(self.mechanism).needs_threshold
            else ""
        )
        pld = "none for this" if self.epsilon.pld is None else shown(self.epsilon.pld)
        return [
            (
                f"at most {self.max_answers:,} votes on {what} are answered{checked}:"
                f" {self.mechanism}, noise {self.noise:.6g} votes"
            ),
            f"epsilon (RDP) {shown(self.epsilon.rdp)}, (PLD) {pld} at delta {self.epsilon.delta:g}",
        ]


def make_setting(
    config: MechanismConfig,
    *,
    teachers: int,
    available: int,
    largest_weight: float,
    utterances: int,
) -> Setting:
    """The settings for an ensemble and a pool. Reads no votes.

    Args:
        teachers: I.
        available: queries that the pool allows.
        largest_weight: of a teacher in the sum of posteriors, in votes: I times its weight.
        utterances: that the queries are about, K of [yang2022].

    Raises:
        ConfigError: a threshold above the number of teachers.
        PrivacyError: noise and answers that exceed epsilon, or an epsilon that allows no answer.
    """
    chosen = mechanism(config.mechanism)
    if chosen.needs_threshold and config.threshold > teachers:
        raise ConfigError(
            "threshold",
            f"at most {teachers}, the number of teachers",
            f"{config.threshold:g}",
            "lower it",
        )
    if available < 1:
        raise ConfigError("the pool", "something to vote on", "nothing", "give a larger pool")
    asked = min(config.max_queries or available, available)
    answers = min(config.max_answers or asked, asked)
    if not config.claims:
        return Setting(config.mechanism, 0.0, config.threshold, 0.0, asked, answers, None, None)
    ratio = config.threshold_ratio if chosen.needs_threshold else 0.0

    def make(noise: float, count: int) -> events.Event:
        return chosen.event(Amounts(noise, count, max(asked, count), ratio * noise, largest_weight))

    target = {"epsilon": config.epsilon, "delta": config.delta, "relation": RELATION}
    noise = config.noise
    if config.published_scale != UNPUBLISHED:
        most = min(utterances, answers)
        noise = published_noise(config.epsilon, most, config.published_scale)
    elif noise == 0:
        noise = noise_for(lambda value: make(value, answers), **target)  # type: ignore[arg-type]
        if 0 < config.max_sigma < noise:
            affordable = count_for(lambda count: make(config.max_sigma, count), **target)  # type: ignore[arg-type]
            answers = max(affordable, min(config.min_answers, answers))
            noise = noise_for(lambda value: make(value, answers), **target)  # type: ignore[arg-type]
    else:
        within = account(make(noise, answers), RELATION, config.delta).value <= config.epsilon
        affordable = answers if within else count_for(lambda count: make(noise, count), **target)  # type: ignore[arg-type]
        if affordable == 0 or affordable < min(config.max_answers, answers):
            raise PrivacyError(
                f"epsilon {config.epsilon:g} at delta {config.delta:g}",
                f"{config.max_answers or 1:,} answers with noise {noise:g}",
                f"{affordable:,} that it buys",
                "more noise, fewer answers (0: as many as it buys) or queries (asked), or a larger"
                " epsilon",
            )
        answers = min(answers, affordable)
    event = make(noise, answers)
    return Setting(
        config.mechanism,
        noise,
        config.threshold if chosen.needs_threshold else 0.0,
        ratio * noise,
        asked if chosen.needs_threshold else answers,
        answers,
        event,
        account(event, RELATION, config.delta),
    )
