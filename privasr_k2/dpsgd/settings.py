"""Settings of DP-SGD, its noise for an epsilon, and its privacy cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from privasr_k2.am.specaugment import SpecAugmentConfig
from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.calibration import noise_for
from privasr_k2.privacy.sampling import PoissonSampling
from privasr_k2.privacy.spending import Spending

RELATION = Relation.ADD_OR_REMOVE_ONE  # the only one that Poisson sampling has a bound for
UNITS = ("utterance", "speaker")


@dataclass(frozen=True)
class DpSgdConfig:
    """Section ``dpsgd`` of ``conf/pate.yaml``, which explains every value."""

    NEUTRAL: ClassVar[Mapping[str, str]] = {
        "save_every": "a training that is continued gives the same weights",
        "memory_gb": "says where features are read from",
    }

    data: str
    unit: str
    within: str
    most_utterances: int
    init: str
    trained: list[str]
    steps: int
    rate: float
    clip: float | None
    epsilon: float | None
    noise: float | None
    delta: float
    isolate_units: bool
    optimizer: str
    lr: float
    momentum: float
    warmup_steps: int
    final_lr_share: float
    average_share: float
    time_stretch: float
    spec_augment: SpecAugmentConfig
    max_duration: float
    gradients_mb: float
    memory_gb: float
    save_every: int
    seed: int

    def __post_init__(self) -> None:
        for name, known in {
            "unit": UNITS,
            "within": ("mean", "sum"),
            "init": ("pretrained", "scratch"),
            "optimizer": ("sgd", "adam"),
        }.items():
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        for name, least in {
            "steps": 1,
            "save_every": 1,
            "most_utterances": 0,
            "warmup_steps": 0,
        }.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("lr", "max_duration", "gradients_mb"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("rate", "final_lr_share"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, got {getattr(self, name)}")
        for name in ("momentum", "time_stretch"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        if not 0 <= self.average_share <= 1:
            raise ValueError(f"average_share must be in [0, 1], got {self.average_share}")
        if self.memory_gb < 0:
            raise ValueError(f"memory_gb must not be below 0, got {self.memory_gb}")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must be above 0 and below 1, got {self.delta}")
        if self.epsilon is not None and self.noise is not None:
            raise ValueError(
                "epsilon and noise: give one of them, or neither for a training without a claim"
            )
        for name in ("clip", "epsilon", "noise"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0, or null for none, got {value}")
        if self.claims and self.clip is None:
            raise ValueError("clip must be a number where there is noise, got null")
        if self.claims and not self.data:
            raise ValueError("data must name a corpus and its part where there is noise")

    @property
    def claims(self) -> bool:
        """Whether there is noise, and a guarantee is claimed."""
        return self.epsilon is not None or self.noise is not None

    @property
    def sampling(self) -> PoissonSampling:
        """Poisson sampling of units into batches."""
        return PoissonSampling(self.rate)


def noise_multiplier(config: DpSgdConfig) -> float:
    """The noise of a step by the clip: as given, or the least that stays within ``epsilon``; 0 =
    none.

    Raises:
        PrivacyError: no noise reaches that epsilon.
    """
    if config.epsilon is None:
        return config.noise or 0.0

    def event_of(noise: float) -> events.Event:
        return config.sampling.event(events.gaussian(noise), config.steps, RELATION)

    return noise_for(event_of, epsilon=config.epsilon, delta=config.delta, relation=RELATION)


def spending(config: DpSgdConfig, units: int, noise: float) -> Spending:
    """The ledger entry of all steps.

    Args:
        units: number of units in the private data.
        noise: that of :func:`noise_multiplier`.

    Raises:
        PrivacyError: no claim, or a delta at or above 1 / units.
    """
    if not config.claims:
        raise PrivacyError("epsilon and noise", "one of them", "neither", "a claim needs noise")
    rounding = (
        () if config.isolate_units else ("float32 rounding that units computed together share",)
    )
    several = ("a speaker under several names",) if config.unit == "speaker" else ()
    return Spending(
        data=config.data,
        released="an acoustic model, after every step of DP-SGD",
        unit=config.unit,
        units=units,
        relation=RELATION,
        event=config.sampling.event(events.gaussian(noise), config.steps, RELATION),
        sampling=config.sampling.describe(),
        delta=config.delta,
        does_not_cover=(
            (
                "the model that it began with, its normalization, tokens and lexicon, wherever they"
                " are from"
            ),
            f"how many {config.unit}s and steps there are",
            *several,
            *rounding,
        ),
    )
