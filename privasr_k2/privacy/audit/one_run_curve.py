r"""Auditing in one run against the whole curve of a claimed mechanism [mahloujifar2024].

:mod:`privasr_k2.privacy.audit.one_run` looks at one point (epsilon, delta) of a claim. A claimed
event has a whole curve delta(epsilon): for all events A of the release and all real epsilon,

    P[A | unit in] <= e^epsilon P[A | unit out] + delta(epsilon).

Canaries are put in by independent coins, and the attack guesses of r out of m canaries that they
are in. Let p_i be the probability of i right guesses. For every set T of numbers and every epsilon,

    sum over i in T of i p_i <= e^epsilon sum over i in T of (r - i + 1) p_(i - 1)
                                + m delta(epsilon) / 2.

Proof. Fix a canary j and the coins of all others. Let A be the event that j is guessed and that
i - 1 of the other guesses are right, for an i in T. With j in, i guesses are right; with j out,
i - 1. So P[A, j in] <= e^epsilon P[A, j out] + delta(epsilon) / 2, as the coin is fair. The sum
over all j counts each outcome with i right guesses i times on the left, and on the right each
outcome with i - 1 of them once for each of its r - i + 1 wrong guesses.

The largest P[W >= v] that these inequalities allow, for all T = {t, ..., r} and T = {t}, is a
linear program in p. It is solved as it stands; fewer T and epsilons only make the bound looser.

**What the bound means.** The claimed mechanism with its noise times s is a family, from little
privacy to much. The audit rejects one of its members where the number of right guesses is less
likely than 1 - confidence. ``epsilon_lower`` is the epsilon of the member with the least noise that
is rejected, on the grid of :data:`FACTORS`. Above the claim's own epsilon the claim is refuted. It
is no bound for mechanisms outside the family: those of one (epsilon, delta) alone are bounded by
:mod:`privasr_k2.privacy.audit.one_run`, which is weaker.

[mahloujifar2024] S. Mahloujifar, L. Melis, K. Chaudhuri, Auditing f-differential privacy in one
run, 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, vstack

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, loss_distributions
from privasr_k2.privacy.accounting import Relation, account, under
from privasr_k2.privacy.audit import inputs
from privasr_k2.privacy.audit.bounds import AuditBound
from privasr_k2.privacy.events import Event

#: Noise of the members of a family, by that of the claim. None has the claim's own noise, so that a
#: bound is never equal to the claim.
FACTORS = tuple(2.0 ** ((k + 0.5) / 8) for k in range(-32, 32))
#: Epsilons of the curve; those below 0 follow from these.
_EPSILONS = np.array([0, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 13])

#: Slopes and intercepts of lines above which no P[A | in] is, as P[A | out] goes from 0 to 1.
Lines = tuple[np.ndarray, np.ndarray]


def lines_of(event: Event, relation: Relation) -> Lines:
    """The lines of a claimed event.

    For epsilon < 0 they follow from the same claim for the complement of A, with in and out
    exchanged: P[A | in] <= 1 - e^-e (1 - P[A | out] - delta(e)), where e = -epsilon.

    >>> from privasr_k2.privacy.events import gaussian
    >>> slopes, intercepts = lines_of(gaussian(1.0), Relation.ADD_OR_REMOVE_ONE)
    >>> bool((slopes + intercepts >= 1).all())  # what is sure without the unit may be sure with it
    True
    """
    of = under(event, relation)
    deltas = loss_distributions.deltas(of, _EPSILONS.tolist())
    slopes = np.exp(_EPSILONS)
    return (
        np.concatenate([slopes, 1 / slopes]),
        np.concatenate([deltas, 1 - (1 - deltas) / slopes]),
    )


def largest_tail(correct: int, *, guesses: int, canaries: int, lines: Lines) -> float:
    """The largest P[W >= correct] that the inequalities above allow.

    Raises:
        PrivacyError: counts that do not fit together.

    >>> fair = np.array([1.0]), np.array([0.0])  # in and out cannot be told apart
    >>> round(largest_tail(3, guesses=3, canaries=3, lines=fair), 9)
    0.125
    """
    r = checks.whole("guesses", guesses, at_least=1)
    checks.whole("canaries", canaries, at_least=r)
    checks.whole("correct", correct, at_least=0, at_most=r)
    if correct == 0:
        return 1.0
    equal, limits, upper = _inequalities(r, canaries, lines)
    values = 3 * r + 1
    objective = np.zeros(values)
    objective[correct : r + 1] = -1.0
    sums = np.zeros(equal.shape[0])
    sums[-1] = 1.0
    found = linprog(objective, limits, upper, equal, sums, bounds=(0, None), method="highs")
    if not found.success:
        raise PrivacyError("the linear program", "a solution", found.message, "report this")
    return float(min(1.0, -found.fun))


def _inequalities(r: int, canaries: int, lines: Lines) -> tuple[csr_array, csr_array, np.ndarray]:
    """Rows for p_0, ..., p_r and the tails U_t = sum i p_i, V_t = sum (r - i + 1) p_(i - 1)."""
    tails = np.arange(1, r + 1)
    right, wrong = r + tails, 2 * r + tails  # the places of U_t and V_t
    # U_t - t p_t - U_(t + 1) = 0, and the same of V; at last the sum of all p is 1.
    entries = [
        (tails - 1, right, np.ones(r)),
        (tails - 1, tails, -1.0 * tails),
        (tails[:-1] - 1, right[1:], -np.ones(r - 1)),
        (r + tails - 1, wrong, np.ones(r)),
        (r + tails - 1, tails - 1, -(r - tails + 1.0)),
        (r + tails[:-1] - 1, wrong[1:], -np.ones(r - 1)),
        (np.full(r + 1, 2 * r), np.arange(r + 1), np.ones(r + 1)),
    ]
    equal = _sparse(entries, (2 * r + 1, 3 * r + 1))
    # Rows are divided by their largest factor, as solvers want them.
    slopes, intercepts = (values / np.maximum(lines[0], 1.0) for values in lines)
    ones = np.tile(1.0 / np.maximum(lines[0], 1.0), r)
    rows = np.arange(r * len(slopes))
    slope, place = np.tile(slopes, r), np.repeat(tails, len(slopes))
    shape = (len(rows), 3 * r + 1)
    of_tails = _sparse([(rows, r + place, ones), (rows, 2 * r + place, -slope)], shape)
    single = [(rows, place, place * ones), (rows, place - 1, -slope * (r - place + 1))]
    limits = csr_array(vstack([of_tails, _sparse(single, shape)]))
    return equal, limits, np.tile(canaries * intercepts / 2, 2 * r)


def _sparse(
    entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]], shape: tuple[int, int]
) -> csr_array:
    rows, columns, values = (np.concatenate(parts) for parts in zip(*entries))
    return coo_array((values, (rows, columns)), shape=shape).tocsr()


@dataclass(frozen=True)
class Claim:
    """What is audited.

    Attributes:
        event_of: the claimed event with its noise times a factor, for adding or removing one unit.
        delta: of the claim; all epsilons are at it.
    """

    event_of: Callable[[float], Event]
    relation: Relation
    delta: float

    @property
    def epsilon(self) -> float:
        """The claimed epsilon."""
        return self.epsilon_of(1.0)

    def epsilon_of(self, factor: float) -> float:
        """The epsilon with the noise times a factor."""
        return account(self.event_of(factor), self.relation, self.delta).value

    @property
    def has_curve(self) -> bool:
        """Whether delta is known at every epsilon."""
        return loss_distributions.is_supported(under(self.event_of(1.0), self.relation))


@dataclass(frozen=True)
class CurveAudit:
    """The bounds of one claim for runs with so many canaries and guesses.

    >>> from privasr_k2.privacy.events import gaussian
    >>> claim = Claim(lambda factor: gaussian(0.8 * factor), Relation.ADD_OR_REMOVE_ONE, delta=1e-5)
    >>> found = CurveAudit(claim, canaries=500, guesses=50, confidence=0.95).bound(46)
    >>> round(found.epsilon_lower, 2), round(claim.epsilon, 2)
    (2.44, 5.68)
    """

    claim: Claim
    canaries: int
    guesses: int
    confidence: float
    _lines: dict[float, Lines] = field(default_factory=dict, init=False, repr=False)
    _bounds: dict[int, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        inputs.delta(self.claim.delta)
        inputs.confidence(self.confidence)
        checks.whole("canaries", self.canaries, at_least=1)
        checks.whole("guesses", self.guesses, at_least=1, at_most=self.canaries)

    def p_value(self, correct: int, factor: float = 1.0) -> float:
        """The largest chance of so many right guesses under a member of the family."""
        if factor not in self._lines:
            self._lines[factor] = lines_of(self.claim.event_of(factor), self.claim.relation)
        lines = self._lines[factor]
        return largest_tail(correct, guesses=self.guesses, canaries=self.canaries, lines=lines)

    def bound(self, correct: int) -> AuditBound:
        """The bound of a run with so many right guesses; the largest one is of all right."""
        for right in (correct, self.guesses):
            if right not in self._bounds:
                self._bounds[right] = self._lower(right)
        lower, possible = self._bounds[correct], self._bounds[self.guesses]
        about = (self.claim.delta, possible, self.canaries, "one run, the claim's curve")
        return AuditBound(lower, self.confidence, *about)

    def _lower(self, correct: int) -> float:
        """The chance falls with the noise: the least noise that is rejected, by bisection."""
        error = 1 - self.confidence
        low, high = 0, len(FACTORS)  # members below low are not rejected, from high on they are
        while low < high:
            middle = (low + high) // 2
            if self.p_value(correct, FACTORS[middle]) <= error:
                high = middle
            else:
                low = middle + 1
        return self.claim.epsilon_of(FACTORS[high]) if high < len(FACTORS) else 0.0
