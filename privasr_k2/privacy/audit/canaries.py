"""One-run audit of a noisy sum by canaries [steinke2023].

A canary is a unit whose contribution is one coordinate, as long as the clip allows. A coin decides
whether it is inserted. The attack scores it by what the steps or rounds released at its coordinate
(:mod:`privasr_k2.privacy.audit.one_run`). The audit also runs with the noise divided and with
almost none: a bound below the claim counts only where the same attack finds those leaks.

[steinke2023] T. Steinke et al., Privacy auditing with one (1) training run, NeurIPS 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt

from privasr_k2.constraints import Checked, Delta, PositiveShare
from privasr_k2.errors import DataError
from privasr_k2.privacy.audit.bounds import AuditBound, judged
from privasr_k2.privacy.audit.one_run import guesses_from_scores, inclusion_coins, one_run_bound
from privasr_k2.randomness import new_secret, noise_stream, stream

#: (K,) coordinates of the units that are in, all M coordinates, and a share of the noise, to (M,)
#: sums over the steps of what was released at all of them.
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


def audit_canaries(
    run: CanaryRun,
    *,
    size: int,
    claimed_epsilon: float,
    delta: float,
    seed: int,
    config: CanaryConfig,
    agree: Callable[[np.ndarray], np.ndarray] = lambda inside: inside,
) -> dict[str, Any]:
    """Three runs and their verdict, as plain values.

    Args:
        run: a training from its beginning; a unit that is in takes part like any other.
        size: coordinates of a gradient or an update.
        claimed_epsilon: for adding or removing one unit, at ``delta``.
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

    def bound(share: float) -> AuditBound:
        coins = inclusion_coins(noise_stream(new_secret(), "coins"), canaries=config.marks)
        scores = run(coordinates[agree(np.flatnonzero(coins))], coordinates, share)
        # None is guessed to be out: whoever is in may never have been drawn.
        chosen = max(1, round(config.guesses * config.marks))
        guesses = guesses_from_scores(scores, guess_in=chosen, guess_out=0)
        return one_run_bound(coins, guesses, delta=delta, confidence=config.confidence)

    shares = {"sound": 1.0, "broken": 1 / config.broken, "noise_free": _HARDLY_ANY}
    bounds = {name: bound(share) for name, share in shares.items()}
    return judged(bounds, claimed_epsilon=claimed_epsilon, claimed_delta=delta)
