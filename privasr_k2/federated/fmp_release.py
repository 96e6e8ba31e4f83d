"""The global marginal as a private release: clipped counts of each round with discrete noise.

In each round a unit contributes its expected word counts over first-pass hypotheses (rank kernel of
sum 1), clipped to ``bound`` words in L1 (Laplace) or L2 (Gaussian), in its first ``max_rounds``
rounds. Neighbours differ in the words of one unit. When utterances came, and so the cut into
rounds, is public.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from safetensors.numpy import save_file
from scipy.sparse import csr_array

from privasr_k2.config import from_values
from privasr_k2.constraints import (
    Checked,
    Count,
    Delta,
    Finite,
    Natural,
    NotNegative,
    PositiveShare,
    one_of,
)
from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_simulation import rounds_of
from privasr_k2.federated.fmp_spoken import Spoken, WordNumbers
from privasr_k2.federated.marginals import smoothed, utterance_counts
from privasr_k2.fileio import atomic_path, disk_errors, read_arrays
from privasr_k2.privacy import checks, events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.calibration import noise_for
from privasr_k2.privacy.clipping import Norm, clip_rows
from privasr_k2.privacy.discrete import DiscreteGaussianNoise, DiscreteLaplaceNoise, FixedPointGrid
from privasr_k2.privacy.people import People
from privasr_k2.privacy.release import Release
from privasr_k2.privacy.spending import DECODED_TOGETHER, SETTINGS, Spending
from privasr_k2.privacy.strategies import STRATEGIES, Strategy, Turns

MECHANISMS: dict[str, Norm] = {"discrete_laplace": "l1", "discrete_gaussian": "l2"}
#: What a release can protect; the timeline says what a client is.
UNITS = ("utterance", "user", "client")
#: Units of earlier versions.
RENAMED_UNITS = {"meeting": "client", "call": "client", "speaker": "user"}
_MARGINALS, AGAIN = "released marginals", "release them again"
_DEVICE = "the personal marginal on the device, what is rescored with it, and whoever sees that"
_WHEN = "when utterances came, and how many: a unit's words are hidden, not its place in a round"
_STEPS_LOG2 = 13  # steps in the bound: what is cut off is 1/8192 of it a word and unit
_BLOCK = 4_000_000  # values that are clipped at a time


@dataclass(frozen=True)
class FmpReleaseConfig(Checked):
    """A release of the marginals of rounds 0 to T - 1; see ``conf/fmp.yaml#fmp_release``."""

    data: str
    unit: str
    mechanism: Annotated[str, one_of(*MECHANISMS)]
    strategy: Annotated[str, one_of(*STRATEGIES)]
    rounds: Count
    max_rounds: Natural
    bound: Finite
    kernel_bandwidth: NotNegative
    decay: PositiveShare
    epsilon: Finite
    delta: Delta

    def __post_init__(self) -> None:
        check_unit(self.unit)
        super().__post_init__()


def check_unit(unit: str) -> None:
    """Raise ValueError for another unit; those of earlier versions said what a client was."""
    if unit in RENAMED_UNITS:
        now = RENAMED_UNITS[unit]
        raise ValueError(f"unit must be {now} for {unit}: the timeline says what a client is")
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")


@dataclass(frozen=True)
class FmpMechanism:
    """Strategy, steps, noise and cost of a configuration. It reads no data."""

    config: FmpReleaseConfig

    @property
    def norm(self) -> Norm:
        """The norm that bounds a unit's counts."""
        return MECHANISMS[self.config.mechanism]

    @cached_property
    def grid(self) -> FixedPointGrid:
        """The steps of the counts."""
        return FixedPointGrid(2.0 ** (math.floor(math.log2(self.config.bound)) - _STEPS_LOG2))

    @cached_property
    def bound_steps(self) -> int:
        """The bound of a unit's counts in one round, in steps, rounded up."""
        return math.ceil(self.grid.in_steps(self.config.bound))

    @cached_property
    def strategy(self) -> Strategy:
        """The linear measurements of the increments."""
        return Strategy(self.config.strategy, self.config.rounds, self.config.decay)

    @property
    def max_rounds(self) -> int:
        """R: in how many rounds a unit is counted."""
        if self.config.unit == "utterance":
            return 1
        return min(self.config.max_rounds or self.config.rounds, self.config.rounds)

    @property
    def _parts(self) -> tuple[float, int]:
        """Sensitivity of what gets noise, and how often a unit is in it."""
        if self.config.strategy == "increments":  # each round by itself
            return float(self.bound_steps), self.max_rounds
        turns = Turns(most=self.max_rounds, apart=1)
        return self.strategy.sensitivity(self.bound_steps, turns, self.norm), 1

    @cached_property
    def multiplier(self) -> float:
        """The noise for (epsilon, delta), relative to the sensitivity."""

        def event(noise: float) -> events.Event:
            if self.norm == "l1":
                return events.repeated(events.laplace_vector(noise), self._parts[1])
            return events.repeated(events.discrete_gaussian_vector(noise, 1.0), self._parts[1])

        return noise_for(
            event,
            epsilon=checks.number("epsilon", self.config.epsilon, above=0),
            delta=self.config.delta,
            relation=Relation.ADD_OR_REMOVE_ONE,
        )

    @cached_property
    def noise(self) -> DiscreteLaplaceNoise | DiscreteGaussianNoise:
        """The noise of every measurement."""
        scale = self.multiplier * self._parts[0]
        return DiscreteLaplaceNoise(scale) if self.norm == "l1" else DiscreteGaussianNoise(scale)

    @property
    def event(self) -> events.Event:
        """All that is released about one unit's words."""
        moved, times = self._parts
        if isinstance(self.noise, DiscreteLaplaceNoise):
            once = self.noise.vector_event(l1_sensitivity=moved)
        else:
            once = self.noise.vector_event(l2_sensitivity=moved)
        return events.repeated(once, times)

    def errors(self) -> np.ndarray:
        """(T,) standard deviation of the running count of each word, in words: public."""
        if isinstance(self.noise, DiscreteGaussianNoise):
            sd = self.noise.sigma
        else:
            sd = math.sqrt(2.0) * self.noise.scale
        return self.strategy.error() * sd * self.grid.step

    def measure(self, increments: np.ndarray) -> np.ndarray:
        """(M, V) int64: measurements of ``increments`` (T, V) int64, without noise."""
        return self.strategy.encode @ increments

    def sums(self, measured: np.ndarray) -> np.ndarray:
        """(T, V) running counts in words from measurements (M, V), noisy or not."""
        return self.strategy.decode @ measured * self.grid.step

    def spending(self, unit: str, units: int) -> Spending:
        """The entry of the ledger for so many units, by the name that guarantees give them."""
        config = self.config
        first = "" if unit == "utterance" else f" in its first {self.max_rounds} rounds"
        return Spending(
            data=config.data,
            released=f"unigram counts of {config.rounds} rounds ({config.strategy}),"
            f" {config.mechanism}",
            unit=unit,
            units=units,
            relation=Relation.ADD_OR_REMOVE_ONE,
            event=self.event,
            sampling="all units in every round",
            delta=config.delta,
            does_not_cover=(
                _WHEN,
                f"of each {unit}: its words{first}, clipped to {config.bound:g} words in"
                f" {self.norm.upper()}; nothing else of it is used in the release",
                "the vocabulary and the background marginals, wherever they are from",
                _DEVICE,
                DECODED_TOGETHER,
                SETTINGS,
            ),
        )


def unit_numbers(spoken: Spoken, unit: str) -> tuple[np.ndarray, int]:
    """(N,) the unit of each utterance, and the number of units."""
    if unit == "utterance":
        return np.arange(len(spoken)), len(spoken)
    if unit == "user":
        return spoken.users, len(spoken.user_names)
    return spoken.clients, len(spoken.client_names)


def people_of(spoken: Spoken, unit: str, source: Path | str) -> People | None:
    """The users behind the units; ``None`` where no user is known.

    Raises:
        DataError: some utterances have a user, others have none; or none has, and the unit is user.
    """
    users = [spoken.user_names[number] for number in spoken.users]
    if not any(users) and unit != "user":
        return None
    return People.of(zip(unit_numbers(spoken, unit)[0].astype(str), users), source=source)


def increments_of(spoken: Spoken, mechanism: FmpMechanism) -> np.ndarray:
    """(T, V) int64: the clipped counts of rounds 0 to T - 1 in steps. Private.

    One unit changes at most ``max_rounds`` rows, each by at most ``bound_steps`` in the norm.
    """
    config = mechanism.config
    counts = utterance_counts(spoken, config.kernel_bandwidth, normalized=True)
    units, _ = unit_numbers(spoken, config.unit)
    return clipped_increments(counts, rounds_of(spoken, config.rounds), units, mechanism)


def clipped_increments(
    counts: csr_array, rounds: np.ndarray, units: np.ndarray, mechanism: FmpMechanism
) -> np.ndarray:
    """As :func:`increments_of`, from the utterances' counts (N, V), rounds (N,) and units (N,)."""
    num_rounds, size = mechanism.config.rounds, counts.shape[1]
    # An utterance without words is in no round of its unit.
    used = np.flatnonzero((rounds < num_rounds) & (np.diff(counts.indptr) > 0))
    cells, of_cell = np.unique(units[used] * num_rounds + rounds[used], return_inverse=True)
    owners, in_round = np.divmod(cells, num_rounds)
    starts = np.searchsorted(owners, owners)
    kept = np.arange(len(cells)) - starts < mechanism.max_rounds
    shape = len(cells), counts.shape[0]
    gathering = csr_array((np.ones(len(used)), (of_cell, used)), shape=shape)
    rows = csr_array(gathering @ counts)[np.flatnonzero(kept)]
    values = _clipped(csr_array(rows), mechanism.config.bound, mechanism.norm)
    increments = np.zeros((num_rounds, size), dtype=np.int64)
    where = np.repeat(in_round[kept], np.diff(rows.indptr)), rows.indices
    np.add.at(increments, where, mechanism.grid.steps(values))
    return increments


def _clipped(rows: csr_array, bound: float, norm: Norm) -> np.ndarray:
    """The values of ``rows``, each row clipped.

    Rows of one length are computed together, and none is padded: floats add up in another order
    where there is padding, so that the longest row would decide how others at the bound are
    clipped.
    """
    lengths = np.diff(rows.indptr)
    clipped = np.zeros(len(rows.data))
    for length in np.unique(lengths[lengths > 0]).tolist():
        same = np.flatnonzero(lengths == length)
        for block in np.array_split(same, -(-len(same) * length // _BLOCK)):
            places = rows.indptr[block][:, None] + np.arange(length)
            clipped[places] = clip_rows(rows.data[places], bound=bound, norm=norm).values
    return clipped


def write_release(path: Path, spoken: Spoken, mechanism: FmpMechanism, begun: Release) -> None:
    """Write the noisy measurements to a ``*.safetensors`` file, once, and finish the release.

    Raises:
        PrivacyError: the release is finished, and its file is gone.
    """

    def measured() -> np.ndarray:
        begun.stream("check")  # refused where the release is finished
        return mechanism.noise.add(mechanism.measure(increments_of(spoken, mechanism)))

    header = {"config": mechanism.config, "words": spoken.numbers.digest}
    write_once(path, begun, lambda: ({"measured": measured()}, header))


def write_once(
    path: Path, begun: Release, draw: Callable[[], tuple[dict[str, np.ndarray], dict[str, Any]]]
) -> None:
    """Write arrays and header that ``draw`` gives, unless this release was written; finish it."""
    if not (path.exists() and header_of(path).get("release") == begun.entry.release):
        arrays, header = draw()
        content = json.dumps({"release": begun.entry.release, **header}, default=dataclasses.asdict)
        with atomic_path(path) as temporary, disk_errors(path):
            save_file(arrays, str(temporary), {"json": content})
    begun.finish()


def read_counts(path: Path, name: str, numbers: WordNumbers) -> tuple[dict[str, Any], np.ndarray]:
    """The header and an array of a released file of this vocabulary.

    Raises:
        DataError: no such file, or another vocabulary.
    """
    header, arrays = read_arrays(path, [name], expected=_MARGINALS, way_out=AGAIN)
    if header.get("words") != numbers.digest:
        raise DataError(path, f"{name} of this vocabulary", "others", "give their own model")
    return header, arrays[name]


def read_release(path: Path, numbers: WordNumbers) -> tuple[FmpMechanism, np.ndarray]:
    """The mechanism of a release and its measurements (M, V) int64.

    Raises:
        DataError: no such file, or another vocabulary.
    """
    header, measured = read_counts(path, "measured", numbers)
    mechanism = FmpMechanism(from_values(FmpReleaseConfig, settings_in(header, "config"), path))
    shape, rounds = measured.shape, mechanism.config.rounds
    # A strategy measures no less than there are rounds: looked at before its matrix is made.
    fitting = len(shape) == 2 and shape[1] == numbers.size and shape[0] >= rounds
    if not fitting or measured.dtype != np.int64 or shape[0] != len(mechanism.strategy.encode):
        stored = f"{measured.dtype} of the shape {shape}"
        expected = f"whole counts of {rounds} rounds and {numbers.size} words"
        raise DataError(path, expected, stored, AGAIN)
    return mechanism, measured


def settings_in(header: dict[str, Any], key: str) -> Any:
    """The settings of a release in its header, by their names of now.

    >>> settings_in({"config": {"sigma": 0.1, "unit": "call"}}, "config")
    {'kernel_bandwidth': 0.1, 'unit': 'client'}
    """
    values = header.get(key)
    if isinstance(values, dict):
        names = {"sigma": "kernel_bandwidth"}
        values = {names.get(name, name): value for name, value in values.items()}
        if isinstance(unit := values.get("unit"), str):
            values["unit"] = RENAMED_UNITS.get(unit, unit)
    return values


def header_of(path: Path) -> dict[str, Any]:
    """The header of a file of released marginals.

    Raises:
        DataError: no such file, or another kind of file.
    """
    header, _ = read_arrays(path, (), expected=_MARGINALS, way_out=AGAIN)
    if "words" not in header:
        raise DataError(path, _MARGINALS, "another kind of file", AGAIN)
    return header


def released_marginals(
    sums: np.ndarray,
    errors: np.ndarray,
    background: np.ndarray,
    *,
    threshold: float,
    prior_words: float,
) -> np.ndarray:
    """(T, V) global marginals from noisy running counts: post-processing, which costs nothing.

    Only what exceeds ``threshold`` (t) standard deviations of the noise is believed,

        n'(w) = max(0, e(w) + soft(n(w) - e(w))),  e(w) = u(w) sum of n,
        soft(x) = sign(x) max(0, |x| - t sd),

    and the result is smoothed as a client's. t = 0 cuts only counts below 0, infinity gives u.

    Args:
        sums: (T, V) of ``FmpMechanism.sums``.
        errors: (T,) of ``FmpMechanism.errors``; 0 without noise.
        prior_words: weight of the background in words; at least 1 is taken.
    """
    if not threshold >= 0:
        raise ValueError(f"threshold must be 0 or more, got {threshold}")
    marginals = np.empty(sums.shape)
    for number, (noisy, error) in enumerate(zip(sums, errors)):
        counts = np.where(background > 0, noisy, 0.0)
        expected = max(float(counts.sum()), 0.0) * background
        beyond = counts - expected
        cut = threshold * error if error > 0 else 0.0
        kept = expected + np.sign(beyond) * np.maximum(np.abs(beyond) - cut, 0.0)
        marginals[number] = smoothed(np.maximum(kept, 0.0), background, max(prior_words, 1.0))
    return marginals
