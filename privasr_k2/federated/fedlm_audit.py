"""Attacks on federated training: they read the model after each round, and are no releases.

- *Exposure*: the rank of a canary's secret sentence among its candidates by the model's loss.
- *Membership*: do sentences of clients that took part gain more than those of others?
- *Marks*: clients that send one coordinate up to the clip. The bound on epsilon can come near the
  claim (:mod:`privasr_k2.privacy.audit.canaries`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from privasr_k2.constraints import Count
from privasr_k2.errors import DataError
from privasr_k2.federated.client import LocalTrainer
from privasr_k2.federated.client_store import ClientData
from privasr_k2.federated.clients import ClientText, Utterance
from privasr_k2.federated.cohorts import expected_size
from privasr_k2.federated.fedlm import Federation, rounds
from privasr_k2.federated.processes import indices_from_leader
from privasr_k2.federated.settings import FedLmConfig, spending
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import Text
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.audit import drawn_secrets, membership
from privasr_k2.privacy.audit.canaries import (
    CanaryConfig,
    audit_canaries,
    log_likelihood_ratio,
)
from privasr_k2.privacy.audit.drawn_secrets import Canary
from privasr_k2.privacy.audit.one_run_curve import Claim
from privasr_k2.privacy.streams import Drawn
from privasr_k2.randomness import stream
from privasr_k2.training.canaries import CanaryGradients
from privasr_k2.training.distributed import Process


@dataclass(frozen=True)
class AuditConfig(CanaryConfig):
    """Attacks on federated training; see ``conf/fedlm.yaml#fedlm_audit``."""

    canaries: Count
    candidates: Annotated[int, Ge(2)]
    secret_words: Count
    repeats: Count
    top: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.top >= self.candidates:
            raise ValueError(f"top must be below candidates, got {self.top} of {self.candidates}")


@dataclass(frozen=True)
class AuditedConfig(AuditConfig, FedLmConfig):
    """Sections ``fedlm`` and ``fedlm_audit`` together."""


def draw_canaries(words: Sequence[str], config: AuditConfig, seed: int) -> list[Canary]:
    """Canaries whose candidates are different sentences of random words.

    Raises:
        DataError: too few words for so many different sentences.
    """
    sizes = {name: getattr(config, name) for name in ("canaries", "candidates", "secret_words")}
    return drawn_secrets.draw_canaries(words, **sizes, seed=seed)


def plant(
    clients: Sequence[ClientText], canaries: Sequence[Canary], repeats: int
) -> list[ClientText]:
    """The clients and one more for each canary, sorted by name; secrets have confidence 1."""
    planted = []
    for number, canary in enumerate(canaries):
        name, secret = f"canary-{number}", canary.candidates[canary.planted]
        sure = (1.0,) * len(secret)
        text = tuple(Utterance(f"{name}-{time}", secret, sure, name) for time in range(repeats))
        planted.append(ClientText(name, text, clients[0].unit))
    return sorted([*clients, *planted], key=lambda client: client.name)


def exposure_of(
    scorer: NeuralScorer, canaries: Sequence[Canary], config: AuditConfig, delta: float
) -> dict[str, Any]:
    """Ranks, exposures in bits, and the bound on epsilon from all canaries of one model."""
    losses = -scorer.score_sentences([text for canary in canaries for text in canary.candidates])
    by_canary, planted = losses.reshape(len(canaries), -1), [own.planted for own in canaries]
    return drawn_secrets.exposed(
        by_canary, planted, top=config.top, delta=delta, confidence=config.confidence
    )


def membership_of(
    before: NeuralScorer,
    after: NeuralScorer,
    members: Sequence[ClientText],
    others: Sequence[ClientText],
    config: AuditConfig,
) -> dict[str, Any]:
    """How well the model's gain in nats a symbol tells members' text from others'."""
    gains = [np.array([_gain(before, after, c) for c in group]) for group in (members, others)]
    curve = membership.roc(*gains)
    interval = membership.auc_interval(curve, confidence=config.confidence)
    rare = membership.at_low_fpr(*gains, fpr=0.1, confidence=config.confidence)
    return {
        "members": len(members),
        "others": len(others),
        "auc": curve.auc,
        "auc_interval": [interval.low, interval.high],
        "tpr_at_fpr_0.1": None if rare is None else rare.true_positives / rare.members,
    }


def _gain(before: NeuralScorer, after: NeuralScorer, client: ClientText) -> float:
    sentences = [utterance.words for utterance in client.utterances]
    return float(after.token_log_probs(sentences).mean() - before.token_log_probs(sentences).mean())


def marks(
    make_trainer: Callable[[], LocalTrainer],
    clients: Sequence[ClientData],
    config: FedLmConfig,
    audit: AuditConfig,
    process: Process,
) -> dict[str, Any]:
    """The one-run audit of a claim: with its noise, with it divided, and with next to none.

    Args:
        make_trainer: a new model for each run.
        clients: real ones, who take part as well.

    Returns:
        what :func:`privasr_k2.privacy.audit.canaries.audit_canaries` gives; that of the leader
        counts.

    Raises:
        DataError: fewer trained parameters than marks.
    """
    size = len(make_trainer().vector)
    nothing = Text(np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64))

    def run(inside: np.ndarray, coordinates: np.ndarray, share: float) -> np.ndarray:
        replaced = CanaryGradients(inside.tolist(), size, 2.0 * (config.privacy.clip or 0.0))
        silent = nothing, np.zeros(0, dtype=np.float32), config.weights.cap
        added = [ClientData(name, *silent) for name in replaced]
        everyone = sorted([*clients, *added], key=lambda client: client.name)
        federation = Federation(everyone, make_trainer(), replaced)
        scores = np.zeros(len(coordinates))
        noisy = _with_noise(config, share)
        scale, score = config.denominator(len(everyone)), _score(noisy, len(everyone))
        for finished in rounds(federation, noisy, process, Drawn("cohorts", None), None):
            if finished.delta is not None:
                scores += score(scale * finished.delta.double().numpy()[coordinates])
        return scores

    many = len(clients) + audit.marks
    claim = Claim(
        lambda factor: spending(_with_noise(config, factor), many, "device").event,
        Relation(config.relation),
        config.privacy.delta,
    )
    return audit_canaries(
        run,
        size=size,
        claim=claim,
        seed=config.seed,
        config=audit,
        agree=partial(indices_from_leader, process),
    )


def _score(config: FedLmConfig, clients: int) -> Callable[[np.ndarray], np.ndarray]:
    """What a round's sum adds to a mark's score.

    Noise that is correlated over rounds is least in their plain sum.
    """
    if config.strategy_for(clients).name != "increments":
        return lambda sums: sums
    rate = min(1.0, expected_size(config.sampling_for(clients), clients) / clients)
    return partial(
        log_likelihood_ratio,
        rate=rate,
        noise=config.privacy.noise,
        clip=config.privacy.clip or 1.0,
    )


def _with_noise(config: FedLmConfig, share: float) -> FedLmConfig:
    scaled = {name: getattr(config.privacy, name) * share for name in ("noise", "count_noise")}
    return replace(config, privacy=replace(config.privacy, **scaled))


def split_members(
    clients: Sequence[ClientText], seed: int
) -> tuple[list[ClientText], list[ClientText]]:
    """Half of the clients, who will take part, and the others, sorted by name.

    Raises:
        DataError: fewer than two clients.
    """
    if len(clients) < 2:
        raise DataError("the clients", "two or more", str(len(clients)), "give more")
    order = stream(seed, "members").permutation(len(clients))
    members, others = (np.sort(half).tolist() for half in np.array_split(order, 2))
    return [clients[index] for index in members], [clients[index] for index in others]
