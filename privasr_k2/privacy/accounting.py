"""From an event to epsilon: by Rényi DP, and more tightly by privacy loss distributions.

Both are upper bounds for the same mechanism, so the smaller one holds as well.
"""

from __future__ import annotations

import enum
import functools
import math
from dataclasses import dataclass

from dp_accounting import dp_event as dp

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, loss_distributions, renyi
from privasr_k2.privacy.events import (
    FOR_REPLACING,
    Event,
    for_replacing,
    is_unprotected,
    joined,
    terms,
    to_json,
)
from privasr_k2.privacy.searches import SearchDpEvent


class Relation(enum.Enum):
    """Neighboring relation of a guarantee."""

    ADD_OR_REMOVE_ONE = "add or remove one"
    REPLACE_ONE = "replace one"


@dataclass(frozen=True)
class Epsilon:
    """Cost of an event.

    Attributes:
        delta: of both epsilons.
        rdp: epsilon by Rényi DP.
        order: the order that gives it; infinity where pure epsilons were added up.
        pld: epsilon by privacy loss distributions; ``None`` where none can be computed.
    """

    delta: float
    rdp: float
    order: float
    pld: float | None

    @property
    def value(self) -> float:
        """The smaller of the two: it holds."""
        return self.rdp if self.pld is None else min(self.rdp, self.pld)


def account(event: Event, relation: Relation, delta: float) -> Epsilon:
    """The epsilons of ``event`` at ``delta``.

    Args:
        event: with noise relative to what *adding or removing* one unit changes.
        relation: for ``REPLACE_ONE`` the sensitivities are doubled here.

    Raises:
        PrivacyError: a value out of range, or an event that has no bound for this relation.

    >>> from privasr_k2.privacy.events import gaussian, poisson_sampled, repeated
    >>> training = repeated(poisson_sampled(0.01, gaussian(1.5)), 1000)
    >>> found = account(training, Relation.ADD_OR_REMOVE_ONE, 1e-5)
    >>> f"{found.rdp:.3f} {found.pld:.3f}"
    '1.013 0.918'
    """
    checks.number("delta", delta, above=0, below=1)
    return _account(tuple(terms(under(event, relation)).items()), delta)


@functools.lru_cache(maxsize=256)  # reports ask for the same composition in several tables
def _account(leaves: tuple[tuple[Event, int], ...], delta: float) -> Epsilon:
    event = joined(dict(leaves))
    if not leaves:
        return Epsilon(delta, 0.0, math.inf, 0.0)
    if is_unprotected(event):
        return Epsilon(delta, math.inf, math.inf, math.inf)
    by_rdp, order = renyi.epsilon(event, delta)
    by_pld = None
    if loss_distributions.is_supported(event) and delta >= loss_distributions.smallest_delta(event):
        by_distribution = loss_distributions.epsilon(event, delta, guess=by_rdp)
        # Beyond what its floats can hold dp-accounting gives infinity, which is no account.
        by_pld = by_distribution if math.isfinite(by_distribution) else None
    return Epsilon(delta, by_rdp, order, by_pld)


def under(event: Event, relation: Relation) -> Event:
    """``event`` with its noise relative to what one unit changes under ``relation``.

    Raises:
        PrivacyError: it has no bound for this relation.
    """
    if relation is Relation.REPLACE_ONE:
        return for_replacing(event)
    for leaf in terms(event):
        if isinstance(leaf, SearchDpEvent):
            under(leaf.event, relation)
        if isinstance(leaf, (*FOR_REPLACING, dp.SampledWithoutReplacementDpEvent)):
            place = str(to_json(leaf))
            expected = "an event with a bound for adding or removing one unit"
            found = "one for replacing a unit only"
            raise PrivacyError(place, expected, found, "state the guarantee for replacing one unit")
    return event
