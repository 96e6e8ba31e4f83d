"""The one-run audit of DP-SGD: do units show that send a mark of their own?

Each mark is a unit whose gradient is one coordinate, as long as the clip allows, and is put in or left out by
a coin. The attack adds up what the steps released there (:mod:`privasr_k2.privacy.audit.one_run`): it is the
strongest on a noisy sum, so that its bound can come near the claim. It is run again with the noise divided,
and with next to none, since a bound below the claim counts only where the same attack finds what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from privasr_k2.attack.settings import MarkAuditConfig
from privasr_k2.attack.vote_audit import verdict_to_json
from privasr_k2.errors import DataError
from privasr_k2.privacy.audit.bounds import AuditBound, judge
from privasr_k2.privacy.audit.one_run import guesses_from_scores, inclusion_coins, one_run_bound
from privasr_k2.randomness import new_secret, noise_stream, stream

#: How marks are called: sorted, they are in the order of their coordinates.
_NAME = "mark-{:09}"

#: (K,) coordinates of the units that are in, all M coordinates, and a share of the noise, to (M,) sums over
#: the steps of what was released at all of them.
MarkedRun = Callable[[np.ndarray, np.ndarray, float], np.ndarray]

#: The noise of the run that must show leakage, by that of the claim.
_HARDLY_ANY = 1e-6


class Marks(Mapping[str, Tensor]):
    """Gradients of units that are one coordinate each, made when they are asked for.

    >>> marks = Marks([3], size=5, length=2.0)
    >>> {name: gradient.tolist() for name, gradient in marks.items()}
    {'mark-000000003': [0.0, 0.0, 0.0, 2.0, 0.0]}

    Args:
        coordinates: of the units that are in.
        size: values of a gradient.
        length: of a mark.
    """

    def __init__(self, coordinates: Sequence[int], size: int, length: float) -> None:
        self._places = {_NAME.format(place): place for place in coordinates}
        self._size, self._length = size, length

    def __getitem__(self, name: str) -> Tensor:
        gradient = torch.zeros(self._size)
        gradient[self._places[name]] = self._length
        return gradient

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def audit_marks(
    run: MarkedRun, *, size: int, claimed_epsilon: float, delta: float, seed: int, config: MarkAuditConfig
) -> dict[str, Any]:
    """Three runs and their verdict, as plain values.

    Args:
        run: a training from its beginning; a unit that is in takes part like any other.
        size: coordinates of a gradient.
        claimed_epsilon: for adding or removing one unit, at ``delta``.
        seed: of the coordinates; the coins are nobody's to know.

    Raises:
        DataError: fewer coordinates than marks.
    """
    if size < config.marks:
        raise DataError("marks", f"at most {size}, a coordinate each", str(config.marks), "take fewer")
    coordinates = stream(seed, "marks").choice(size, size=config.marks, replace=False)

    def bound(share: float) -> AuditBound:
        coins = inclusion_coins(noise_stream(new_secret(), "coins"), canaries=config.marks)
        scores = run(coordinates[coins], coordinates, share)
        # None is guessed to be out: whoever is in may never have been drawn.
        chosen = max(1, round(config.guesses * config.marks))
        guesses = guesses_from_scores(scores, guess_in=chosen, guess_out=0)
        return one_run_bound(coins, guesses, delta=delta, confidence=config.confidence)

    shares = {"sound": 1.0, "broken": 1 / config.broken, "noise_free": _HARDLY_ANY}
    found = {name: bound(share) for name, share in shares.items()}
    verdict = judge(
        found["sound"], broken=found["broken"], noise_free=found["noise_free"],
        claimed_epsilon=claimed_epsilon, claimed_delta=delta,
    )  # fmt: skip
    return verdict_to_json(found, claimed_epsilon, verdict.value)
