"""The settings of federated training, the guarantee it claims, and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from privasr_k2.constraints import (
    Checked,
    Count,
    Delta,
    Natural,
    NotNegative,
    Positive,
    PositiveShare,
    one_of,
)
from privasr_k2.errors import PrivacyError
from privasr_k2.federated.adaptive_clip import QuantileClip, noise_of_sum
from privasr_k2.federated.client import ClientConfig
from privasr_k2.federated.cohorts import KNOWN_TURNS, SCHEMES, expected_size, sampling_of
from privasr_k2.federated.server import ServerConfig
from privasr_k2.federated.weighting import Weighting
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.correlated import correlated_event
from privasr_k2.privacy.noise import GaussianNoise
from privasr_k2.privacy.sampling import Sampling
from privasr_k2.privacy.spending import DECODED_TOGETHER, SETTINGS, Spending
from privasr_k2.privacy.strategies import STRATEGIES, Strategy
from privasr_k2.recipe import renames
from privasr_k2.training.trainable import ALL, LoraConfig

#: Which round's, or epoch's, model is kept: the one that reads dev best, or the last.
SELECTED = ("best", "last")
_BEFORE = "the text that the model was trained on before, and its vocabulary, wherever it is from"
_SEVERAL = "that somebody is several clients, in two calls or on two devices: each is hidden alone"
_LISTED = (
    "which clients the roster names, which is public, and how many rounds there are; hidden is"
    " whether one of them has text, and what"
)
_TIMES = "how long each round took, to whoever watches the machine or reads its logs"
_SHARED_ROUNDING = "float32 rounding that clients of a chunk share"


@dataclass(frozen=True)
class WeightsConfig(Checked):
    """The weight of an update in the average [liu2021, eq. 5]; see ``conf/fedlm.yaml#fedlm``."""

    by: Annotated[str, one_of("words", "uniform", "capped")]
    cap: Count
    mean: Positive

    def of(self, words: int) -> float:
        """The weight of a client with ``words`` words.

        >>> WeightsConfig(by="capped", cap=100, mean=1.0).of(25)
        0.25
        """
        if self.by == "words":
            return float(words)
        return 1.0 if self.by == "uniform" else min(words, self.cap) / self.cap


@dataclass(frozen=True)
class PrivacyConfig(Checked):
    """Clipping and noise of a client's update; see ``privacy`` of ``conf/fedlm.yaml#fedlm``."""

    clip: Positive | None
    noise: NotNegative
    strategy: Annotated[str, one_of(*STRATEGIES)]
    bands: Count | None
    delta: Delta
    quantile: Delta | None
    quantile_lr: float
    count_noise: float
    isolate_clients: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip is None and (self.noise or self.quantile is not None):
            raise ValueError("privacy.noise and privacy.quantile need privacy.clip, got null")
        if self.bands is not None and self.strategy != "square_root":
            raise ValueError(
                f"privacy.bands must be null, or of square_root, got {self.bands} with"
                f" {self.strategy}"
            )
        if self.quantile is not None:
            if not self.quantile_lr > 0 or not self.count_noise > 0:
                raise ValueError("privacy.quantile_lr and count_noise must be above 0")
            if self.noise:
                noise_of_sum(self.noise, self.count_noise)

    @property
    def adaptive(self) -> QuantileClip | None:
        """The rule of the clip; None = it stays."""
        if self.quantile is None:
            return None
        return QuantileClip(self.quantile, self.quantile_lr, self.count_noise)

    @property
    def sum_noise(self) -> float:
        """The multiplier of the noise on the sum: more than ``noise`` where bits are sent too."""
        if self.quantile is None or not self.noise:
            return self.noise
        return noise_of_sum(self.noise, self.count_noise)


@dataclass(frozen=True)
class InitConfig(Checked):
    """The weights that a training begins with, and which of them it changes.

    ``conf/fedlm.yaml#fedlm`` explains the values.
    """

    init: Annotated[str, one_of("pretrained", "scratch")]
    trained: list[str]
    lora: LoraConfig
    seed: int

    @property
    def is_part(self) -> bool:
        """Whether some weights keep their values."""
        return bool(self.trained) and ALL not in self.trained


@dataclass(frozen=True)
class FedLmConfig(InitConfig):
    """Federated training; see ``conf/fedlm.yaml#fedlm``."""

    NEUTRAL: ClassVar[Mapping[str, str]] = {"save_every": "a continued training is the same"}
    REMOVED: ClassVar[Mapping[str, str]] = renames.REMOVED["train_fedlm"]

    data: str
    rounds: Count
    sampling: Annotated[str, one_of(*SCHEMES)]
    cohort: Count
    client_fraction: PositiveShare | None
    relation: Annotated[str, one_of(*(relation.value for relation in Relation))]
    client: ClientConfig
    confidences: Weighting
    server: ServerConfig
    weights: WeightsConfig
    privacy: PrivacyConfig
    positions: Count
    select_round: Annotated[str, one_of(*SELECTED)]
    eval_every: Natural
    save_every: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.claims and self.weights.by == "words":
            raise ValueError("weights.by must be uniform or capped where there is noise")
        if self.claims and self.client.max_seconds:
            # How long a client takes depends on what else the machine does, so on the others.
            raise ValueError(
                "client.max_seconds must be 0 where there is noise, as a clock would decide who"
                f" takes part, got {self.client.max_seconds:g}"
            )
        if self.claims and not self.data:
            raise ValueError("data must name a corpus and its part where there is noise")
        if self.privacy.strategy != "increments" and self.sampling not in KNOWN_TURNS:
            known = ", ".join(KNOWN_TURNS)
            raise ValueError(
                f"sampling must be one of {known} with privacy.strategy={self.privacy.strategy},"
                f" got {self.sampling}: nothing is known for cohorts drawn anew"
            )
        if self.privacy.bands is not None and self.privacy.bands > self.rounds:
            raise ValueError(f"privacy.bands must be at most rounds, got {self.privacy.bands}")

    @property
    def claims(self) -> bool:
        """Whether a guarantee is claimed."""
        return self.privacy.noise > 0

    def sampling_for(self, clients: int) -> Sampling:
        """The sampling of cohorts out of ``clients`` clients.

        Raises:
            PrivacyError: as :func:`privasr_k2.federated.cohorts.sampling_of`.
        """
        size = {"cohort": self.cohort, "client_fraction": self.client_fraction}
        return sampling_of(self.sampling, clients=clients, **size)

    def strategy_for(self, clients: int) -> Strategy:
        """How noise is correlated over rounds.

        Raises:
            PrivacyError: as :meth:`sampling_for`.
        """
        name, bands = self.privacy.strategy, self.privacy.bands
        if name == "square_root" and bands is None:
            bands = min(self.sampling_for(clients).turns(self.rounds).apart, self.rounds)
        return Strategy(name, self.rounds, bands=bands)

    def denominator(self, clients: int) -> float:
        """The divisor of the sum under a claim: public, whoever takes part or fails."""
        return expected_size(self.sampling_for(clients), clients) * self.weights.mean


def spending(config: FedLmConfig, clients: int, unit: str, *, listed: bool = False) -> Spending:
    """The entry of the ledger: all rounds, whether clients fail in them or not.

    Where the clip adapts, the noisy sum and the noisy bits of a round are one Gaussian mechanism of
    multiplier ``privacy.noise``. Correlated noise makes all rounds one mechanism.

    Args:
        clients: their number.
        unit: what a client is, as their file says.
        listed: whether ``clients`` is the number of those on a public roster.

    Raises:
        PrivacyError: no noise, delta >= 1 / clients, client_fraction outside (0, 1], or a scheme
            without a bound for the relation.
    """
    if not config.claims or config.privacy.clip is None:
        raise PrivacyError("privacy.noise", "a number above 0", "0", "set clip and noise")
    relation = Relation(config.relation)
    sampling, strategy = config.sampling_for(clients), config.strategy_for(clients)
    if strategy.name == "increments":
        step = GaussianNoise(
            noise_multiplier=config.privacy.noise, l2_sensitivity=config.privacy.clip
        ).event()
        event, how = sampling.event(step, config.rounds, relation), sampling.describe()
    else:
        event = correlated_event(config.privacy.noise, strategy, sampling.turns(config.rounds))
        how = f"{sampling.describe()}; noise correlated over rounds by {strategy.describe()}"
    shared = () if config.privacy.isolate_clients else (_SHARED_ROUNDING,)
    part = f", of which clients train {' and '.join(config.trained)}" if config.is_part else ""
    return Spending(
        data=config.data,
        released=f"the language model after every round of federated training{part}",
        unit=unit,
        units=clients,
        relation=relation,
        event=event,
        sampling=how,
        delta=config.privacy.delta,
        does_not_cover=(
            _BEFORE,
            _LISTED if listed else "how many clients and rounds there are",
            "dev, which chooses the round that is kept: taken as public",
            SETTINGS,
            _SEVERAL,
            _TIMES,
            DECODED_TOGETHER,
            *shared,
        ),
    )
