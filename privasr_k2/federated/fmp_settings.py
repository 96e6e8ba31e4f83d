"""Settings of federated marginals: scores, releases as published, audits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

from annotated_types import Ge, MinLen

from privasr_k2.constraints import Checked, Delta, Finite, FiniteOrZero, NotNegative, one_of
from privasr_k2.federated.adapted_lm import Mixing
from privasr_k2.federated.fmp_release import FmpReleaseConfig, check_unit
from privasr_k2.federated.fmp_simulation import CacheConfig

CRITERIA = ("errors", "perplexity")


@dataclass(frozen=True)
class FmpConfig(CacheConfig):
    """Algorithm 1 of [liu2020]: caches, weights and scores; see ``conf/fmp.yaml#fmp``."""

    method: Annotated[str, one_of("marginals")]
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
            raise ValueError(f"alphas and betas must have sums of at most 1, got {self.alphas}")

    def tried(self) -> list[dict[str, float]]:
        """Points of the grid besides lambda; one empty point without a grid."""
        lists = {name: getattr(self, f"{name}s") for name in ("alpha", "beta", "kernel_bandwidth")}
        lists = {name: values for name, values in lists.items() if values}
        points = (dict(zip(lists, values)) for values in product(*lists.values()))
        own = {"alpha": self.alpha, "beta": self.beta}
        return [p for p in points if (own | p)["alpha"] + (own | p)["beta"] <= 1]


@dataclass(frozen=True)
class PublishedConfig(Checked):
    """The release of eq. 8 and 9 as published; see ``conf/fmp.yaml#fmp_published``."""

    data: str
    unit: str
    rounds: int
    kernel_bandwidth: float
    decay: float
    prior_words: float
    epsilon: Finite
    words: Finite
    delta: Delta

    def __post_init__(self) -> None:
        check_unit(self.unit)
        super().__post_init__()
        self.caches  # noqa: B018  its ranges

    @property
    def caches(self) -> CacheConfig:
        """The caches of all clients, with the paper's kernel."""
        names = ("rounds", "kernel_bandwidth", "prior_words", "decay")
        own: dict[str, Any] = {name: getattr(self, name) for name in names}
        return CacheConfig(
            **own, normalized_kernel=False, refresh="round", client_fraction=1.0, seed=0
        )


@dataclass(frozen=True)
class FmpAuditConfig(Checked):
    """The attack of ``audit``; see ``conf/fmp.yaml#fmp_audit``."""

    trials: Annotated[int, Ge(2)]
    confidence: Delta


@dataclass(frozen=True)
class AuditedReleaseConfig(FmpReleaseConfig, FmpAuditConfig):
    """Sections ``fmp_release`` and ``fmp_audit`` of ``conf/fmp.yaml`` together."""
