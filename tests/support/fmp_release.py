"""Helpers shared with ``test_fmp_release.py``."""

from __future__ import annotations

import dataclasses

from privasr_k2.federated.fmp_release import FmpMechanism, FmpReleaseConfig

RELEASE = FmpReleaseConfig(
    data="tiny/train",
    unit="utterance",
    mechanism="discrete_laplace",
    strategy="increments",
    rounds=3,
    max_rounds=0,
    bound=2.0,
    kernel_bandwidth=1.0,
    decay=1.0,
    epsilon=1.0,
    delta=1e-5,
)


def mechanism(**changes: object) -> FmpMechanism:
    """The usual one with some values changed."""
    return FmpMechanism(dataclasses.replace(RELEASE, **changes))  # type: ignore[arg-type]
