"""The one-run audit of a noisy sum: do units show that send a mark of their own?

Each mark is a unit whose part of the sum is one coordinate, as long as the clip allows, and is put in or left
out by a coin. The attack adds up what the steps or rounds released there
(:mod:`privasr_k2.privacy.audit.one_run`): it is the strongest on a noisy sum, so that its bound can come near
the claim. It is run again with the noise divided, and with next to none, since a bound below the claim counts
only where the same attack finds what is there.
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

#: (K,) coordinates of the units that are in, all M coordinates, and a share of the noise, to (M,) sums over
#: the steps of what was released at all of them.
MarkedRun = Callable[[np.ndarray, np.ndarray, float], np.ndarray]

#: The noise of the run that must show leakage, by that of the claim.
_HARDLY_ANY = 1e-6


@dataclass(frozen=True)
class MarksConfig(Checked):
    """Numbers of an audit by marks.

    Attributes:
        marks: units that send one, put in by coins; 2 or more.
        guesses: share of them that the attack guesses to be in, in (0, 1].
        broken: above 1: the noise is divided by it where more than the claim has to be found.
        confidence: of the bounds, in (0, 1).
    """

    marks: Annotated[int, Ge(2)]
    guesses: PositiveShare
    broken: Annotated[float, Gt(1)]
    confidence: Delta


def audit_marks(
    run: MarkedRun,
    *,
    size: int,
    claimed_epsilon: float,
    delta: float,
    seed: int,
    config: MarksConfig,
    agree: Callable[[np.ndarray], np.ndarray] = lambda inside: inside,
) -> dict[str, Any]:
    """Three runs and their verdict, as plain values.

    Args:
        run: a training from its beginning; a unit that is in takes part like any other.
        size: coordinates of a gradient or an update.
        claimed_epsilon: for adding or removing one unit, at ``delta``.
        seed: of the coordinates; the coins are nobody's to know.
        agree: where several processes share the run, gives all of them the leader's (K,) numbers of the marks
            that are in: each draws coins of its own. What is returned counts in the leader.

    Raises:
        DataError: fewer coordinates than marks.
    """
    if size < config.marks:
        raise DataError("marks", f"at most {size}, a coordinate each", str(config.marks), "take fewer")
    coordinates = stream(seed, "marks").choice(size, size=config.marks, replace=False)

    def bound(share: float) -> AuditBound:
        coins = inclusion_coins(noise_stream(new_secret(), "coins"), canaries=config.marks)
        scores = run(coordinates[agree(np.flatnonzero(coins))], coordinates, share)
        # None is guessed to be out: whoever is in may never have been drawn.
        chosen = max(1, round(config.guesses * config.marks))
        guesses = guesses_from_scores(scores, guess_in=chosen, guess_out=0)
        return one_run_bound(coins, guesses, delta=delta, confidence=config.confidence)

    shares = {"sound": 1.0, "broken": 1 / config.broken, "noise_free": _HARDLY_ANY}
    found = {name: bound(share) for name, share in shares.items()}
    return judged(found, claimed_epsilon=claimed_epsilon, claimed_delta=delta)
