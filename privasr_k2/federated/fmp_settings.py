"""Settings of the verbs run_fmp, tune_fmp, release_fmp and audit_fmp."""

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
        normalized: divide by Z(h), which the paper's rescoring does not. Perplexities need it.
        threshold: of :func:`privasr_k2.federated.fmp_release.released_marginals`.
        release_words: the background counts as so many words beside all released counts.
        name: of the adapted LM in rescoring; empty: that of the LM's folder or file.
        lams: values of lambda that tune_fmp tries.
        alphas, betas, kernel_bandwidths: of the other weights, where alpha + beta <= 1; empty: the
            one value above.
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
        """Points of the grid besides lambda; one empty point without a grid."""
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
        data: corpus and part whose releases are added up.
        unit: as in :class:`privasr_k2.federated.fmp_release.FmpReleaseConfig`.
        rounds, kernel_bandwidth, decay, prior_words: of the caches, as in :class:`CacheConfig`.
        epsilon: the paper's: 1 / scale of the noise.
        words: the ledger's entry covers units of at most so many words; public.
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
        """The caches of all clients, with the paper's kernel."""
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
    """Sections ``fmp_release`` and ``fmp_audit`` of ``conf/fmp.yaml`` together."""
