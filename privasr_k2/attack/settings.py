"""Settings of attacks, sections of ``conf/pate.yaml``, which explains every value."""

from __future__ import annotations

from dataclasses import dataclass

from privasr_k2.privacy.audit.canaries import CanaryConfig

ATTACKS = ("white_box", "black_box")


def _check(config: object, least: dict[str, float], above: tuple[str, ...] = ()) -> None:
    for name, value in least.items():
        if not getattr(config, name) >= value:
            raise ValueError(f"{name} must be at least {value:g}, got {getattr(config, name)}")
    for name in above:
        if not getattr(config, name) > 0:
            raise ValueError(f"{name} must be above 0, got {getattr(config, name)}")


@dataclass(frozen=True)
class InversionConfig:
    """Section ``inversion``."""

    words: list[str]
    attack: str
    control: bool
    heads: list[int]
    weights: list[float]
    background_roles: list[str]
    background_utterances: int
    prior: float
    smoothness: float
    start: float
    lr: float
    steps: int
    restarts: int
    jitter: float
    queries: int
    population: int
    spread: float
    components_per_second: float
    seed: int

    def __post_init__(self) -> None:
        if not self.words or not all(word.strip() for word in self.words):
            raise ValueError("words must name at least one word or phrase")
        if len(set(self.words)) < len(self.words):
            raise ValueError("words must name each once")
        if self.attack not in ATTACKS:
            raise ValueError(f"attack must be one of {' '.join(ATTACKS)}, got {self.attack!r}")
        if not self.background_roles:
            raise ValueError("background_roles must name at least one role")
        if any(head < 1 for head in self.heads) or len(set(self.heads)) < len(self.heads):
            raise ValueError(f"heads must be 1 or more, each once, got {self.heads}")
        if any(not weight > 0 for weight in self.weights) or (
            self.weights and abs(sum(self.weights) - 1) > 1e-6
        ):
            raise ValueError(f"weights must be above 0 and sum to 1, got {self.weights}")
        _check(
            self,
            {"background_utterances": 1, "prior": 0, "smoothness": 0, "start": 0, "steps": 1, "restarts": 1,
             "jitter": 0, "population": 1},
            ("lr", "spread", "components_per_second"),
        )  # fmt: skip
        if self.queries < 2 * self.population + 1:
            raise ValueError(f"queries must be at least {2 * self.population + 1}, got {self.queries}")


@dataclass(frozen=True)
class InversionReportConfig:
    """Section ``report_inversion``."""

    member_role: str
    other_roles: list[str]
    utterance_mean: bool
    mel_bins: int
    lifter: float
    permutations: int
    replicates: int
    confidence: float
    seed: int

    def __post_init__(self) -> None:
        if not self.other_roles:
            raise ValueError("other_roles must name at least one role")
        _check(self, {"mel_bins": 0, "lifter": 0, "permutations": 1, "replicates": 1})
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be in (0, 1), got {self.confidence}")


@dataclass(frozen=True)
class MembershipConfig:
    """Section ``membership``."""

    private_role: str
    other_roles: list[str]
    unit: str
    fpr: float
    confidence: float
    max_duration: float

    def __post_init__(self) -> None:
        if self.unit not in ("speaker", "utterance"):
            raise ValueError(f"unit must be speaker or utterance, got {self.unit!r}")
        if not self.other_roles:
            raise ValueError("other_roles must name at least one role")
        for name in ("fpr", "confidence"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be in (0, 1), got {getattr(self, name)}")
        _check(self, {}, ("max_duration",))


@dataclass(frozen=True)
class VoteAuditConfig:
    """``conf/audit_pate.yaml``."""

    draws: int
    broken: float
    confidence: float

    def __post_init__(self) -> None:
        _check(self, {"draws": 2})
        if self.draws % 2:
            raise ValueError(f"draws must be even, got {self.draws}")
        if self.broken <= 1 or not 0 < self.confidence < 1:
            raise ValueError("broken must be above 1 and confidence in (0, 1)")


@dataclass(frozen=True)
class CanaryAuditConfig(CanaryConfig):
    """``conf/audit_dpsgd.yaml``."""

    speech: bool
