"""Settings of DP-SGD, its noise for an epsilon, and its privacy cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from privasr_k2.am.specaugment import SpecAugmentConfig
from privasr_k2.constraints import (
    Checked,
    Count,
    Delta,
    Natural,
    NotNegative,
    Positive,
    PositiveShare,
    Share,
    ShareBelowOne,
    one_of,
)
from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.calibration import noise_for
from privasr_k2.privacy.sampling import PoissonSampling
from privasr_k2.privacy.spending import SETTINGS, Spending
from privasr_k2.training.trainable import LoraConfig
from privasr_k2.training.trainer import learning_rate

RELATION = Relation.ADD_OR_REMOVE_ONE  # the only one that Poisson sampling has a bound for
UNITS = ("utterance", "speaker")
#: What of a unit's gradient is clipped together, and how a ledger says it.
CLIPPED = {"whole": "clipped whole", "layer": "clipped layer by layer"}


@dataclass(frozen=True)
class DpSgdConfig(Checked):
    """Section ``dpsgd`` of ``conf/pate.yaml``, which explains every value."""

    NEUTRAL: ClassVar[Mapping[str, str]] = {
        "save_every": "a training that is continued gives the same weights",
        "memory_gb": "says where features are read from",
    }

    data: str
    unit: Annotated[str, one_of(*UNITS)]
    within: Annotated[str, one_of("mean", "sum")]
    most_utterances: Natural
    init: Annotated[str, one_of("pretrained", "scratch")]
    trained: list[str]
    lora: LoraConfig
    steps: Count
    rate: PositiveShare
    clip: Positive | None
    clip_by: Annotated[str, one_of(*CLIPPED)]
    epsilon: Positive | None
    noise: Positive | None
    delta: Delta
    isolate_units: bool
    optimizer: Annotated[str, one_of("sgd", "adam")]
    lr: Positive
    most_drift: Positive | None
    momentum: ShareBelowOne
    warmup_steps: Natural
    final_lr_share: PositiveShare
    average_share: Share
    time_stretch: ShareBelowOne
    spec_augment: SpecAugmentConfig
    max_duration: Positive
    gradients_mb: Positive
    memory_gb: NotNegative
    save_every: Count
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon is not None and self.noise is not None:
            raise ValueError("epsilon and noise: give one of them, or neither for no claim")
        if self.claims and self.clip is None:
            raise ValueError("clip must be a number where there is noise, got null")
        if self.clip_by != "whole" and self.clip is None:
            raise ValueError(f"clip must be a number where clip_by is {self.clip_by}, got null")
        if self.most_drift is not None and self.optimizer != "sgd":
            raise ValueError(f"most_drift needs optimizer sgd, got {self.optimizer}")
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
    """The noise of a step by the clip: as given, or the least within ``epsilon``; 0 = none.

    Raises:
        PrivacyError: no noise reaches that epsilon.
    """
    if config.epsilon is None:
        return config.noise or 0.0

    def event_of(noise: float) -> events.Event:
        return config.sampling.event(events.gaussian(noise), config.steps, RELATION)

    return noise_for(event_of, epsilon=config.epsilon, delta=config.delta, relation=RELATION)


def highest_lr(config: DpSgdConfig, units: int, noise: float) -> float:
    """``lr``, or less where noise alone would move a weight by more than ``most_drift``.

    SGD with momentum m adds the noise n_t ~ N(0, (z C / (q N))^2) of step t to a weight with the
    factor w_t = sum over s >= t of lr_s m^(s - t), so that the noise of all steps moves it by

        root mean square = z C / (q N) sqrt(sum over t of w_t^2)

    which is linear in the learning rate. It depends on no data but the number of units.

    Args:
        units: N, number of units in the private data.
        noise: z, of :func:`noise_multiplier`.
    """
    if config.most_drift is None or not noise or config.clip is None:
        return config.lr
    weight, squares = 0.0, 0.0
    for step in reversed(range(config.steps)):
        lr = learning_rate(config, step, step / config.steps)  # type: ignore[arg-type]
        weight = lr + config.momentum * weight
        squares += weight**2
    drift = noise * config.clip / (config.rate * max(1, units)) * math.sqrt(squares)
    return config.lr * min(1.0, config.most_drift / drift)


def spending(config: DpSgdConfig, units: int, noise: float, *, listed: bool = False) -> Spending:
    """The ledger entry of all steps.

    Args:
        units: number of units in the private data, or on the roster.
        noise: of :func:`noise_multiplier`.
        listed: whether ``units`` is the number of those on a public roster.

    Raises:
        PrivacyError: no claim, or a delta at or above 1 / units.
    """
    if not config.claims:
        raise PrivacyError("epsilon and noise", "one of them", "neither", "a claim needs noise")
    shared = "float32 rounding that units computed together share"
    clipped = CLIPPED[config.clip_by]
    known = f"how many {config.unit}s and steps there are"
    if listed:
        known = (
            f"which {config.unit}s the roster names, which is public, and how many steps there are;"
            " hidden is whether one of them has data, and what"
        )
    return Spending(
        data=config.data,
        released=f"an acoustic model, after every step of DP-SGD, gradients {clipped}",
        unit=config.unit,
        units=units,
        relation=RELATION,
        event=config.sampling.event(events.gaussian(noise), config.steps, RELATION),
        sampling=config.sampling.describe(),
        delta=config.delta,
        does_not_cover=(
            "the model that it began with, its normalization, tokens and lexicon, wherever they are"
            " from",
            known,
            SETTINGS,
            "how long each step took, to whoever watches the machine or reads its logs",
            *(["a speaker under several names"] if config.unit == "speaker" else []),
            *([] if config.isolate_units else [shared]),
        ),
    )
