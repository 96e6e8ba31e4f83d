"""The mechanisms that aggregate teachers' votes or posteriors, one object each.

The planner, the release, its settings, the audit, the reports and the recipes ask a
:class:`Mechanism`. A new one is an entry of this file, or a plugin (:mod:`privasr_k2.plugins`) that
calls :func:`register`. Imports of what takes long are inside functions: recipes read names here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privasr_k2.plugins import Registry
from privasr_k2.privacy.pate.sensitivity import Change

if TYPE_CHECKING:
    from privasr_k2.privacy.events import Event
    from privasr_k2.privacy.pate.best_order import NotForRelease
    from privasr_k2.randomness import NoiseStream

VOTES, POSTERIORS = "votes", "posteriors"
#: Attacks on a release of answers: the keys of :data:`privasr_k2.attack.vote_audit.AUDITS`.
TWO_HISTOGRAMS = "two_histograms"


@dataclass(frozen=True)
class Amounts:
    """Quantities that the cost of a release depends on.

    Attributes:
        noise: standard deviation or scale, in votes; above 0.
        answers: queries that are answered at most.
        asked: queries that are looked at, at most.
        threshold_noise: standard deviation of the noise of the threshold check, in votes; 0: none.
        largest_weight: of a teacher in the sum of posteriors, in votes.
        change: what one unit changes in a query.
    """

    noise: float
    answers: int
    asked: int
    threshold_noise: float = 0.0
    largest_weight: float = 1.0
    change: Change = Change.MOVES


@dataclass(frozen=True)
class Mechanism:
    """One aggregation mechanism.

    Attributes:
        name: in configurations and files.
        label: in tables.
        aggregates: :data:`VOTES` (whole counts) or :data:`POSTERIORS` (sums of distributions).
        event: what a release is for the accountants, where one unit changes one teacher, by
            :attr:`Amounts.change` (an event for ``MOVES`` holds for both).
        noise: (values, scale, largest_weight, stream) to noisy values, float64 of the same shape;
            of each query the largest wins. For votes it breaks ties, from ``stream``. None: winners
            are drawn by ``choose``.
        share: the scale that recipes take by default, as a share of the teachers; in (0, 1).
        needs_threshold: a query is answered only where its largest count and discrete Gaussian
            noise reach a threshold.
        tokens: whether it serves votes on tokens, which follow each other.
        exponent: (steps, scale) to x, where exp(-x) is proportional to the chance of a whole number
            of steps; without it and ``chances``, how often it answers rightly is not planned.
        tail: so many scales beyond which there are less than 1e-17 of all draws.
        choose: (counts, sizes, scale, stream) to the winner of each query, of votes alone, whose
            numbers of classes are ``sizes``. None: the largest after ``noise`` wins.
        chances: (counts, scale) to the chance of each class to win, where there is a formula.
        votes_cost: ((Q, C) votes, amounts, threshold, delta) to the cost of answers to these votes;
            None: no such bound is known.
        audit: the attack on its releases.
    """

    name: str
    label: str
    aggregates: str
    event: Callable[[Amounts], Event]
    noise: Callable[[np.ndarray, float, float, NoiseStream], np.ndarray] | None
    share: float
    needs_threshold: bool = False
    tokens: bool = True
    exponent: Callable[[np.ndarray, float], np.ndarray] | None = None
    tail: float = 0.0
    choose: Callable[[np.ndarray, np.ndarray, float, NoiseStream], np.ndarray] | None = None
    chances: Callable[[np.ndarray, float], np.ndarray] | None = None
    votes_cost: Callable[[np.ndarray, Amounts, float, float], NotForRelease] | None = None
    audit: str = TWO_HISTOGRAMS

    def __post_init__(self) -> None:
        if self.aggregates not in (VOTES, POSTERIORS):
            raise ValueError(f"aggregates must be {VOTES} or {POSTERIORS}, got {self.aggregates!r}")
        if not 0 < self.share < 1:
            raise ValueError(f"share must be between 0 and 1, got {self.share}")
        if (self.noise is None) == (self.choose is None):
            raise ValueError(f"{self.name} must have noise or choose, and not both")
        if self.choose is not None and self.aggregates != VOTES:
            raise ValueError(f"choose is for {VOTES}, got {self.aggregates!r}")

    @property
    def is_planned(self) -> bool:
        """Whether it is known how often it answers rightly."""
        return self.exponent is not None or self.chances is not None

    def default_noise(self, teachers: int, *, tokens: bool = False) -> float:
        """The scale that recipes take by default, in votes; half of it for votes on tokens.

        >>> mechanism("gnmax").default_noise(15), mechanism("lnmax").default_noise(15, tokens=True)
        (4.5, 1.5)
        """
        return round(teachers * self.share * (0.5 if tokens else 1.0), 2)


_REGISTRY = Registry[Mechanism]("mechanism")


def register(made: Mechanism) -> Mechanism:
    """Make a mechanism known by its name.

    Raises:
        ConfigError: another one has this name.
    """
    return _REGISTRY.add(made.name, made)


def mechanism(name: str) -> Mechanism:
    """The mechanism of a name.

    Raises:
        ConfigError: there is none, naming those that there are.
    """
    return _REGISTRY[name]


def all_mechanisms(**limits: Any) -> tuple[str, ...]:
    """Names of all mechanisms whose attributes have these values, in the order of tables.

    >>> all_mechanisms(aggregates=POSTERIORS)
    ('gaussian_posteriors', 'laplace_posteriors')
    """
    return tuple(
        each.name
        for each in _REGISTRY.items().values()
        if all(getattr(each, key) == value for key, value in limits.items())
    )


def discrete_gaussian(
    values: np.ndarray, scale: float, _: float, stream: NoiseStream
) -> np.ndarray:
    """Counts with exact discrete Gaussian noise; ties are broken at random."""
    from privasr_k2.privacy.discrete import DiscreteGaussianNoise

    noisy = DiscreteGaussianNoise(scale).add(values).astype(np.float64)
    return noisy + stream.uniform(len(noisy))


def discrete_laplace(values: np.ndarray, scale: float, _: float, stream: NoiseStream) -> np.ndarray:
    """Counts with exact discrete Laplace noise; ties are broken at random."""
    from privasr_k2.privacy.discrete import DiscreteLaplaceNoise

    noisy = DiscreteLaplaceNoise(scale).add(values).astype(np.float64)
    return noisy + stream.uniform(len(noisy))


def _gaussian(
    values: np.ndarray, scale: float, largest_weight: float, stream: NoiseStream
) -> np.ndarray:
    from privasr_k2.privacy.noise import GaussianNoise

    sensitivity = Change.MOVES.l2 * largest_weight  # the larger; the noise is ``scale`` either way
    noise = GaussianNoise(noise_multiplier=scale / sensitivity, l2_sensitivity=sensitivity)
    return noise.add(values, stream)


def _laplace(
    values: np.ndarray, scale: float, largest_weight: float, stream: NoiseStream
) -> np.ndarray:
    from privasr_k2.privacy.noise import LaplaceNoise

    sensitivity = Change.MOVES.l1 * largest_weight
    return LaplaceNoise(scale=scale, l1_sensitivity=sensitivity).add(values, stream)


def _gumbel_max(
    counts: np.ndarray, sizes: np.ndarray, scale: float, stream: NoiseStream
) -> np.ndarray:
    from privasr_k2.privacy.exponential import ExponentialMechanism

    return ExponentialMechanism(scale).choose(counts, sizes, stream)


def _gumbel_max_chances(counts: np.ndarray, scale: float) -> np.ndarray:
    from privasr_k2.privacy.exponential import ExponentialMechanism

    return ExponentialMechanism(scale).chances(counts)


def _gumbel_max_event(of: Amounts) -> Event:
    from privasr_k2.privacy import events
    from privasr_k2.privacy.exponential import ExponentialMechanism

    # One count changes by 1, or one rises and another falls: max d - min d is the L1 sensitivity.
    answer = ExponentialMechanism(of.noise).event(spread=of.change.l1)
    return events.repeated(answer, of.answers)


def _gnmax_event(of: Amounts) -> Event:
    from privasr_k2.privacy.pate.gnmax import gnmax_event

    return gnmax_event(sigma=of.noise, answers=of.answers, discrete=True, change=of.change)


def _confident_event(of: Amounts) -> Event:
    from privasr_k2.privacy.pate.gnmax import confident_gnmax_event

    return confident_gnmax_event(
        sigma=of.noise,
        answers=of.answers,
        threshold_sigma=of.threshold_noise,
        asked=of.asked,
        discrete=True,
        change=of.change,
    )


def _lnmax_event(of: Amounts) -> Event:
    from privasr_k2.privacy.pate.lnmax import lnmax_event

    return lnmax_event(scale=of.noise, answers=of.answers, discrete=True, change=of.change)


def _gnmax_cost(votes: np.ndarray, of: Amounts, threshold: float, delta: float) -> NotForRelease:
    from privasr_k2.privacy.pate.gnmax import gnmax_epsilon

    return gnmax_epsilon(votes, sigma=of.noise, discrete=True, delta=delta, change=of.change)


def _confident_cost(
    votes: np.ndarray, of: Amounts, threshold: float, delta: float
) -> NotForRelease:
    from privasr_k2.privacy.pate.gnmax import confident_gnmax_epsilon

    return confident_gnmax_epsilon(
        votes, sigma=of.noise, answers=of.answers, threshold=threshold,
        threshold_sigma=of.threshold_noise, discrete=True, delta=delta, change=of.change,
    )  # fmt: skip


def _lnmax_cost(votes: np.ndarray, of: Amounts, threshold: float, delta: float) -> NotForRelease:
    from privasr_k2.privacy.pate.lnmax import lnmax_epsilon

    return lnmax_epsilon(votes, scale=of.noise, discrete=True, delta=delta, change=of.change)


def _gaussian_event(of: Amounts) -> Event:
    from privasr_k2.privacy.pate.gnmax import posteriors_event

    return posteriors_event(
        sigma=of.noise, largest_weight=of.largest_weight, vectors=of.answers, change=of.change
    )


def _laplace_event(of: Amounts) -> Event:
    from privasr_k2.privacy import events

    sensitivity = of.change.l1 * of.largest_weight
    return events.repeated(events.laplace_vector(of.noise / sensitivity), of.answers)


GNMAX = register(
    Mechanism(
        "gnmax", "GNMax", VOTES, _gnmax_event, discrete_gaussian, share=0.30,
        exponent=lambda steps, scale: steps.astype(float) ** 2 / (2 * scale**2), tail=9.0,
        votes_cost=_gnmax_cost,
    )
)  # fmt: skip
LNMAX = register(
    Mechanism(
        "lnmax", "LNMax", VOTES, _lnmax_event, discrete_laplace, share=0.20,
        exponent=lambda steps, scale: np.abs(steps) / scale, tail=40.0,
        votes_cost=_lnmax_cost,
    )
)  # fmt: skip
GUMBEL_MAX = register(
    Mechanism(
        "gumbel_max", "Gumbel-max", VOTES, _gumbel_max_event, None, share=0.20,
        choose=_gumbel_max, chances=_gumbel_max_chances,
    )
)  # fmt: skip
CONFIDENT_GNMAX = register(
    Mechanism(
        "confident_gnmax", "Confident-GNMax", VOTES, _confident_event, discrete_gaussian,
        share=0.30, needs_threshold=True, votes_cost=_confident_cost,
    )
)  # fmt: skip
GAUSSIAN_POSTERIORS = register(
    Mechanism(
        "gaussian_posteriors", "Gaussian noise on posteriors", POSTERIORS, _gaussian_event,
        _gaussian, share=0.30, tokens=False,
    )
)  # fmt: skip
LAPLACE_POSTERIORS = register(
    Mechanism(
        "laplace_posteriors", "Laplace noise on posteriors", POSTERIORS, _laplace_event,
        _laplace, share=0.20, tokens=False,
    )
)  # fmt: skip
