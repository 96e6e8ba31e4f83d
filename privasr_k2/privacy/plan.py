"""The budget before anything is trained: the cost of a setting, or the setting of a cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, events
from privasr_k2.privacy.accounting import Epsilon, Relation, account
from privasr_k2.privacy.calibration import count_for, noise_for
from privasr_k2.privacy.correlated import correlated_event
from privasr_k2.privacy.events import Event
from privasr_k2.privacy.groups import for_group
from privasr_k2.privacy.pate.mechanisms import (
    CONFIDENT_GNMAX,
    GNMAX,
    VOTES,
    Amounts,
    all_mechanisms,
    mechanism,
)
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.privacy.sampling import (
    AllUnits,
    FixedCohort,
    PartitionedEpochs,
    PoissonSampling,
    Sampling,
)
from privasr_k2.privacy.spending import UNITS, shown
from privasr_k2.privacy.strategies import Strategy


@dataclass(frozen=True)
class PlanRequest:
    """Request of a plan; ``None`` means not given. Two of noise, rounds and epsilon are given.

    Attributes:
        kind: ``updates`` (noisy sums: federated rounds, DP-SGD steps), ``votes`` (noisy majorities
            of teachers) or ``counts`` (noisy counts).
        privacy_unit: whose presence is to be hidden, one of
            :data:`privasr_k2.privacy.spending.UNITS`.
        num_units: how many there are.
        person_units: the most units that one person is: the epsilon of a person is planned, too.
        relation: ``add or remove one`` or ``replace one``.
        delta: below 1/num_units.
        rounds: rounds, steps, answered queries or releases of counts.
        noise: updates: standard deviation by clip norm; votes and counts: standard deviation
            (Gaussian) or scale (Laplace).
        epsilon: a target, from which noise (or rounds, where noise is given) follows.
        max_epsilon: the plan fails where it costs more.
        client_fraction, cohort, batches: updates: Poisson rate, or size of a fixed cohort, or
            batches of an epoch; none of them: all units in every round.
        strategy: updates: ``square_root``, ``blt``, ``tree``: noise is correlated over rounds,
            which are given; batches then come in the same order in every epoch.
        bands: updates: of ``square_root``; without it the batches of an epoch.
        mechanism: votes: ``gnmax``, ``lnmax`` or ``gumbel_max``; counts: ``discrete_laplace``
            or ``discrete_gaussian``.
        asked, threshold_noise: votes: queries whose majority is first compared with a threshold,
            and the noise of that; GNMax only.
        units_in_a_shard: votes: with 1 a unit gives or takes a vote; else it moves one.
        sensitivity: counts: by how much one unit can change them, in L1 (Laplace) or L2 (Gaussian).
    """

    kind: str
    privacy_unit: str
    num_units: int
    person_units: int | None
    relation: str
    delta: float
    rounds: int | None
    noise: float | None
    epsilon: float | None
    max_epsilon: float | None
    client_fraction: float | None
    cohort: int | None
    batches: int | None
    strategy: str | None
    bands: int | None
    mechanism: str | None
    asked: int | None
    threshold_noise: float | None
    sensitivity: float | None
    units_in_a_shard: int | None

    def __post_init__(self) -> None:
        relations = [relation.value for relation in Relation]
        for name, known in (
            ("kind", _EVENTS),
            ("privacy_unit", UNITS),
            ("relation", relations),
        ):
            if (value := getattr(self, name)) not in known:
                raise PrivacyError(name, f"one of {', '.join(known)}", repr(value), "correct it")
        checks.delta(self.delta, units=self.num_units)
        for name in ("noise", "epsilon", "max_epsilon", "threshold_noise", "sensitivity"):
            if getattr(self, name) is not None:
                checks.number(name, getattr(self, name), above=0)
        for name in ("rounds", "asked", "person_units", "units_in_a_shard"):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), at_least=1)
        allowed = _ALLOWED[self.kind]
        for name in set().union(*_ALLOWED.values()) - allowed:
            if getattr(self, name) is not None:
                expected = f"no such value for {self.kind}"
                raise PrivacyError(name, expected, "one", f"leave out {name}")


@dataclass(frozen=True)
class Plan:
    """A setting and its cost."""

    request: PlanRequest
    noise: float
    rounds: int
    event: Event
    sampling: str
    epsilon: Epsilon
    person: Epsilon | None

    def lines(self) -> list[str]:
        """For people: the setting, then epsilon by both accountants."""
        request, pld = self.request, self.epsilon.pld
        order = f"{self.epsilon.order:.4g}"
        followed = (
            "noise" if request.noise is None else "rounds" if request.rounds is None else None
        )
        target = f"for epsilon {request.epsilon:g}, {followed} " if followed else ""
        value = f"{self.noise:.6g}" if followed == "noise" else f"{self.rounds:,}"
        units = f"{request.num_units:,} units, neighbours: {request.relation}"
        unit = f"unit {request.privacy_unit}, {units}"
        by_pld = "none for this" if pld is None else f"{shown(pld)} at the same delta"
        return [
            *([f"{target}{value}"] if followed else []),
            f"kind {request.kind}, {unit}",
            f"noise {self.noise:.6g}, rounds {self.rounds:,}, {self.sampling}",
            f"epsilon (RDP) {shown(self.epsilon.rdp)} at delta {request.delta:g}, order {order}",
            f"epsilon (PLD) {by_pld}",
            *([] if self.person is None else [self._person_line(self.person)]),
        ]

    def _person_line(self, person: Epsilon) -> str:
        request = self.request
        size = f"at most {request.person_units} {request.privacy_unit}s"
        return f"epsilon {shown(person.value)} for a whole person ({size})"

    def to_json(self) -> dict[str, object]:
        """A recipe's record of the plan, without the limit, which changes nothing."""
        names = ("kind", "privacy_unit", "num_units", "relation")
        person = {}
        if self.person is not None:
            value = self.person.value if math.isfinite(self.person.value) else None
            person = {"person_units": self.request.person_units, "person_epsilon": value}
        return {name: getattr(self.request, name) for name in names} | {
            "noise": self.noise,
            "rounds": self.rounds,
            "sampling": self.sampling,
            "event": events.to_json(self.event),
            "delta": self.epsilon.delta,
            "epsilon_rdp": self.epsilon.rdp,
            "rdp_order": self.epsilon.order,
            "epsilon_pld": self.epsilon.pld,
            **person,
        }


def plan(request: PlanRequest) -> Plan:
    """Cost of a setting, whose noise or rounds follow first where a target epsilon is given.

    Raises:
        PrivacyError: a target that nothing reaches, or a cost above ``max_epsilon``.

    >>> given = {"kind": "updates", "privacy_unit": "speaker", "num_units": 74,
    ...     "relation": "add or remove one", "delta": 1e-5, "client_fraction": 0.1, "rounds": 100,
    ...     "noise": 1.0}
    >>> made = plan(PlanRequest(**dict.fromkeys(PlanRequest.__dataclass_fields__) | given))
    >>> f"{made.epsilon.rdp:.2f} {made.epsilon.pld:.2f}"
    '7.90 7.05'
    """
    relation = Relation(request.relation)
    make, sampling = _EVENTS[request.kind](request, relation)
    noise, rounds = _resolved(request, make, relation)
    event = make(noise, rounds)
    person = None
    if request.person_units is not None:
        person = account(for_group(event, request.person_units), relation, request.delta)
    epsilon = account(event, relation, request.delta)
    planned = Plan(request, noise, rounds, event, sampling, epsilon, person)
    if request.max_epsilon is not None and planned.epsilon.value > request.max_epsilon:
        expected = f"epsilon {request.max_epsilon:g} at most (max_epsilon)"
        found = f"{shown(planned.epsilon.value)} at delta {request.delta:g}"
        way_out = (
            "more noise, fewer rounds or queries, a smaller client fraction; or raise the limit"
        )
        raise PrivacyError("the plan", expected, found, way_out)
    return planned


_Make: TypeAlias = Callable[[float, int], Event]


def _resolved(request: PlanRequest, make: _Make, relation: Relation) -> tuple[float, int]:
    """Noise and rounds: as given, or one of them as the target epsilon has it."""
    target: dict[str, Any] = {"delta": request.delta, "relation": relation}
    match request.noise, request.rounds, request.epsilon:
        case float(noise), int(rounds), None:
            return noise, rounds
        case None, int(rounds), float(epsilon):
            return noise_for(lambda value: make(value, rounds), epsilon=epsilon, **target), rounds
        case float(noise), None, float(epsilon):
            rounds = count_for(lambda value: make(noise, value), epsilon=epsilon, **target)
            if rounds > 0:
                return noise, rounds
            at, way_out = f"epsilon {epsilon:g}", "take more noise"
            raise PrivacyError(at, "one round at least", "none", way_out)
    names = [name for name in ("noise", "rounds", "epsilon") if getattr(request, name) is not None]
    expected = "two of noise, rounds and epsilon: the third follows"
    way_out = "give what is missing, or leave one out"
    raise PrivacyError("the plan", expected, " and ".join(names) or "none", way_out)


def _updates(request: PlanRequest, relation: Relation) -> tuple[_Make, str]:
    schemes: dict[str, Callable[[], Sampling]] = {
        "client_fraction": lambda: PoissonSampling(
            request.client_fraction  # type: ignore[arg-type]
        ),
        "cohort": lambda: FixedCohort(request.cohort, request.num_units),  # type: ignore[arg-type]
        "batches": lambda: PartitionedEpochs(
            request.batches,  # type: ignore[arg-type]
            same_order=request.strategy is not None,
        ),
    }
    given = [name for name in schemes if getattr(request, name) is not None]
    if len(given) > 1:
        expected = "one of client_fraction, cohort, batches"
        raise PrivacyError("sampling", expected, " and ".join(given), "choose one")
    sampling = schemes[given[0]]() if given else AllUnits()
    if request.strategy is not None or request.bands is not None:
        return _correlated(request, sampling)
    return (
        lambda noise, rounds: sampling.event(events.gaussian(noise), rounds, relation),
        sampling.describe(),
    )


def _correlated(request: PlanRequest, sampling: Sampling) -> tuple[_Make, str]:
    rounds = request.rounds
    if rounds is None:
        raise PrivacyError("rounds", "a number, which a strategy is for", "none", "give it")
    turns, bands = sampling.turns(rounds), request.bands
    if request.strategy == "square_root" and bands is None:
        bands = min(turns.apart, rounds)
    try:
        strategy = Strategy(request.strategy or "", rounds, bands=bands)
    except ValueError as error:
        at, expected = "strategy and bands", "a strategy over rounds"
        raise PrivacyError(at, expected, str(error), "correct it") from error
    how = f"{sampling.describe()}; noise correlated over rounds by {strategy.describe()}"
    return lambda noise, _: correlated_event(noise, strategy, turns), how


def _votes(request: PlanRequest, relation: Relation) -> tuple[_Make, str]:
    asked, threshold_sigma = request.asked, request.threshold_noise
    if (asked is None) != (threshold_sigma is None):
        raise PrivacyError("asked and threshold_noise", "both or neither", "one", "give the other")

    known = all_mechanisms(aggregates=VOTES, needs_threshold=False)
    if request.mechanism not in known:
        raise PrivacyError("mechanism", " or ".join(known), repr(request.mechanism), "name one")
    chosen = mechanism(request.mechanism)
    if asked is not None:  # GNMax with a threshold is Confident-GNMax
        if chosen is not GNMAX:
            way_out = f"leave it out, or take {GNMAX.name}"
            raise PrivacyError("asked", f"no threshold with {chosen.name}", "one", way_out)
        chosen = CONFIDENT_GNMAX

    change = Change.of(request.units_in_a_shard or 2)

    def make(noise: float, rounds: int) -> Event:
        checks = (asked or rounds, threshold_sigma or 0.0)
        return chosen.event(Amounts(noise, rounds, *checks, change=change))

    moved = "one unit gives or takes a vote" if change is Change.GIVEN else "one unit moves a vote"
    return make, f"one vote of each teacher in every query: {moved}, L2 sensitivity {change.l2:.3g}"


def _counts(request: PlanRequest, relation: Relation) -> tuple[_Make, str]:
    sensitivity = request.sensitivity
    if sensitivity is None:
        expected = "how much one unit can change the counts"
        raise PrivacyError("sensitivity", expected, "none", "give it")

    def laplace(noise: float, rounds: int) -> Event:
        return events.repeated(events.laplace_vector(noise / sensitivity), rounds)

    def gaussian(noise: float, rounds: int) -> Event:
        return events.repeated(events.discrete_gaussian_vector(noise, sensitivity), rounds)

    mechanisms = {"discrete_laplace": laplace, "discrete_gaussian": gaussian}
    if request.mechanism not in mechanisms:
        known = " or ".join(mechanisms)
        raise PrivacyError("mechanism", known, repr(request.mechanism), "name one")
    return mechanisms[request.mechanism], AllUnits().describe()


_EVENTS: dict[str, Callable[[PlanRequest, Relation], tuple[_Make, str]]] = {
    "updates": _updates,
    "votes": _votes,
    "counts": _counts,
}
_ALLOWED = {
    "updates": {"client_fraction", "cohort", "batches", "strategy", "bands"},
    "votes": {"mechanism", "asked", "threshold_noise", "units_in_a_shard"},
    "counts": {"mechanism", "sensitivity"},
}
