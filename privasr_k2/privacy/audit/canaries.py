"""One-run audit of a noisy sum by canaries.

A canary is a unit whose contribution is one coordinate, as long as the clip allows. A coin decides
whether it is inserted. The attack scores it by what the steps or rounds released at its coordinate,
:func:`log_likelihood_ratio`. The bound is that of the claim's whole curve
(:mod:`privasr_k2.privacy.audit.one_run_curve`), or of one (epsilon, delta) where the claimed event
has no curve (:mod:`privasr_k2.privacy.audit.one_run`). The audit also runs with the noise divided
and with almost none: a bound below the claim counts only where the same attack finds those leaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import ArrayLike

from privasr_k2.constraints import Checked, Delta, PositiveShare
from privasr_k2.errors import DataError
from privasr_k2.privacy.audit.bounds import AuditBound, judged
from privasr_k2.privacy.audit.one_run import guesses_from_scores, inclusion_coins, one_run_bound
from privasr_k2.privacy.audit.one_run_curve import Claim, CurveAudit
from privasr_k2.randomness import new_secret, noise_stream, stream

#: (K,) coordinates of the units that are in, all M coordinates, and a share of the noise, to (M,)
#: scores of all of them.
CanaryRun = Callable[[np.ndarray, np.ndarray, float], np.ndarray]

#: The noise of the run that must show leakage, by that of the claim.
_HARDLY_ANY = 1e-6


@dataclass(frozen=True)
class CanaryConfig(Checked):
    """Settings of an audit by canaries.

    Attributes:
        marks: number of canaries, each inserted with probability 1/2.
        guesses: share of the canaries that the attack guesses to be inserted.
        broken: divisor of the noise where more than the claim has to be found.
    """

    marks: Annotated[int, Ge(2)]
    guesses: PositiveShare
    broken: Annotated[float, Gt(1)]
    confidence: Delta


def log_likelihood_ratio(
    released: ArrayLike, *, rate: float, noise: float, clip: float = 1.0
) -> np.ndarray:
    """How much likelier one step's sum is with the unit in than out: the score of a canary.

        ln(1 - q + q exp((x - 1/2) / z^2)),  x = released / clip

    The sum over steps is the best score of a unit that each step draws with probability q, where
    nobody else has its coordinate.

    Args:
        released: (M,) noisy sums at the coordinates of the canaries.
        rate: q in (0, 1].
        noise: z, the standard deviation of the noise by the clip.

    >>> log_likelihood_ratio([0.0, 0.5, 1.0], rate=1.0, noise=0.5)
    array([-2.,  0.,  2.])
    """
    shifted = (np.asarray(released, dtype=np.float64) / clip - 0.5) / noise**2
    with np.errstate(divide="ignore"):  # rate = 1: nobody is left out
        return np.logaddexp(np.log1p(-rate), np.log(rate) + shifted)


def audit_canaries(
    run: CanaryRun,
    *,
    size: int,
    claim: Claim,
    seed: int,
    config: CanaryConfig,
    agree: Callable[[np.ndarray], np.ndarray] = lambda inside: inside,
) -> dict[str, Any]:
    """Three runs and their verdict, as plain values.

    Args:
        run: a training from its beginning; a unit that is in takes part like any other.
        size: coordinates of a gradient or an update.
        seed: of the coordinates; the coins are nobody's to know.
        agree: gives each of several processes the leader's (K,) numbers of the inserted canaries.
            The result is valid in the leader only.

    Raises:
        DataError: fewer coordinates than canaries.
    """
    if size < config.marks:
        expected = f"at most {size}, a coordinate each"
        raise DataError("marks", expected, str(config.marks), "take fewer")
    coordinates = stream(seed, "marks").choice(size, size=config.marks, replace=False)
    # None is guessed to be out: whoever is in may never have been drawn.
    chosen = max(1, round(config.guesses * config.marks))
    curve = CurveAudit(claim, canaries=config.marks, guesses=chosen, confidence=config.confidence)

    def bound(share: float) -> AuditBound:
        coins = inclusion_coins(noise_stream(new_secret(), "coins"), canaries=config.marks)
        scores = run(coordinates[agree(np.flatnonzero(coins))], coordinates, share)
        guesses = guesses_from_scores(scores, guess_in=chosen, guess_out=0)
        if claim.has_curve:
            return curve.bound(int(np.count_nonzero(coins & (guesses == 1))))
        return one_run_bound(coins, guesses, delta=claim.delta, confidence=config.confidence)

    shares = {"sound": 1.0, "broken": 1 / config.broken, "noise_free": _HARDLY_ANY}
    bounds = {name: bound(share) for name, share in shares.items()}
    found = judged(bounds, claimed_epsilon=claim.epsilon, claimed_delta=claim.delta)
    return {**found, "method": bounds["sound"].method}
