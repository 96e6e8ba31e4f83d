"""Sampling contracts: what draws a cohort also tells the accountant what it may claim.

So a cohort of fixed size never gets the epsilon of Poisson sampling. All draws come from secret
streams, as amplification holds only against somebody who does not know who was drawn. They are
functions of the round, so that a killed round draws its cohort again.

[wang2019] Y. Wang et al., Subsampled Rényi differential privacy and analytical moments accountant,
AISTATS 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.events import (
    Event,
    fixed_size_sampled,
    for_replacing,
    poisson_sampled,
    repeated,
)
from privasr_k2.privacy.strategies import Turns
from privasr_k2.randomness import NoiseStream

Streams: TypeAlias = Callable[..., NoiseStream]
"""Gives the secret stream of a name: ``Release.stream`` of :mod:`privasr_k2.privacy.release`."""


class Sampling(Protocol):
    """Participation of units in rounds, and its amplification."""

    def cohort(self, round_number: int, num_units: int, streams: Streams) -> np.ndarray:
        """Indices of the units in round ``round_number`` (from 0): (K,) integers, ascending."""

    def event(self, step: Event, rounds: int, relation: Relation) -> Event:
        """The event of ``rounds`` rounds; ``step`` is one round's event on its participants."""

    def turns(self, rounds: int) -> Turns:
        """In which rounds one unit can be, for noise that is correlated over rounds.

        Raises:
            PrivacyError: cohorts are drawn anew for every round.
        """

    def describe(self) -> str:
        """For ledger and tables: the scheme with its numbers, and what is claimed for it."""


@dataclass(frozen=True)
class AllUnits:
    """Every unit takes part in every round."""

    def cohort(self, round_number: int, num_units: int, streams: Streams) -> np.ndarray:
        """All of them."""
        return np.arange(num_units)

    def event(self, step: Event, rounds: int, relation: Relation) -> Event:
        """``rounds`` times the step."""
        return repeated(step, rounds)

    def turns(self, rounds: int) -> Turns:
        """All of them."""
        return Turns(most=rounds, apart=1)

    def describe(self) -> str:
        """See :class:`Sampling`."""
        return "all units in every round"


@dataclass(frozen=True)
class PoissonSampling:
    """Every unit takes part in a round with probability ``rate``, independently of all others.

    A cohort may be empty: its round takes place, with noise alone, and counts.

    >>> from privasr_k2.randomness import new_secret, noise_stream
    >>> secret = new_secret()
    >>> streams = lambda *names: noise_stream(secret, *names)
    >>> first, again = (PoissonSampling(0.5).cohort(3, 99, streams) for _ in range(2))
    >>> bool((first == again).all())
    True
    """

    rate: float

    def __post_init__(self) -> None:
        checks.number("rate", self.rate, above=0, at_most=1)

    def cohort(self, round_number: int, num_units: int, streams: Streams) -> np.ndarray:
        """A new draw for every round."""
        return np.flatnonzero(_uniform(streams, round_number, num_units) < self.rate)

    def event(self, step: Event, rounds: int, relation: Relation) -> Event:
        """``rounds`` times the step with amplification by Poisson sampling.

        Raises:
            PrivacyError: for replacing one unit, where no bound is used here.
        """
        if relation is not Relation.ADD_OR_REMOVE_ONE:
            expected, way_out = "add or remove one", "state it for adding or removing one unit"
            raise PrivacyError(self.describe(), expected, f"'{relation.value}'", way_out)
        return repeated(poisson_sampled(self.rate, step), rounds)

    def turns(self, rounds: int) -> Turns:
        """Refused: amplification of correlated noise is not accounted for."""
        raise _drawn_anew(self)

    def describe(self) -> str:
        """See :class:`Sampling`."""
        return f"Poisson, rate {self.rate:g}"


@dataclass(frozen=True)
class FixedCohort:
    """``size`` different units out of ``population``, drawn uniformly for every round.

    For adding or removing one unit no amplification is claimed, and the sensitivity is doubled, as
    whoever is drawn displaces another. For replacing one unit the bound of [wang2019, theorem 27]
    is used, with the sensitivity doubled.
    """

    size: int
    population: int

    def __post_init__(self) -> None:
        population = checks.whole("population", self.population, at_least=1)
        checks.whole("size", self.size, at_least=1, at_most=population)

    def cohort(self, round_number: int, num_units: int, streams: Streams) -> np.ndarray:
        """A new draw for every round.

        Raises:
            PrivacyError: there are not as many units as the contract says.
        """
        if num_units != self.population:
            expected, found = f"{self.population:,} units", f"{num_units:,}"
            raise PrivacyError(self.describe(), expected, found, "draw from all of them")
        places = np.argsort(_uniform(streams, round_number, num_units), kind="stable")
        return np.sort(places[: self.size])

    def event(self, step: Event, rounds: int, relation: Relation) -> Event:
        """``rounds`` times the step, for replacing with the amplification of [wang2019]."""
        if relation is Relation.REPLACE_ONE:
            return repeated(fixed_size_sampled(self.size, self.population, step), rounds)
        return repeated(for_replacing(step), rounds)

    def turns(self, rounds: int) -> Turns:
        """Refused: whoever is drawn displaces another."""
        raise _drawn_anew(self)

    def describe(self) -> str:
        """See :class:`Sampling`."""
        return (
            f"fixed cohorts of {self.size:,} out of {self.population:,} (amplification only for"
            " replacing one unit: Wang et al. 2019)"
        )


@dataclass(frozen=True)
class PartitionedEpochs:
    """Every unit takes part in one of the ``batches`` rounds of each epoch, drawn by itself.

    As each unit has a draw of its own, adding or removing one changes one batch of an epoch: an
    epoch costs one step. Nothing is claimed for the secrecy of the order. Batches differ in size.

    Args:
        batches: rounds of an epoch.
        same_order: one draw serves all epochs, so that a unit's rounds are ``batches`` apart, which
            is best for noise that is correlated over rounds.
    """

    batches: int
    same_order: bool = False

    def __post_init__(self) -> None:
        checks.whole("batches", self.batches, at_least=1)

    def cohort(self, round_number: int, num_units: int, streams: Streams) -> np.ndarray:
        """The units whose batch this is; all rounds of an epoch share one draw."""
        epoch, batch = divmod(checks.whole("round_number", round_number, at_least=0), self.batches)
        uniform = _uniform(streams, 0 if self.same_order else epoch, num_units)
        return np.flatnonzero(np.floor(uniform * self.batches) == batch)

    def event(self, step: Event, rounds: int, relation: Relation) -> Event:
        """Return one step for each epoch that has begun."""
        return repeated(step, self._epochs(rounds))

    def turns(self, rounds: int) -> Turns:
        """One an epoch; where orders differ, those of two epochs may follow each other."""
        return Turns(most=self._epochs(rounds), apart=self.batches if self.same_order else 1)

    def _epochs(self, rounds: int) -> int:
        return math.ceil(checks.whole("rounds", rounds, at_least=0) / self.batches)

    def describe(self) -> str:
        """See :class:`Sampling`."""
        order = "in the same order, " if self.same_order else ""
        return f"each unit once in every {self.batches:,} rounds ({order}no amplification)"


def _drawn_anew(sampling: Sampling) -> PrivacyError:
    return PrivacyError(
        sampling.describe(),
        "rounds that one unit's place is known for, where noise is correlated over rounds",
        "cohorts that are drawn anew",
        "take partitioned epochs or all units, or noise of each round's own",
    )


def _uniform(streams: Streams, round_number: int, num_units: int) -> np.ndarray:
    checks.whole("num_units", num_units, at_least=0)
    stream = streams("cohort", checks.whole("round_number", round_number, at_least=0))
    if not isinstance(stream, NoiseStream):
        expected = "a secret cryptographic stream (privasr_k2.randomness.noise_stream)"
        way_out = "draw cohorts from the release's own streams: Release.stream"
        raise PrivacyError("streams", expected, type(stream).__name__, way_out)
    return stream.uniform(num_units)
