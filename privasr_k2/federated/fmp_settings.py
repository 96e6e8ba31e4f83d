"""Settings of the verbs of federated marginal personalization: run_fmp, tune_fmp, release_fmp, audit_fmp."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from privasr_k2.federated.adapted_lm import Mixing
from privasr_k2.federated.fmp_release import UNITS, FmpReleaseConfig
from privasr_k2.federated.fmp_simulation import CacheConfig

CRITERIA = ("errors", "perplexity")


@dataclass(frozen=True)
class FmpConfig(CacheConfig):
    """Algorithm 1 of [liu2020]: caches, weights, and how scores come about; ``conf/fmp.yaml`` has defaults.

    Args:
        lam, alpha, beta: of eq. 1 and 2, as in :class:`privasr_k2.federated.adapted_lm.Mixing`.
        normalized: divide by Z(h); false leaves it out, as the paper rescores. Perplexities need it.
        threshold: a released count is believed as far as it differs from the background's by more than so
            many standard deviations of its noise.
        release_words: the background counts as so many words beside all released counts, at least 1.
        name: of the adapted LM in rescoring; empty: that of the LM's folder or file.
        lams: of lambda, what tune_fmp tries.
        alphas, betas, kernel_bandwidths: the same of the other weights, where alpha + beta is at most 1;
            empty: the value above alone.
        criterion: ``errors`` of rescoring or ``perplexity``: what tune_fmp chooses by.
    """

    lam: float
    alpha: float
    beta: float
    normalized: bool
    threshold: float
    release_words: float
    name: str
    lams: list[float]
    alphas: list[float]
    betas: list[float]
    kernel_bandwidths: list[float]
    criterion: str

    def __post_init__(self) -> None:
        super().__post_init__()
        Mixing(self.lam, self.alpha, self.beta)
        for name in ("threshold", "release_words"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")
        if not self.lams or not all(0 <= lam < np.inf for lam in self.lams):
            raise ValueError(f"lams must be numbers of 0 or more, at least one, got {self.lams}")
        if not self.tried():
            raise ValueError(
                f"alphas and betas must have sums of at most 1, got {self.alphas} and {self.betas}"
            )
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {' '.join(CRITERIA)}, got {self.criterion!r}")

    def tried(self) -> list[dict[str, float]]:
        """Points of the grid that are tried with every lambda; one empty point without a grid."""
        lists = {"alpha": self.alphas, "beta": self.betas, "kernel_bandwidth": self.kernel_bandwidths}
        names = [name for name, values in lists.items() if values]
        points = [dict(zip(names, values)) for values in product(*(lists[name] for name in names))]
        return [
            point for point in points if point.get("alpha", self.alpha) + point.get("beta", self.beta) <= 1
        ]


@dataclass(frozen=True)
class PublishedConfig:
    """The release of eq. 8 and 9 as published; ``conf/fmp_published.yaml`` has defaults.

    Args:
        data: whose releases are added up: a corpus and its part.
        unit: as in :class:`privasr_k2.federated.fmp_release.FmpReleaseConfig`.
        rounds, kernel_bandwidth, decay: of the caches, as in :class:`CacheConfig`.
        prior_words: smoothing of q_i.
        epsilon: what the paper calls epsilon: 1 / scale of the noise.
        words: a unit of at most so many words is covered by what the ledger says; a public number.
        delta: of the guarantee in the ledger.
    """

    data: str
    unit: str
    rounds: int
    kernel_bandwidth: float
    decay: float
    prior_words: float
    epsilon: float
    words: float
    delta: float

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"unit must be one of {' '.join(UNITS)}, got {self.unit!r}")
        for name in ("epsilon", "words"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be above 0 and finite, got {getattr(self, name)}")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must be between 0 and 1, got {self.delta}")
        self.caches  # noqa: B018  its ranges

    @property
    def caches(self) -> CacheConfig:
        """The caches of all clients, whose kernel is the paper's."""
        return CacheConfig(
            rounds=self.rounds, kernel_bandwidth=self.kernel_bandwidth, normalized_kernel=False,
            prior_words=self.prior_words, decay=self.decay, refresh="round", client_fraction=1.0, seed=0,
        )  # fmt: skip


@dataclass(frozen=True)
class FmpAuditConfig:
    """The attack of audit_fmp; ``conf/fmp_audit.yaml`` has defaults.

    Args:
        trials: releases with the unit, and as many without.
        confidence: of the bounds.
    """

    trials: int
    confidence: float

    def __post_init__(self) -> None:
        if self.trials < 2:
            raise ValueError(f"trials must be 2 or more, got {self.trials}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, got {self.confidence}")


@dataclass(frozen=True)
class AuditedReleaseConfig(FmpReleaseConfig, FmpAuditConfig):
    """A release and the attack on it: ``conf/fmp_release.yaml`` and ``conf/fmp_audit.yaml`` together."""

    def __post_init__(self) -> None:
        FmpReleaseConfig.__post_init__(self)
        FmpAuditConfig.__post_init__(self)
