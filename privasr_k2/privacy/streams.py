"""Sources of a training's participants and noise: a release, or a stand-in without a claim."""

from __future__ import annotations

import hashlib
from typing import Protocol

from privasr_k2.randomness import NoiseStream, new_secret, noise_stream


class Secrets(Protocol):
    """A :class:`privasr_k2.privacy.release.Release`, or its like."""

    def stream(self, *names: str | int) -> NoiseStream:
        """The stream for the draw of a cohort or batch, the same each time."""

    def noise(self, *names: str | int) -> NoiseStream:
        """The stream for the noise of one value, asked for once."""


class Drawn:
    """Streams for a training whose result is not released with a claim.

    Args:
        what: is drawn, such as ``cohorts``: trainings of other things have other streams.
        seed: anybody who knows it can draw the same again; None: nobody can, which an audit needs.

    >>> one, again = (Drawn("cohorts", 1).stream(0).random_bytes(8) for _ in range(2))
    >>> one == again, one == Drawn("batches", 1).stream(0).random_bytes(8)
    (True, False)
    """

    def __init__(self, what: str, seed: int | None) -> None:
        named = hashlib.sha256(f"{what} without a claim {seed}".encode()).digest()
        self._secret = new_secret() if seed is None else named

    def stream(self, *names: str | int) -> NoiseStream:
        """As :class:`Secrets` has it."""
        return noise_stream(self._secret, *names)

    def noise(self, *names: str | int) -> NoiseStream:
        """As :class:`Secrets` has it."""
        return self.stream("noise", *names)
