"""Settings of the verbs of federated marginal personalization: run_fmp, tune_fmp, release_fmp,
audit_fmp.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Annotated

from annotated_types import Ge, MinLen

from privasr_k2.constraints import Checked, Delta, Finite, FiniteOrZero, NotNegative, one_of
from privasr_k2.federated.adapted_lm import Mixing
from privasr_k2.federated.fmp_release import UNITS, FmpReleaseConfig
from privasr_k2.federated.fmp_simulation import CacheConfig

CRITERIA = ("errors", "perplexity")


@dataclass(frozen=True)
class FmpConfig(CacheConfig):
    """Algorithm 1 of [liu2020]: caches, weights and scores; defaults in ``conf/fmp.yaml#fmp``.

    Args:
        lam, alpha, beta: of eq. 1 and 2, as in :class:`privasr_k2.federated.adapted_lm.Mixing`.
        normalized: divide by Z(h); false leaves it out, as the paper rescores. Perplexities need
            it.
        threshold: a released count is believed as far as it differs from the background's by more
            than so many standard deviations of its noise.
        release_words: the background counts as so many words beside all released counts, at least
            1.
        name: of the adapted LM in rescoring; empty: that of the LM's folder or file.
        lams: of lambda, what tune_fmp tries.
        alphas, betas, kernel_bandwidths: the same of the other weights, where alpha + beta is at
            most 1;
            empty: the value above alone.
        criterion: ``errors`` of rescoring or ``perplexity``: what tune_fmp chooses by.
    """

    lam: float
    alpha: float
    beta: float
    normalized: bool
    threshold: NotNegative
    release_words: NotNegative
    name: str
    lams: Annotated[list[FiniteOrZero], MinLen(1)]
    alphas: list[float]
    betas: list[float]
    kernel_bandwidths: list[float]
    criterion: Annotated[str, one_of(*CRITERIA)]

    def __post_init__(self) -> None:
        super().__post_init__()
        Mixing(self.lam, self.alpha, self.beta)
        if not self.tried():
            raise ValueError(
                f"alphas and betas must have sums of at most 1, got {self.alphas} and {self.betas}"
            )

    def tried(self) -> list[dict[str, float]]:
        """Points of the grid that are tried with every lambda; one empty point without a grid."""
        lists = {
            "alpha": self.alphas,
            "beta": self.betas,
            "kernel_bandwidth": self.kernel_bandwidths,
        }
        names = [name for name, values in lists.items() if values]
        points = [dict(zip(names, values)) for values in product(*(lists[name] for name in names))]
        return [
            point
            for point in points
            if point.get("alpha", self.alpha) + point.get("beta", self.beta) <= 1
        ]


@dataclass(frozen=True)
class PublishedConfig(Checked):
    """The release of eq. 8 and 9 as published; ``conf/fmp.yaml#fmp_published`` has defaults.

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
    unit: Annotated[str, one_of(*UNITS)]
    rounds: int
    kernel_bandwidth: float
    decay: float
    prior_words: float
    epsilon: Finite
    words: Finite
    delta: Delta

    def __post_init__(self) -> None:
        super().__post_init__()
        self.caches  # noqa: B018  its ranges

    @property
    def caches(self) -> CacheConfig:
        """The caches of all clients, whose kernel is the paper's."""
        return CacheConfig(
            rounds=self.rounds, kernel_bandwidth=self.kernel_bandwidth, normalized_kernel=False,
            prior_words=self.prior_words, decay=self.decay, refresh="round", client_fraction=1.0, seed=0,
        )  # fmt: skip


@dataclass(frozen=True)
class FmpAuditConfig(Checked):
    """The attack of audit_fmp; ``conf/fmp.yaml#fmp_audit`` has defaults.

    Args:
        trials: releases with the unit, and as many without.
        confidence: of the bounds.
    """

    trials: Annotated[int, Ge(2)]
    confidence: Delta


@dataclass(frozen=True)
class AuditedReleaseConfig(FmpReleaseConfig, FmpAuditConfig):
    """A release and the attack on it: sections ``fmp_release`` and ``fmp_audit`` of
    ``conf/fmp.yaml``.
    """
