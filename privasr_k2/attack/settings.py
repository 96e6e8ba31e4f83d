"""Settings of attacks, sections of ``conf/pate.yaml``, which explains every value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, MinLen, MultipleOf

from privasr_k2.constraints import (
    Checked,
    Count,
    Delta,
    Different,
    Matches,
    Natural,
    NotNegative,
    Positive,
    one_of,
)
from privasr_k2.privacy.audit.canaries import CanaryConfig

ATTACKS = ("white_box", "black_box")
Phrase = Annotated[str, Matches(r".*\S.*", "a word or phrase")]


@dataclass(frozen=True)
class InversionConfig(Checked):
    """Section ``inversion``."""

    words: Annotated[list[Phrase], MinLen(1), Different()]
    attack: Annotated[str, one_of(*ATTACKS)]
    control: bool
    heads: Annotated[list[Count], Different()]
    weights: list[Positive]
    background_roles: Annotated[list[str], MinLen(1)]
    background_utterances: Count
    prior: NotNegative
    smoothness: NotNegative
    start: NotNegative
    lr: Positive
    steps: Count
    restarts: Count
    jitter: NotNegative
    queries: int
    population: Count
    spread: Positive
    components_per_second: Positive
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights and abs(sum(self.weights) - 1) > 1e-6:
            raise ValueError(f"weights must sum to 1, got {self.weights}")
        least = 2 * self.population + 1
        if self.queries < least:
            raise ValueError(f"queries must be at least {least}, got {self.queries}")


@dataclass(frozen=True)
class InversionReportConfig(Checked):
    """Section ``compare_inversion``."""

    member_role: str
    other_roles: Annotated[list[str], MinLen(1)]
    utterance_mean: bool
    mel_bins: Natural
    lifter: NotNegative
    permutations: Count
    replicates: Count
    confidence: Delta
    seed: int


@dataclass(frozen=True)
class MembershipConfig(Checked):
    """Section ``membership``."""

    private_role: str
    other_roles: Annotated[list[str], MinLen(1)]
    unit: Annotated[str, one_of("speaker", "utterance")]
    fpr: Delta
    confidence: Delta
    max_duration: Positive
    utterances: Natural
    strengths: list[Positive]
    copies: Count
    folds: Natural
    replicates: Count
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds == 1:
            raise ValueError("folds must be 0 or at least 2, got 1")


@dataclass(frozen=True)
class RecognizerAttackConfig(Checked):
    """Section ``attack_recognizer`` of ``conf/redteam.yaml``."""

    private_role: str
    other_roles: Annotated[list[str], MinLen(1)]
    classes: Annotated[list[str], MinLen(1), Different()]
    mentions: Count
    other_names: Count
    beam: Count
    tokens_per_second: Positive
    lm_weight: NotNegative
    top: Count
    delta: Delta
    confidence: Delta
    replicates: Count
    max_duration: Positive
    seed: int


@dataclass(frozen=True)
class VoteAuditConfig(Checked):
    """``conf/pate.yaml#audit_pate``."""

    draws: Annotated[int, Ge(2), MultipleOf(2)]
    broken: Annotated[float, Gt(1)]
    confidence: Delta


@dataclass(frozen=True)
class CanaryAuditConfig(CanaryConfig):
    """``conf/pate.yaml#audit_dpsgd``."""

    speech: bool
